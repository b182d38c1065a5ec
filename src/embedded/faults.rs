use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::failure::{Failure, whole_response};
use super::resources::ResourceId;
use super::reviews::Rights;
use crate::api::Status;
use crate::client::Response;
use crate::object::Kind;

/// What a request asks for, as RBAC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One object.
    Get,
    /// All objects of a collection.
    List,
    /// Changes of a collection.
    Watch,
    /// A new object.
    Create,
    /// A new state of an object.
    Update,
    /// A change of parts of an object.
    Patch,
    /// One object gone.
    Delete,
    /// All objects of a collection gone.
    DeleteCollection,
    /// Which kinds there are, the version, health: anything but objects.
    Discover,
}

impl Verb {
    /// As RBAC rules write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get | Self::Discover => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Which requests a fault hits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    verb: Option<Verb>,
    resource: Option<ResourceId>,
}

impl Filter {
    /// Every request.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Requests with a verb.
    pub fn verb(verb: Verb) -> Self {
        Self { verb: Some(verb), resource: None }
    }

    /// Requests for a kind.
    pub fn kind(kind: &Kind) -> Self {
        Self::everything().of(kind)
    }

    /// Of these, only the requests for a kind.
    #[must_use]
    pub fn of(self, kind: &Kind) -> Self {
        Self { resource: Some(ResourceId::of(kind)), ..self }
    }

    fn hits(&self, verb: Verb, resource: Option<&ResourceId>) -> bool {
        self.verb.is_none_or(|wanted| wanted == verb)
            && self.resource.as_ref().is_none_or(|wanted| Some(wanted) == resource)
    }
}

/// A request the server has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// What it asked for.
    pub verb: Verb,
    /// The path, escaped.
    pub path: String,
    /// The query, unescaped.
    pub query: Vec<(String, String)>,
    /// When it arrived.
    pub at: Instant,
}

impl SeenRequest {
    /// The value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// An answer given instead of the right one, as any proxy on the way might give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: String,
    /// The `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: Bytes,
}

impl RawAnswer {
    /// A `text/plain` answer, as from an overloaded server or a proxy.
    pub fn text(status: u16, body: impl Into<Bytes>) -> Self {
        let content_type = "text/plain; charset=utf-8".to_owned();
        Self { status, content_type, retry_after: None, body: body.into() }
    }

    /// The same, asking to come back later.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

/// What goes wrong on purpose.
#[derive(Debug, Default)]
pub(super) struct Faults {
    answers: Vec<PlannedAnswer>,
    delays: Vec<(Filter, Duration)>,
    forbidden: Vec<(ResourceId, Verb)>,
    /// Who brings one of these may come in; everybody if there are none.
    tokens: Vec<String>,
    /// All that is allowed; none for everything.
    rights: Option<Rights>,
    switches: Vec<Switch>,
    /// How many events of a resource watches are still to miss.
    losses: Vec<(ResourceId, usize)>,
    /// How far each replica is behind. None is one that is not.
    replicas: Vec<Duration>,
    /// The replica asked last.
    replica: usize,
    /// The revision that lists show, and how many of them.
    past: Option<(u64, usize)>,
}

/// Which of the replicas answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replica(usize);

#[derive(Debug)]
struct PlannedAnswer {
    filter: Filter,
    answer: PlannedBody,
    times: usize,
}

#[derive(Debug, Clone)]
pub(super) enum PlannedBody {
    Status(Box<Status>),
    Raw(RawAnswer),
}

/// Something that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    BookmarksHeld,
    ConnectionsRefused,
    StreamingListsOff,
    StreamingListsCompressed,
    WatchesSilenced,
}

impl Faults {
    pub(super) fn plan(&mut self, filter: Filter, answer: PlannedBody, times: usize) {
        self.answers.push(PlannedAnswer { filter, answer, times });
    }

    /// Takes the next answer planned for such a request; the plan made first goes first.
    pub(super) fn planned(
        &mut self,
        verb: Verb,
        resource: Option<&ResourceId>,
    ) -> Option<PlannedBody> {
        let hit = self.answers.iter_mut().find(|plan| plan.filter.hits(verb, resource))?;
        hit.times = hit.times.saturating_sub(1);
        let answer = hit.answer.clone();
        self.answers.retain(|plan| plan.times > 0);
        Some(answer)
    }

