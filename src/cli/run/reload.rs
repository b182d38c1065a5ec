use std::fs;
use std::path::{Path, PathBuf};

use kubeflect::config::{Config, InvalidConfig, InvalidSetting};

use super::reflections::Reflections;
use crate::cli::screen::Screen;

/// Where a configuration is written: it names the place of what turns out wrong later.
#[derive(Debug, Clone, Default)]
pub(super) struct Source(Option<(PathBuf, String)>);

impl Source {
    pub(super) fn invalid(&self, keys: &[&str], problem: &str) -> String {
        match &self.0 {
            Some((path, text)) => InvalidSetting::at(path, text, keys, problem).to_string(),
            None => format!("{}: {problem}", keys.join(".")),
        }
    }
}

/// The file a configuration came from, looked at again and again.
pub(super) struct ConfigFile {
    path: PathBuf,
    /// As it was when it was read last, whether it was taken or refused.
    read: String,
    /// Another text that was seen once: it is taken when it is still there the next time, and so written to its end.
    seen: Option<String>,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> Result<(Self, Config), InvalidConfig> {
        let config = Config::read(path)?;
        let read = fs::read_to_string(path).unwrap_or_default();
        Ok((Self { path: path.to_owned(), read, seen: None }, config))
    }

    /// As it was read last.
    pub(super) fn source(&self) -> Source {
        Source(Some((self.path.clone(), self.read.clone())))
    }

    /// Whether it has another text than before, and has had it for a moment.
    pub(super) fn has_changed(&mut self) -> bool {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) if text != self.read => text,
            // It may be away for a moment while it is replaced.
            _ => {
                self.seen = None;
                return false;
            }
        };
        let is_settled = self.seen.as_ref() == Some(&text);
        self.seen = Some(text);
        is_settled
    }

    /// Does what the file says now; if that can not be meant, goes on as before.
    pub(super) async fn reload(&mut self, reflections: &mut Reflections, screen: &Screen) {
        self.seen = None;
        if let Ok(text) = fs::read_to_string(&self.path) {
            self.read = text;
        }
        let changed = match Config::read(&self.path) {
            Ok(config) => {
                let changed = reflections.change_to(config, self.source()).await;
                changed.map_err(|failure| failure.to_string())
            }
            Err(invalid) => Err(invalid.to_string()),
        };
        let path = self.path.display();
        match changed {
            Ok(changes) => screen.note(&format!("kubeflect: {path} read again: {changes}")),
            Err(problem) => {
                screen.note(&format!(
                    "kubeflect: {path} is refused, the configuration before stays in force:"
                ));
                screen.note(&problem);
            }
        }
    }
}
