use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::continue_token::ContinueToken;
use super::failure::{Failure, JSON, whole_response};
use super::faults::Replica;
use super::history::{Objects, Overtaken};
use super::model::{Collection, Model};
use super::options::{ListOptions, ListVersion, Query, negotiate, parse_version};
use super::resources::ResourceId;
use super::route::Call;
use super::selection::Selection;
use super::stored::{Form, Stored};
use super::{ApiServer, lock, table};
use crate::client::Response;
use crate::object::ObjectKey;

/// How long a request waits for a version the server has not reached.
const FRESHNESS_PATIENCE: Duration = Duration::from_secs(3);

/// One page of a list.
struct Page<'a> {
    revision: u64,
    objects: Vec<(&'a ObjectKey, &'a Arc<Stored>)>,
    /// How many objects come after this page.
    remaining: usize,
}

impl ApiServer {
    pub(super) async fn get(
        &self,
        call: &Call,
        resource: &ResourceId,
        key: &ObjectKey,
    ) -> Result<Response, Failure> {
        let form = negotiate(&call.accept, Query(&call.query))?;
        let version = Query(&call.query).text("resourceVersion");
        let revision = parse_version(version).ok_or_else(|| {
            Failure::bad_request(format!("invalid resource version: {version:?}"))
        })?;
        self.shown_to(ListVersion::Exact(revision)).await?;
        let object = lock(&self.model).existing(resource, key)?;
        Ok(whole_response(200, JSON, object.text(form)))
    }

    pub(super) async fn list(
        &self,
        call: &Call,
        resource: &ResourceId,
        namespace: Option<&str>,
    ) -> Result<Response, Failure> {
        let query = Query(&call.query);
        let form = negotiate(&call.accept, query)?;
        let options = ListOptions::parse(query)?;
        let served = lock(&self.model).served(resource)?;
        let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
        let selection = Selection::parse(&served, namespace, labels, fields)?;

        let shown = self.shown_to(options.version).await?;
        let body = list(&lock(&self.model), resource, &selection, options, shown, form)?;
        Ok(whole_response(200, JSON, body))
    }

    /// The revision that answers a request: none if it is to be the newest when the answer is written. Waits for it
    /// as long as Kubernetes does.
    pub(super) async fn shown_to(&self, version: ListVersion) -> Result<Option<u64>, Failure> {
        let not_older_than = match version {
            ListVersion::Newest => return Ok(None),
            ListVersion::NotOlderThan(revision) => revision,
            ListVersion::Exact(revision) => {
                self.wait_for(revision, None).await?;
                return Ok(Some(revision));
            }
        };
        let (past, replica) = {
            let faults = &mut lock(&self.model).faults;
            (faults.planned_past(), faults.next_replica())
        };
        match past {
            Some(past) => Ok(Some(past)),
            None => self.wait_for(not_older_than, Some(replica)).await.map(Some),
        }
    }

    /// Waits until a replica, or the server itself, has reached a revision. Returns the one it has reached.
    async fn wait_for(&self, revision: u64, replica: Option<Replica>) -> Result<u64, Failure> {
        let shown = |model: &Model| match replica {
            Some(replica) => model.shown_by(replica),
            None => model.revision(),
        };
        let mut revisions = lock(&self.model).revisions();
        let reached = async {
            loop {
                revisions.mark_unchanged();
                let (current, next) = {
                    let model = lock(&self.model);
                    let next = replica.and_then(|replica| model.next_shown_by(replica));
                    (shown(&model), next)
                };
                if current >= revision {
                    return current;
                }
                let next = next.unwrap_or_else(|| Instant::now() + FRESHNESS_PATIENCE);
                // That somebody wrote, and that it is time to look again, is the same here.
                let _woken = tokio::time::timeout_at(next, revisions.changed()).await;
            }
        };
        match tokio::time::timeout(FRESHNESS_PATIENCE, reached).await {
            Ok(current) => Ok(current),
            Err(_) => Err(Failure::too_large(revision, shown(&lock(&self.model)))),
        }
    }
}

fn list(
    model: &Model,
    resource: &ResourceId,
    selection: &Selection,
    options: ListOptions,
    shown: Option<u64>,
    form: Form,
) -> Result<Bytes, Failure> {
    model.served(resource)?;
    let collection = &model.collections[resource];
    let after = options.continue_token.as_ref().map(ContinueToken::last_key);
    let (pinned, expired) = match (options.continue_token, options.version) {
        (Some(token), _) => {
            let pinned = token.revision();
            (pinned, Failure::continue_too_old(token.at_newest().encode()))
        }
        (None, ListVersion::Exact(revision)) => (Some(revision), Failure::list_too_old()),
        (None, ListVersion::Newest | ListVersion::NotOlderThan(_)) => {
            (None, Failure::list_too_old())
        }
    };
    let (revision, objects) = match pinned {
        Some(revision) => {
            let past = collection.history.rewind(&collection.objects, revision);
            (revision, past.map_err(|Overtaken| expired)?)
        }
        None => collection.as_shown(shown, model.revision()),
    };
    let page = page(revision, &objects, selection, after, options.limit);
    Ok(write_list(collection, &page, selection, form))
}

fn page<'a>(
    revision: u64,
    objects: &'a Objects,
    selection: &Selection,
    after: Option<ObjectKey>,
    limit: Option<usize>,
) -> Page<'a> {
    let (mut from, mut to) = (Bound::Unbounded, Bound::Unbounded);
    if let Some(namespace) = &selection.namespace {
        let (first, end) = ObjectKey::bounds_of(namespace);
        (from, to) = (Bound::Included(first), Bound::Excluded(end));
    }
    if let Some(key) = after {
        from = Bound::Excluded(key);
    }
    let mut selected =
        objects.range((from, to)).filter(|(key, object)| selection.matches(key, object));
    let page = selected.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    Page { revision, objects: page, remaining: selected.count() }
}

fn write_list(
    collection: &Collection,
    page: &Page<'_>,
    selection: &Selection,
    form: Form,
) -> Bytes {
    let kind = &collection.served.kind;
    let meta = || "meta.k8s.io/v1".into();
    let items = r#""items":"#.to_owned();
    let (list_kind, api_version, items) = match form {
        Form::Whole => (format!("{}List", kind.kind), kind.api_version(), items),
        Form::MetadataOnly => ("PartialObjectMetadataList".to_owned(), meta(), items),
        Form::Table(_) | Form::TableWithoutColumns(_) => {
            let columns = table::columns(kind);
            ("Table".to_owned(), meta(), format!(r#""columnDefinitions":{columns},"rows":"#))
        }
    };
    let mut more = String::new();
    if let (1.., Some((last, _))) = (page.remaining, page.objects.last()) {
        let token = ContinueToken::pinned(page.revision, last).encode();
        more = format!(r#","continue":"{token}""#);
        if selection.selects_all() {
            more += &format!(r#","remainingItemCount":{}"#, page.remaining);
        }
    }
    let revision = page.revision;
    let beginning = format!(
        r#"{{"kind":"{list_kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{revision}"{more}}},{items}"#
    );
    // Go writes a list that was never filled so.
    if form == Form::MetadataOnly && page.objects.is_empty() {
        return Bytes::from(beginning + "null}");
    }
    let mut body = beginning.into_bytes();
    body.push(b'[');
    for (index, (_, object)) in page.objects.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        object.write_item_into(&mut body, form, collection.served.origin);
    }
    body.extend_from_slice(b"]}");
    body.into()
}
