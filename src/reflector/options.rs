use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Condition;
use crate::api::Selection;
use crate::cache::{Discipline, IndexFn, Transform, TransformError};
use crate::object::{FieldSelector, Kind, LabelSelector, Prune, Resource, Scope};
use crate::supervision::{BackoffOptions, Faults};

/// What to reflect of a kind, and how.
///
/// Two reflectors with the same options are one. Closures are the same when they are clones: keep options that have
/// one, and clone them.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::Options;
///
/// let web_pods = Options::<Pod>::all()
///     .namespace("production")
///     .labels("app=web,tier in (front, back)")
///     .resync(Duration::from_secs(600))
///     .index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
/// ```
pub struct Options<K> {
    pub(super) name: Option<Arc<str>>,
    pub(super) selection: Selection,
    pub(super) page_size: Option<u32>,
    pub(super) streaming_lists: StreamingLists,
    pub(super) watch_timeout: Duration,
    pub(super) audit: Option<Duration>,
    pub(super) keep_unserved: Duration,
    pub(super) resync: Option<Duration>,
    pub(super) discipline: Discipline,
    pub(crate) prune: Prune,
    pub(super) transform: Option<Transform<K>>,
    pub(super) indices: Vec<(String, IndexFn<K>)>,
    pub(super) should_resync: Option<ShouldResync>,
    pub(super) on_error: Option<ErrorHandler>,
    pub(super) backoff: BackoffOptions,
    pub(super) faults: Faults,
}

/// Asked before each resync; no answers no.
pub type ShouldResync = Arc<dyn Fn() -> bool + Send + Sync>;

/// Told of every list or watch that failed. It can not change what happens next.
#[doc(alias = "WatchErrorHandler")]
pub type ErrorHandler = Arc<dyn Fn(&Condition) + Send + Sync>;

/// Whether the first objects come as a watch.
#[doc(alias = "WatchList")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamingLists {
    /// Where the server has them; else they are listed.
    #[default]
    WherePossible,
    /// Never.
    Never,
}

/// Options that can not be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("can not reflect {kind}: {problem}")]
pub struct InvalidOptions {
    kind: String,
    problem: String,
}

/// The least a watch may be asked to last, and the default: client-go's.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
const MAX_BACKOFF: Duration = Duration::from_secs(3600);
const MIN_RESYNC: Duration = Duration::from_secs(1);
const MIN_AUDIT: Duration = Duration::from_secs(60);
const MAX_AUDIT: Duration = Duration::from_secs(7 * 24 * 3600);
const KEEP_UNSERVED: Duration = Duration::from_secs(300);

impl<K> Options<K> {
    /// All objects, in all namespaces.
    pub fn all() -> Self {
        Self {
            name: None,
            selection: Selection::default(),
            page_size: None,
            streaming_lists: StreamingLists::default(),
            watch_timeout: MIN_WATCH_TIMEOUT,
            audit: None,
            keep_unserved: KEEP_UNSERVED,
            resync: None,
            discipline: Discipline::default(),
            prune: Prune::default(),
            transform: None,
            indices: Vec::new(),
            should_resync: None,
            on_error: None,
            backoff: BackoffOptions::default(),
            faults: Faults::none(),
        }
    }

