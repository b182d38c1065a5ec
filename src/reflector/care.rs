use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::{Instant, sleep_until, timeout};

use super::machine::WatchEnd;
use super::vigil::{Check, Doubt, Due, Verdict, Vigil, fell_silent};
use super::watcher::Route;
use crate::api::{ApiError, ListRequest, Selection};
use crate::object::{Resource, ResourceVersion};

/// A server that takes longer to say how far it has come is as good as gone. Part of it may be spent on waiting for our
/// own turn.
const LONGEST_ANSWER: Duration = Duration::from_secs(45);

/// Keeps a vigil over a watch: waits with it, and asks the server when that is due.
pub(super) struct Care<K: Resource> {
    pub(super) vigil: Vigil,
    route: Rc<Route<K>>,
    selection: Arc<Selection>,
    asked: Option<(Check, Answer)>,
}

type Answer = LocalBoxFuture<'static, Result<Option<ResourceVersion>, ApiError>>;

impl<K: Resource> Care<K> {
    pub(super) fn new(vigil: Vigil, route: Rc<Route<K>>, selection: Arc<Selection>) -> Self {
        Self { vigil, route, selection, asked: None }
    }

    /// Waits for something the watch is to bring, for as long as the watch can be believed in.
    ///
    /// # Errors
    /// With its end, when it can not.
    pub(super) async fn attend<T>(
        &mut self,
        awaited: impl Future<Output = T>,
    ) -> Result<T, WatchEnd> {
        let mut awaited = pin!(awaited);
        loop {
            let (at, due) = self.vigil.due();
            let answer = async {
                match &mut self.asked {
                    Some((_, answer)) => answer.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // What has come counts, however late we look: a busy process is no silent server.
                biased;
                value = &mut awaited => return Ok(value),
                newest = answer => {
                    let Some((check, _)) = self.asked.take() else { continue };
                    match self.vigil.judge(check, newest, Instant::now()) {
                        Verdict::GoOn => {}
                        Verdict::Proven => self.route.tell_heard().await,
                        Verdict::End(end) => return Err(end),
                    }
                }
                () = sleep_until(at) => match due {
                    Due::Check(doubt) => self.ask(doubt),
                    Due::Overdue => {
                        self.vigil.told_overdue();
                        self.route.tell_overdue().await;
                    }
                    Due::GiveUp => return Err(fell_silent()),
                    Due::End => return Err(WatchEnd::Closed),
                },
            }
        }
    }

    fn ask(&mut self, doubt: Doubt) {
        let position = self.route.shared.store.snapshot().resource_version().cloned();
        let selection = Arc::clone(&self.selection);
        let request = ListRequest { selection, limit: Some(1), ..ListRequest::default() };
        let page = timeout(LONGEST_ANSWER, self.route.source.identities(request));
        let answer = async {
            let page = page.await;
            let page = page.map_err(|_elapsed| ApiError::Timeout { waited: LONGEST_ANSWER })?;
            Ok(page?.resource_version)
        };
        self.asked = Some((self.vigil.check(doubt, position), answer.boxed_local()));
    }
}
