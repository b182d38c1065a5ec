use std::fmt;
use std::path::Path;

use super::file::File;

/// Everything that is wrong with a configuration, one line each, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidConfig {
    /// At least one.
    pub problems: Vec<InvalidSetting>,
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting {
    /// Which file.
    pub file: String,
    /// In which line, unless it is about the whole file.
    pub line: Option<usize>,
    /// Which setting, like `reflectors.pods.kind`; empty when it is about none.
    pub key: String,
    /// What was found, and what to write instead.
    pub problem: String,
}

impl InvalidSetting {
    /// What turned out to be wrong with a setting of a file after it had been read: with its line and what it has.
    ///
    /// ```
    /// use kubeflect::config::InvalidSetting;
    ///
    /// let text = "[sinks.lines]\ntype = 'json'\npath = '/nowhere/a.jsonl'\n";
    /// let keys = ["sinks", "lines", "path"];
    /// assert_eq!(
    ///     InvalidSetting::at("k.toml".as_ref(), text, &keys, "there is no such folder").to_string(),
    ///     "k.toml:3: sinks.lines.path: found \"/nowhere/a.jsonl\", there is no such folder",
    /// );
    /// ```
    pub fn at(file: &Path, text: &str, keys: &[&str], problem: &str) -> Self {
        File::problem_at(file, text, keys, problem)
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidConfig {}
