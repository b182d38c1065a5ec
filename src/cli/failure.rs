use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use kubeflect::client::ConfigError;
use kubeflect::config::InvalidConfig;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong on the way.
    Failed(String),
    /// What was asked for can not be meant.
    Usage(String),
    /// Somebody ended it before it was done.
    Interrupted,
}

impl Failure {
    /// With a text that says what to do.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// What is printed can not be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self::Failed(format!("can not write to stdout: {error}"))
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Usage(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<InvalidConfig> for Failure {
    fn from(error: InvalidConfig) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Failed(chain(&error))
    }
}

impl From<kubeflect::Error> for Failure {
    fn from(error: kubeflect::Error) -> Self {
        match error {
            kubeflect::Error::Options(_) => Self::Usage(chain(&error)),
            _ => Self::Failed(chain(&error)),
        }
    }
}

impl From<kubeflect::api::ApiError> for Failure {
    fn from(error: kubeflect::api::ApiError) -> Self {
        Self::Failed(chain(&error))
    }
}

/// What went wrong, and why, cause by cause.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        // Some say what their cause says.
        if !message.ends_with(&why) {
            message = format!("{message}: {why}");
        }
        cause = error.source();
    }
    message
}
