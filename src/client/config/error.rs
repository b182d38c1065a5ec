use std::fmt;
use std::path::Path;

/// A configuration that can not be used, in one line: where it is, which field, and what to do about it.
///
/// It holds nothing secret, and nothing of the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    place: String,
    field: Option<String>,
    problem: String,
}

impl ConfigError {
    /// Something is wrong with a file, a variable or an address as a whole.
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), field: None, problem: problem.into() }
    }

    /// Something is wrong with one field of a file.
    pub(crate) fn field(file: &Path, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: file.display().to_string(),
            field: Some(field.into()),
            problem: problem.into(),
        }
    }

    /// The file, the variable or the address it is about.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The field of the file, as a path like `clusters[dev].cluster.server`.
    pub fn in_field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What is wrong, and what to do.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ConfigError {}
