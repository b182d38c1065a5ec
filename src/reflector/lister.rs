use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, Context,
    WrapFuture as _,
};

use super::delta_fifo_store::DeltaFifoStore;
use super::history::Older;
use super::messages::{Commit, Committed, Epoch, Stage};
use super::supervisor::Outcome;
use crate::api::{ApiError, Known, ListPage, ListRequest, ListerWatcher, WatchEvent};
use crate::cache::Store;
use crate::object::{Resource, ResourceVersion};
use crate::supervision::Faults;

/// So many objects go to the store at once.
const SLICE: usize = 256;
/// A source that takes longer over one page, and has no limit of its own, will never answer.
const LONGEST_PAGE: Duration = Duration::from_secs(3600);

/// Lists once, page by page, and hands the whole to the store. Then it is done.
pub(super) struct Lister<K: Resource> {
    pub(super) epoch: Epoch,
    pub(super) request: ListRequest,
    pub(super) older: Older,
    pub(super) source: Rc<dyn ListerWatcher<K>>,
    pub(super) cached: Store<K>,
    pub(super) store: Addr<DeltaFifoStore<K>>,
    pub(super) outcome: Rc<Cell<Option<Outcome>>>,
    pub(super) faults: Faults,
}

impl<K: Resource> Actor for Lister<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.faults.hit("lister", "started");
        let (source, request) = (Rc::clone(&self.source), self.request.clone());
        let (store, faults) = (self.store.clone(), self.faults.clone());
        let (epoch, older) = (self.epoch, self.older);
        let known: Option<Rc<dyn Known<K>>> = match older {
            Older::Refused => Some(Rc::new(self.cached.clone())),
            // A server that went back may give out a version for the second time.
            Older::Accepted => None,
        };
        let work = async move {
            let listed = list(&*source, request, known.as_ref(), &faults).await;
            let (pages, resource_version) = match listed {
                Ok(listed) => listed,
                Err(error) => return Outcome::ListFailed(error),
            };
            faults.hit("lister", "listed");
            hand_over(&store, pages, Commit { epoch, resource_version, older }).await
        };
        context.spawn(work.into_actor(self).map(|outcome, lister, context| {
            lister.outcome.set(Some(outcome));
            context.stop();
        }));
    }
}

/// All pages, and the version of the list. Nothing is handed over before the last page is here.
async fn list<K: Resource>(
    source: &dyn ListerWatcher<K>,
    request: ListRequest,
    known: Option<&Rc<dyn Known<K>>>,
    faults: &Faults,
) -> Result<(Vec<ListPage<K>>, ResourceVersion), ApiError> {
    let mut pages = Vec::new();
    let mut next = request.clone();
    loop {
        let page = match known {
            Some(known) => source.relist(next.clone(), Rc::clone(known)),
            None => source.list(next.clone()),
        };
        let page = tokio::time::timeout(LONGEST_PAGE, page).await;
        let page = page.unwrap_or(Err(ApiError::Timeout { waited: LONGEST_PAGE }));
        let page = match page {
            // The rest of this snapshot is gone, and what the server offers instead is not of one moment.
            Err(ApiError::Expired { .. })
                if next.continue_token.is_some() && next.limit.is_some() =>
            {
                pages.clear();
                next = ListRequest { limit: None, ..request.clone() };
                continue;
            }
            page => page?,
        };
        faults.hit("lister", "page");
        next.continue_token = page.continue_token.clone();
        pages.push(page);
        if next.continue_token.is_none() {
            break;
        }
    }
    // Of the first page: what changed since is told by a watch that begins there.
    let resource_version = pages.first().and_then(|page| page.resource_version.clone());
    let resource_version = resource_version
        .ok_or_else(|| ApiError::malformed("the list has no resourceVersion to watch from"))?;
    Ok((pages, resource_version))
}

async fn hand_over<K: Resource>(
    store: &Addr<DeltaFifoStore<K>>,
    pages: Vec<ListPage<K>>,
    commit: Commit,
) -> Outcome {
    let (epoch, resource_version) = (commit.epoch, commit.resource_version.clone());
    for page in pages {
        let mut items = page.items.into_iter().map(WatchEvent::Added).peekable();
        while items.peek().is_some() {
            let events = items.by_ref().take(SLICE).collect();
            if store.send(Stage { epoch, events }).await.is_err() {
                return Outcome::Interrupted;
            }
        }
    }
    match store.send(commit).await {
        Ok(Committed::Applied) => Outcome::Listed(resource_version),
        Ok(Committed::Refused(error)) => Outcome::ListFailed(error),
        Ok(Committed::Outdated) | Err(_) => Outcome::Interrupted,
    }
}
