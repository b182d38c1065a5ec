//! Every row of the transition table. An input is answered with effects, written `report, wait 0.8s`, `list >=7`,
//! `stream newest`, `watch 7`.

mod course;
mod decisions;
mod freshness;
mod lists;
mod pace;
mod watches;

use super::*;
use crate::api::{VersionMatch, WatchStart};
use crate::reflector::history::Older;

/// One course of events. Its clock goes only when told to.
pub(super) struct Play {
    pub(super) machine: Machine,
    pub(super) now: Instant,
}

impl Play {
    fn new(streaming: Streaming, jitter: f64) -> Self {
        let settings = Settings {
            selection: Arc::default(),
            page_size: None,
            watch_timeout: Duration::from_secs(300),
            streaming,
            backoff: BackoffOptions { jitter, ..BackoffOptions::default() },
            keep_unserved: Duration::from_secs(300),
        };
        let machine = Machine::new(settings, fastrand::Rng::with_seed(7));
        Self { machine, now: Instant::now() }
    }

    /// Lists are streamed.
    pub(super) fn streaming() -> Self {
        Self::new(Streaming::Possible, 0.0)
    }

    /// Lists are not streamed.
    pub(super) fn listing() -> Self {
        Self::new(Streaming::Never, 0.0)
    }

    /// A watch has just been answered; the cache has come up to 7.
    fn watching() -> Self {
        let mut play = Self::listing();
        play.all([start(""), listed("7"), Input::WatchOpened]);
        play
    }

    pub(super) fn step(&mut self, input: Input) -> String {
        let effects = self.machine.step(input, self.now);
        effects.iter().map(written).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn all(&mut self, inputs: impl IntoIterator<Item = Input>) {
        for input in inputs {
            self.step(input);
        }
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Lets the wait it is in pass.
    pub(super) fn wait(&mut self) -> String {
        self.now = self.machine.next_attempt().expect("it waits");
        self.step(Input::WaitOver)
    }

    /// How long it waits from now on.
    pub(super) fn delay(&self) -> Duration {
        self.machine.next_attempt().expect("it waits") - self.now
    }

    /// A watch that is answered, and lives for so long.
    fn live(&mut self, seconds: u64) {
        self.step(Input::WatchOpened);
        self.after(seconds);
    }

    fn stale_for(&self) -> Option<u64> {
        match self.machine.freshness() {
            Freshness::Stale { since, .. } => Some((self.now - *since).as_secs()),
            Freshness::Unknown | Freshness::Fresh => None,
        }
    }
}

fn written(effect: &Effect) -> String {
    let newest = |version: Option<&ResourceVersion>| {
        version.map_or("newest".to_owned(), |version| format!(">={version}"))
    };
    match effect {
        Effect::Report(..) => "report".to_owned(),
        Effect::Wait(delay) => format!("wait {delay:?}"),
        Effect::Abort => "abort".to_owned(),
        Effect::AskWhetherServed(_) => "ask".to_owned(),
        Effect::Forget => "forget".to_owned(),
        Effect::List { request, older } => {
            let version = match &request.version {
                Some(VersionMatch::NotOlderThan(version)) => Some(version),
                Some(VersionMatch::Exact(_)) => panic!("nothing asks for an exact version"),
                None => None,
            };
            let pages = request.limit.map(|limit| format!(" by {limit}")).unwrap_or_default();
            format!("list {}{pages}{}", newest(version), even_if(*older))
        }
        Effect::Watch { request, older, .. } => match &request.start {
            WatchStart::After(version) => format!("watch {version}"),
            WatchStart::InitialEvents { not_older_than } => {
                format!("stream {}{}", newest(not_older_than.as_ref()), even_if(*older))
            }
        },
    }
}

fn even_if(older: Older) -> &'static str {
    match older {
        Older::Refused => "",
        Older::Accepted => " even if older",
    }
}

pub(super) fn position(version: &str) -> Option<ResourceVersion> {
    ResourceVersion::new(version)
}

pub(super) fn start(version: &str) -> Input {
    Input::Start { position: position(version) }
}

pub(super) fn listed(version: &str) -> Input {
    Input::Listed { resource_version: position(version).unwrap() }
}

pub(super) fn initial_events_ended(version: &str) -> Input {
    Input::InitialEventsEnded { resource_version: position(version).unwrap() }
}

fn error(code: u16) -> ApiError {
    ApiError::from_code(code, String::new(), None)
}

fn too_many(retry_after: u64) -> ApiError {
    ApiError::TooManyRequests { retry_after: Some(Duration::from_secs(retry_after)) }
}

fn too_large(retry_after: Option<u64>) -> ApiError {
    ApiError::NotYetServed { retry_after: retry_after.map(Duration::from_secs) }
}

fn list_failed(code: u16) -> Input {
    Input::ListFailed(error(code))
}

fn ended(end: WatchEnd, version: &str) -> Input {
    Input::WatchEnded { end, position: position(version), record: Record::default() }
}

fn closed(version: &str) -> Input {
    ended(WatchEnd::Closed, version)
}

pub(super) fn store_restarted() -> Input {
    Input::StoreRestarted { position: None }
}

pub(super) fn failed(error: ApiError, version: &str) -> Input {
    ended(WatchEnd::Failed(error), version)
}

fn panicked(version: &str) -> Input {
    Input::ChildPanicked { panic: "text".to_owned(), position: position(version) }
}