    pub(super) fn delay(&mut self, filter: Filter, delay: Duration) {
        self.delays.retain(|(other, _)| *other != filter);
        if !delay.is_zero() {
            self.delays.push((filter, delay));
        }
    }

    pub(super) fn delay_of(&self, verb: Verb, resource: Option<&ResourceId>) -> Duration {
        let hits = self.delays.iter().filter(|(filter, _)| filter.hits(verb, resource));
        hits.map(|(_, delay)| *delay).sum()
    }

    pub(super) fn forbid(&mut self, resource: ResourceId, verb: Verb) {
        self.forbidden.push((resource, verb));
    }

    pub(super) fn permit(&mut self, resource: &ResourceId, verb: Verb) {
        self.forbidden.retain(|(other, denied)| other != resource || *denied != verb);
    }

    pub(super) fn is_forbidden(&self, resource: &ResourceId, verb: Verb) -> bool {
        self.is_denied(resource.group(), resource.plural(), verb.as_str())
    }

    /// Whatever the version: rights have none.
    pub(super) fn is_denied(&self, group: &str, plural: &str, verb: &str) -> bool {
        let is_forbidden = |(resource, denied): &(ResourceId, Verb)| {
            resource.group() == group && resource.plural() == plural && denied.as_str() == verb
        };
        self.rights.as_ref().is_some_and(|rights| !rights.allow(group, plural, verb))
            || self.forbidden.iter().any(is_forbidden)
    }

    pub(super) fn allow_only(&mut self, rights: Rights) {
        self.rights = Some(rights);
    }

    pub(super) fn demand_tokens(&mut self, tokens: Vec<String>) {
        self.tokens = tokens;
    }

    /// Whether one who brings this `Authorization` header may come in.
    pub(super) fn admits(&self, authorization: &str) -> bool {
        let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
        self.tokens.is_empty() || self.tokens.iter().any(|known| known == token)
    }

    pub(super) fn set(&mut self, switch: Switch, on: bool) {
        self.switches.retain(|other| *other != switch);
        if on {
            self.switches.push(switch);
        }
    }

    pub(super) fn lose(&mut self, resource: ResourceId, events: usize) {
        self.losses.retain(|(other, _)| *other != resource);
        self.losses.push((resource, events));
    }

    /// Whether watches are to miss the next event of a resource, which counts as missed.
    pub(super) fn loses_event(&mut self, resource: &ResourceId) -> bool {
        let planned = self.losses.iter_mut().find(|(other, left)| other == resource && *left > 0);
        planned.map(|(_, left)| *left = left.saturating_sub(1)).is_some()
    }

    pub(super) fn set_replicas(&mut self, lags: Vec<Duration>) {
        self.replicas = lags;
    }

    /// The replica that answers the next request: each in turn.
    pub(super) fn next_replica(&mut self) -> Replica {
        self.replica = self.replica.wrapping_add(1);
        Replica(self.replica)
    }

    pub(super) fn lag_of(&self, replica: Replica) -> Duration {
        let position = replica.0.checked_rem(self.replicas.len());
        position.map_or(Duration::ZERO, |position| self.replicas[position])
    }

    pub(super) fn list_the_past(&mut self, revision: u64, times: usize) {
        self.past = Some((revision, times)).filter(|_| times > 0);
    }

    /// Takes the revision the next list is to show instead of a newer one.
    pub(super) fn planned_past(&mut self) -> Option<u64> {
        let (revision, times) = self.past?;
        self.list_the_past(revision, times - 1);
        Some(revision)
    }

    pub(super) fn is_on(&self, switch: Switch) -> bool {
        self.switches.contains(&switch)
    }
}

impl PlannedBody {
    pub(super) fn response(self) -> Response {
        match self {
            Self::Status(status) => Failure::from(*status).response(),
            Self::Raw(raw) => {
                let mut response = whole_response(raw.status, &raw.content_type, raw.body);
                response.retry_after = raw.retry_after;
                response
            }
        }
    }
}
