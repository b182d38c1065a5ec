use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::{Instant, sleep_until, timeout};

use super::machine::WatchEnd;
use super::vigil::{Check, Due, Vigil};
use crate::api::{ApiError, ListRequest, ListerWatcher, Selection};
use crate::cache::Store;
use crate::object::{Resource, ResourceVersion};

/// A server that takes longer to say how far it has come is as good as gone.
const ANSWER: Duration = Duration::from_secs(30);

/// Keeps a vigil over a watch: waits with it, and asks the server when that is due.
pub(super) struct Care<K: Resource> {
    pub(super) vigil: Vigil,
    source: Rc<dyn ListerWatcher<K>>,
    selection: Arc<Selection>,
    store: Store<K>,
    asked: Option<(Check, Answer)>,
}

type Answer = LocalBoxFuture<'static, Result<Option<ResourceVersion>, ApiError>>;

impl<K: Resource> Care<K> {
    pub(super) fn new(
        vigil: Vigil,
        source: Rc<dyn ListerWatcher<K>>,
        selection: Arc<Selection>,
        store: Store<K>,
    ) -> Self {
        Self { vigil, source, selection, store, asked: None }
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
            let is_asked = self.asked.is_some();
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
                    let ended = self.asked.take().and_then(|(check, _)| {
                        self.vigil.judge(check, newest, Instant::now())
                    });
                    if let Some(end) = ended {
                        return Err(end);
                    }
                }
                () = sleep_until(at), if !(is_asked && due == Due::Check) => match due {
                    Due::Check => self.ask(),
                    Due::GiveUp | Due::End => return Err(Vigil::end(due)),
                },
            }
        }
    }

    fn ask(&mut self) {
        let position = self.store.snapshot().resource_version().cloned();
        let selection = Arc::clone(&self.selection);
        let request = ListRequest { selection, limit: Some(1), ..ListRequest::default() };
        let page = timeout(ANSWER, self.source.identities(request));
        let answer = async {
            let page = page.await.map_err(|_elapsed| ApiError::Timeout { waited: ANSWER })?;
            Ok(page?.resource_version)
        };
        self.asked = Some((self.vigil.check(position), answer.boxed_local()));
    }
}