    /// What its status is to call it, beside its kind. Two of another name are two reflectors.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only the objects of one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.selection.namespace = Some(namespace.into());
        self
    }

    /// Only objects with these labels, as kubectl's `-l` takes them. The server selects.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.selection.labels = Some(selector.into());
        self
    }

    /// Only objects with these fields, as kubectl's `--field-selector` takes them. The server selects.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.selection.fields = Some(selector.into());
        self
    }

    /// How many objects to list at once. Unless set, 500 of the newest, and all at once when a list need not be newer
    /// than the cache: the server has that in memory, and would read it from its storage page by page.
    #[must_use]
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = Some(objects);
        self
    }

    /// Whether the first objects come as a watch.
    #[must_use]
    pub fn streaming_lists(mut self, streaming_lists: StreamingLists) -> Self {
        self.streaming_lists = streaming_lists;
        self
    }

    /// How long a watch lasts at least: each lasts for this to twice this. Five minutes unless set.
    #[must_use]
    pub fn watch_timeout(mut self, at_least: Duration) -> Self {
        self.watch_timeout = at_least;
        self
    }

    /// Compares the cache with the server now and then: each time after this to twice this. Every object is asked for by
    /// name and version at the version of the cache, page by page; a difference is counted, and listed away. Never,
    /// unless set: a watch that works leaves nothing to find, but servers have lost events before. A transform that
    /// gives objects other names leaves nothing to compare.
    #[must_use]
    pub fn audit(mut self, at_least_every: Duration) -> Self {
        self.audit = Some(at_least_every);
        self
    }

    /// For how long the objects of a kind are kept that is not served any more, as when its definition was deleted.
    /// Then, if the server says twice that it has no such kind, subscribers are told that they are gone. Five minutes
    /// unless set.
    #[must_use]
    pub fn keep_unserved(mut self, period: Duration) -> Self {
        self.keep_unserved = period;
        self
    }

    /// Repeats every cached object to its subscribers this often, as [`Cause::Resync`](super::Cause::Resync). No
    /// request is made. A subscriber may ask for a longer period of its own. Never, unless set.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// In which order changes are applied.
    #[must_use]
    pub fn discipline(mut self, discipline: Discipline) -> Self {
        self.discipline = discipline;
        self
    }

    /// What of the metadata is not kept. Costs nothing: it is not even read. A source of your own does as it likes.
    #[must_use]
    #[doc(alias = "managedFields")]
    pub fn prune(mut self, prune: Prune) -> Self {
        self.prune = prune;
        self
    }

    /// Changes every object before anybody sees it; an object it refuses is quarantined.
    #[must_use]
    pub fn transform(
        mut self,
        transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static,
    ) -> Self
    where
        K: Clone + Send + Sync + 'static,
    {
        self.transform = Some(Transform::new(transform));
        self
    }

    /// Files objects under the values of a function, for `Store::by_index`.
    #[must_use]
    pub fn index(
        mut self,
        name: impl Into<String>,
        function: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.indices.push((name.into(), Arc::new(function)));
        self
    }

    /// Asks before each resync whether it is wanted.
    #[must_use]
    pub fn should_resync(mut self, hook: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.should_resync = Some(Arc::new(hook));
        self
    }

    /// Tells of every list or watch that failed.
    #[must_use]
    pub fn on_error(mut self, handler: impl Fn(&Condition) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(handler));
        self
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.backoff = backoff;
        self
    }

    /// Makes actors panic where a test wants it.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Two reflectors of a kind with the same text are the same.
    pub(crate) fn fingerprint(&self) -> String {
        let place = |pointer: *const ()| pointer as usize;
        let indices: Vec<_> = self
            .indices
            .iter()
            .map(|(name, function)| (name, place(Arc::as_ptr(function).cast())))
            .collect();
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            self.name,
            self.selection,
            self.page_size,
            self.streaming_lists,
            self.watch_timeout,
            self.audit,
            self.keep_unserved,
            self.resync,
            self.discipline,
            self.prune,
            self.transform.as_ref().map(Transform::identity),
            indices,
            self.should_resync.as_ref().map(|hook| place(Arc::as_ptr(hook).cast())),
            self.on_error.as_ref().map(|hook| place(Arc::as_ptr(hook).cast())),
            self.backoff,
        )
    }
}

impl<K: Resource> Options<K> {
    /// Refuses what can not be meant.
    pub(crate) fn check(&self, kind: &Kind) -> Result<(), InvalidOptions> {
        let problem = |problem: String| Err(InvalidOptions { kind: kind.to_string(), problem });
        match (&self.selection.namespace, kind.scope) {
            (Some(namespace), _) if !is_segment(namespace) => {
                return problem(format!(
                    "{namespace:?} is no namespace: leave it out to reflect all of them"
                ));
            }
            (Some(_), Scope::Cluster) => {
                return problem(format!(
                    "a {} is in no namespace: leave the namespace out",
                    kind.kind
                ));
            }
            (Some(_) | None, _) => {}
        }
        if ![&kind.version, &kind.plural].into_iter().all(|part| is_segment(part)) {
            return problem("its version and plural name can not stand in a path".to_owned());
        }
        if let Some(labels) = &self.selection.labels
            && let Err(error) = labels.parse::<LabelSelector>()
        {
            return problem(error.to_string());
        }
        if let Some(fields) = &self.selection.fields
            && let Err(error) = fields.parse::<FieldSelector>()
        {
            return problem(error.to_string());
        }
        if self.page_size == Some(0) {
            return problem("a page of 0 objects never ends: write 500".to_owned());
        }
        if self.watch_timeout < MIN_WATCH_TIMEOUT {
            return problem(format!(
                "a watch of {:?} would be opened too often: write at least {MIN_WATCH_TIMEOUT:?}",
                self.watch_timeout
            ));
        }
        if self.watch_timeout > MAX_WATCH_TIMEOUT {
            return problem(format!(
                "a watch of {:?} would not notice a lost connection: write at most {MAX_WATCH_TIMEOUT:?}",
                self.watch_timeout
            ));
        }
        if self.audit.is_some_and(|period| !(MIN_AUDIT..=MAX_AUDIT).contains(&period)) {
            return problem(format!(
                "an audit asks for every object: write {MIN_AUDIT:?} to {MAX_AUDIT:?}, or leave it out for none"
            ));
        }
        let BackoffOptions { first, factor, cap, jitter, .. } = self.backoff;
        if first.is_zero()
            || first > cap
            || cap > MAX_BACKOFF
            || factor < 1.0
            || !(0.0..=1.0).contains(&jitter)
        {
            return problem(format!(
                "the backoff has to grow from a first delay above 0 to a cap of at most {MAX_BACKOFF:?}, with a factor \
                 of at least 1 and a jitter from 0 to 1"
            ));
        }
        if self.resync.is_some_and(|period| period < MIN_RESYNC) {
            return problem(format!(
                "a resync period is at least {MIN_RESYNC:?}; leave it out for none"
            ));
        }
        if self.resync.is_none() && self.should_resync.is_some() {
            return problem(
                "should_resync is never asked without a resync period: set one".to_owned(),
            );
        }
        let mut names: Vec<&String> = self.indices.iter().map(|(name, _)| name).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return problem(format!("there are two indices {:?}: choose another name", twice[0]));
        }
        Ok(())
    }
}

