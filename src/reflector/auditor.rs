use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _,
};
use tokio::time::timeout;

use super::status::{Shared, lock};
use crate::api::{ApiError, Identity, ListRequest, ListerWatcher, Selection, VersionMatch};
use crate::cache::Snapshot;
use crate::object::{ObjectKey, Resource, ResourceVersion};
use crate::supervision::Faults;

/// So many names and versions are asked for at once.
const PAGE: u32 = 500;
/// A source that takes longer over one page will never answer.
const LONGEST_PAGE: Duration = Duration::from_secs(600);
/// After so many objects others on the arbiter get a turn.
const SLICE: usize = 1024;

const NOT_CACHED: &str = "is on the server but not cached";

/// Compares the cache with the server once, at the version of the cache. Then it is done.
pub(super) struct Auditor<K: Resource> {
    pub(super) source: Rc<dyn ListerWatcher<K>>,
    pub(super) selection: Arc<Selection>,
    pub(super) shared: Arc<Shared<K>>,
    pub(super) outcome: Rc<Cell<Option<Audited>>>,
    pub(super) faults: Faults,
}

/// What an audit gave.
#[derive(Debug)]
pub(super) enum Audited {
    /// How each object that differs does.
    Compared(Vec<String>),
    /// The server could not be asked about that version.
    Skipped(ApiError),
}

impl<K: Resource> Actor for Auditor<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.faults.hit("auditor", "started");
        let snapshot = self.shared.store.snapshot();
        let (source, selection) = (Rc::clone(&self.source), Arc::clone(&self.selection));
        let shared = Arc::clone(&self.shared);
        let work = async move {
            let Some(version) = snapshot.resource_version().cloned() else {
                return Audited::Skipped(ApiError::malformed("nothing has been listed"));
            };
            let quarantined_before = lock(&shared.quarantine).clone();
            let listed = match identities(&*source, selection, version).await {
                Ok(listed) => listed,
                Err(error) => return Audited::Skipped(error),
            };
            let mut differences = differences(&snapshot, listed).await;
            // What can not be read is reported elsewhere.
            for quarantined in [&quarantined_before, &lock(&shared.quarantine)] {
                differences.retain(|(key, how)| {
                    let may_be_unreadable = quarantined.others > 0 && *how == NOT_CACHED;
                    !may_be_unreadable && !quarantined.objects.contains_key(key)
                });
            }
            let written = differences.into_iter().map(|(key, how)| format!("{key} {how}"));
            Audited::Compared(written.collect())
        };
        context.spawn(work.into_actor(self).map(|audited, auditor, context| {
            auditor.outcome.set(Some(audited));
            context.stop();
        }));
    }
}

/// What the server had at a version.
async fn identities<K: Resource>(
    source: &dyn ListerWatcher<K>,
    selection: Arc<Selection>,
    version: ResourceVersion,
) -> Result<Vec<Identity>, ApiError> {
    let mut request = ListRequest {
        selection,
        limit: Some(PAGE),
        continue_token: None,
        version: Some(VersionMatch::Exact(version.clone())),
    };
    let mut listed = Vec::new();
    loop {
        let page = timeout(LONGEST_PAGE, source.identities(request.clone())).await;
        let page = page.unwrap_or(Err(ApiError::Timeout { waited: LONGEST_PAGE }))?;
        if page.resource_version.as_ref() != Some(&version) {
            return Err(ApiError::malformed(
                "the server lists another version than it was asked for",
            ));
        }
        listed.extend(page.items);
        request.continue_token = page.continue_token;
        if request.continue_token.is_none() {
            return Ok(listed);
        }
    }
}

/// How the cache differs from what the server had at its version, object by object.
async fn differences<K: Resource>(
    cache: &Snapshot<K>,
    listed: Vec<Identity>,
) -> Vec<(ObjectKey, &'static str)> {
    let mut listed: BTreeMap<ObjectKey, Identity> =
        listed.into_iter().map(|identity| (identity.key.clone(), identity)).collect();
    let mut differences = Vec::new();
    for (number, (key, object)) in cache.iter().enumerate() {
        if number % SLICE == SLICE - 1 {
            tokio::task::yield_now().await;
        }
        let Some(identity) = listed.remove(key) else {
            differences.push((key.clone(), "is cached but not on the server"));
            continue;
        };
        // A transform may have removed what would tell.
        let is_other = |cached: Option<&str>, listed: Option<&str>| {
            cached.zip(listed).is_some_and(|(cached, listed)| cached != listed)
        };
        let version = identity.resource_version.as_ref().map(ResourceVersion::as_str);
        if is_other(object.uid(), identity.uid.as_deref()) {
            differences.push((key.clone(), "is another object on the server"));
        } else if is_other(object.resource_version(), version) {
            differences.push((key.clone(), "has another version on the server"));
        }
    }
    differences.extend(listed.into_keys().map(|key| (key, NOT_CACHED)));
    differences
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::cache::Indexer;

    fn pod(name: &str, uid: &str, version: &str) -> Arc<Pod> {
        let metadata = kube_core::ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..Default::default()
        };
        Arc::new(Pod { metadata, ..Pod::default() })
    }

    fn identity(name: &str, uid: &str, version: &str) -> Identity {
        Identity {
            key: ObjectKey::cluster_scoped(name),
            uid: Some(uid.to_owned()),
            resource_version: ResourceVersion::new(version),
        }
    }

    #[tokio::test]
    async fn every_way_to_differ_is_found() {
        let mut cache = Indexer::default();
        let cached = ["same", "gone", "replaced", "missed"].map(|name| pod(name, "u", "1"));
        cache.replace_all(cached.to_vec(), &BTreeSet::new(), ResourceVersion::new("5"));
        let listed = vec![
            identity("same", "u", "1"),
            identity("replaced", "v", "3"),
            identity("missed", "u", "2"),
            identity("new", "u", "4"),
        ];
        let found = differences(&cache.snapshot(), listed).await;
        let found: Vec<String> = found.iter().map(|(key, how)| format!("{key} {how}")).collect();
        assert_eq!(
            found,
            [
                "gone is cached but not on the server",
                "missed has another version on the server",
                "replaced is another object on the server",
                "new is on the server but not cached",
            ]
        );
    }
}
