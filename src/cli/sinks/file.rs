use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, Context, Handler, Recipient, ResponseFuture};
use actix_rt::ArbiterHandle;
use kubeflect::config::JsonSettings;

use super::rotating::Rotating;
use super::{Lines, WrongSetting};

/// Writes lines into a file. What can not be written, as on a full disk, is tried again until it can.
pub(super) struct FileWriter {
    name: String,
    file: Rotating,
}

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

impl FileWriter {
    pub(super) fn open(path: &Path, settings: &JsonSettings) -> Result<Self, WrongSetting> {
        let name = path.display().to_string();
        let file = Rotating::open(path, settings.rotate_size, settings.keep).map_err(|error| {
            let problem = format!("can not be written ({error}): give the path of a file that can");
            WrongSetting { key: "path", problem }
        })?;
        Ok(Self { name, file })
    }

    pub(super) fn start_on(self, arbiter: &ArbiterHandle) -> Recipient<Lines> {
        Running::start_in_arbiter(arbiter, move |_| {
            Running(Rc::new((self.name, RefCell::new(self.file))))
        })
        .recipient()
    }
}

struct Running(Rc<(String, RefCell<Rotating>)>);

impl Actor for Running {
    type Context = Context<Self>;
}

impl Handler<Lines> for Running {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, lines: Lines, _: &mut Context<Self>) -> ResponseFuture<()> {
        let file = Rc::clone(&self.0);
        Box::pin(async move {
            let mut delay = FIRST_RETRY;
            loop {
                let written = file.1.borrow_mut().write(&lines.0);
                match written {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::warn!(file = file.0, %error, ?delay, "changes are not written; trying again");
                    }
                }
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LONGEST_RETRY);
            }
        })
    }
}