/// Whether a text may stand between two slashes of a path.
fn is_segment(text: &str) -> bool {
    !text.is_empty()
        && text != "."
        && text != ".."
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}

impl<K> Clone for Options<K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            selection: self.selection.clone(),
            page_size: self.page_size,
            streaming_lists: self.streaming_lists,
            watch_timeout: self.watch_timeout,
            audit: self.audit,
            keep_unserved: self.keep_unserved,
            resync: self.resync,
            discipline: self.discipline,
            prune: self.prune,
            transform: self.transform.clone(),
            indices: self.indices.clone(),
            should_resync: self.should_resync.clone(),
            on_error: self.on_error.clone(),
            backoff: self.backoff,
            faults: self.faults.clone(),
        }
    }
}

impl<K> fmt::Debug for Options<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;
    use crate::object::StaticKind;

    fn problem<K: StaticKind>(options: &Options<K>) -> String {
        options
            .check(&K::static_kind())
            .map_or_else(|error| error.to_string(), |()| "none".to_owned())
    }

    #[test]
    fn options_that_can_not_be_meant_are_refused_with_what_to_write() {
        let seconds = Duration::from_secs;
        let backwards = BackoffOptions { factor: 0.5, ..BackoffOptions::default() };
        for (options, expected) in [
            (Options::all().namespace(""), "is no namespace: leave it out"),
            (Options::all().namespace("a/b"), "is no namespace"),
            (Options::all().labels("app near (web)"), "the operators of sets are in and notin"),
            (Options::all().fields("status.phase"), "write path=value or path!=value"),
            (Options::all().page_size(0), "write 500"),
            (Options::all().watch_timeout(seconds(10)), "write at least 300s"),
            (Options::all().watch_timeout(Duration::MAX), "write at most 86400s"),
            (Options::all().backoff(backwards), "the backoff has to grow"),
            (Options::all().resync(Duration::from_millis(1)), "at least 1s"),
            (Options::all().audit(seconds(10)), "write 60s to 604800s"),
            (Options::all().audit(Duration::MAX), "write 60s to 604800s"),
            (Options::all().should_resync(|| true), "set one"),
            (Options::all().index("a", |_| vec![]).index("a", |_| vec![]), "two indices \"a\""),
        ] {
            let problem = problem::<Pod>(&options);
            assert!(
                problem.starts_with("can not reflect pods: ") && problem.contains(expected),
                "{problem}"
            );
        }
        assert!(
            problem::<Node>(&Options::all().namespace("default"))
                .contains("a Node is in no namespace")
        );
        assert_eq!(problem::<Pod>(&Options::all().namespace("default").labels("app=web")), "none");
    }

    #[test]
    fn options_are_the_same_when_their_hooks_are_the_same() {
        let indexed = || {
            Options::<Pod>::all().index("name", |pod| pod.metadata.name.iter().cloned().collect())
        };
        let options = indexed();
        let same = options.clone().watch_timeout(MIN_WATCH_TIMEOUT);
        assert_eq!(options.fingerprint(), same.fingerprint());
        assert_ne!(Options::<Pod>::all().fingerprint(), options.fingerprint());
        assert_ne!(
            Options::<Pod>::all().fingerprint(),
            Options::<Pod>::all().namespace("a").fingerprint()
        );
    }
}
