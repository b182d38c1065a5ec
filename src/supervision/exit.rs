use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::task::JoinError;

/// How an actor ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// It stopped: by itself, because it was told to, or because nobody could address it any more.
    Stopped,
    /// It panicked, with this text.
    Panicked(String),
    /// It was cut off from outside, by an abort or the end of its arbiter.
    Aborted,
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Aborted => f.write_str("aborted"),
        }
    }
}

impl ExitReason {
    /// The text of the panic, if that was it.
    pub(super) fn panic_text(self) -> Option<String> {
        match self {
            Self::Panicked(text) => Some(text),
            Self::Stopped | Self::Aborted => None,
        }
    }

    /// What the end of a task says about the actor in it.
    pub(super) fn of(joined: Result<Self, JoinError>) -> Self {
        match joined {
            Ok(reason) => reason,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => Self::Panicked(text_of(payload.as_ref())),
                Err(_cancelled) => Self::Aborted,
            },
        }
    }
}

/// Does `action`, and gives the text of its panic if it panics.
///
/// Whoever calls this looks at nothing `action` may have left half done: an actor that panicked is rebuilt by
/// `Supervised::restarting`, or dropped.
pub(super) fn caught<T>(action: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|payload| text_of(payload.as_ref()))
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_by_its_text() {
        crate::supervision::tests::silence_expected_panics();
        assert_eq!(caught(|| -> () { panic!("expected") }), Err("expected".into()));
        assert_eq!(caught(|| -> () { panic!("expected {}", 1) }), Err("expected 1".into()));
        let opaque = caught(|| -> () { std::panic::resume_unwind(Box::new(1)) });
        assert_eq!(opaque, Err("a panic without text".into()));
    }

    #[test]
    fn an_exit_reads_as_a_sentence() {
        assert_eq!(ExitReason::Panicked("no luck".into()).to_string(), "panicked: no luck");
        assert_eq!(ExitReason::Aborted.to_string(), "aborted");
    }
}
