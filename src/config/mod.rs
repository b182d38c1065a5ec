//! What the program is told to do: `kubeflect.toml`.
//!
//! [`Config::read`] takes the file as it is written and gives it as it is meant, or everything that is wrong with it,
//! one line each. `config/kubeflect.toml` in the repository has every setting with its default.
//!
//! ```
//! use kubeflect::config::Config;
//!
//! let config = Config::parse("kubeflect.toml".as_ref(), r#"
//!     [reflectors.web]
//!     kind = "pods"
//!     labels = "app=web"
//! "#)?;
//! assert_eq!(config.reflectors["web"].labels.as_deref(), Some("app=web"));
//!
//! let wrong = Config::parse("kubeflect.toml".as_ref(), "[reflectors.web]\nkind = 3").unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "kubeflect.toml:2: reflectors.web.kind: found 3, write the name of a kind as kubectl takes it, like \"pods\"",
//! );
//! # Ok::<(), kubeflect::config::InvalidConfig>(())
//! ```

mod checked;
mod field_path;
mod file;
mod invalid;
mod reflectors;
mod sinks;
#[cfg(test)]
mod tests;
mod units;

pub use self::checked::{ClusterSettings, Config, PageSettings};
pub use self::field_path::FieldPath;
pub use self::invalid::{InvalidConfig, InvalidSetting};
pub use self::reflectors::{ReflectorSettings, Representation};
pub use self::sinks::{
    EventsSettings, JsonSettings, Output, SinkKind, SinkSettings, WebhookSettings,
};
