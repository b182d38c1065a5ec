use std::fmt;
use std::str::FromStr;

/// A field selector as kubectl's `--field-selector` takes it: `spec.nodeName=node-1,status.phase!=Running`.
///
/// In a value a backslash stands before every `,`, `=` and `\`; [`equal`](Self::equal) and
/// [`not_equal`](Self::not_equal) write it there.
///
/// ```
/// use kubeflect::object::FieldSelector;
///
/// let selector = FieldSelector::default().equal("metadata.name", "a,b")?.not_equal("status.phase", "Failed")?;
/// assert_eq!(selector.to_string(), r"metadata.name=a\,b,status.phase!=Failed");
/// # Ok::<(), kubeflect::object::ParseFieldSelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector(Vec<Requirement>);

/// A text that is not a field selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a field selector: {problem}")]
pub struct ParseFieldSelectorError {
    text: String,
    problem: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    path: String,
    value: String,
    must_equal: bool,
}

impl FieldSelector {
    /// Of those, only objects whose field has this value.
    ///
    /// # Errors
    /// When the path is none.
    pub fn equal(self, path: &str, value: &str) -> Result<Self, ParseFieldSelectorError> {
        self.and(path, value, true)
    }

    /// Of those, only objects whose field has another value.
    ///
    /// # Errors
    /// When the path is none.
    pub fn not_equal(self, path: &str, value: &str) -> Result<Self, ParseFieldSelectorError> {
        self.and(path, value, false)
    }

    /// Whether every object is selected.
    pub fn selects_all(&self) -> bool {
        self.0.is_empty()
    }

    fn and(
        mut self,
        path: &str,
        value: &str,
        must_equal: bool,
    ) -> Result<Self, ParseFieldSelectorError> {
        let problem = |problem| ParseFieldSelectorError { text: path.to_owned(), problem };
        let path = checked_path(path).map_err(problem)?;
        self.0.push(Requirement { path, value: value.to_owned(), must_equal });
        Ok(self)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, Requirement { path, value, must_equal }) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{path}{}", if *must_equal { "=" } else { "!=" })?;
            for c in value.chars() {
                if matches!(c, ',' | '=' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = ParseFieldSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let problem = |problem| ParseFieldSelectorError { text: text.to_owned(), problem };
        let terms = unescaped_split(text).into_iter().filter(|term| !term.is_empty());
        Ok(Self(terms.map(requirement).collect::<Result<_, _>>().map_err(problem)?))
    }
}

/// Splits at every comma without a backslash before it.
fn unescaped_split(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let here = !escaped && c == ',';
        escaped = !escaped && c == '\\';
        here
    })
    .collect()
}

fn requirement(term: &str) -> Result<Requirement, &'static str> {
    let at = term.find('=').ok_or("write path=value or path!=value")?;
    let (path, value) = (&term[..at], &term[at + 1..]);
    let (path, value, must_equal) = match path.strip_suffix('!') {
        Some(path) => (path, value, false),
        None => (path, value.strip_prefix('=').unwrap_or(value), true),
    };
    Ok(Requirement { path: checked_path(path)?, value: unescape(value)?, must_equal })
}

fn checked_path(path: &str) -> Result<String, &'static str> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "._-/[]".contains(c);
    if path.is_empty() || !path.chars().all(valid) {
        return Err("the path of a field holds letters, digits and . _ - / [ ]");
    }
    Ok(path.to_owned())
}

fn unescape(value: &str) -> Result<String, &'static str> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => chars
                .next()
                .filter(|c| matches!(c, ',' | '=' | '\\'))
                .ok_or(r"a backslash stands only before , = and \")?,
            '=' => return Err(r"an equals sign in a value is written \="),
            c if c.is_control() => return Err("a value holds no control characters"),
            c => c,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_read_as_kubernetes_reads_it() {
        for (text, written) in [
            ("", ""),
            ("metadata.name=a", "metadata.name=a"),
            ("metadata.name==a", "metadata.name=a"),
            ("status.phase!=Running,spec.nodeName=", "status.phase!=Running,spec.nodeName="),
            (",metadata.name=a,", "metadata.name=a"),
            (r"metadata.name=a\,b\=c\\", r"metadata.name=a\,b\=c\\"),
        ] {
            let selector: FieldSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), written);
            assert_eq!(written.parse::<FieldSelector>().unwrap(), selector);
        }
    }

    #[test]
    fn a_bad_selector_is_refused_with_its_problem() {
        for (text, problem) in [
            ("metadata.name", "write path=value"),
            ("=a", "the path of a field"),
            ("a b=c", "the path of a field"),
            ("a=b=c", "an equals sign"),
            (r"a=b\n", "a backslash stands only before"),
            ("a=b\\", "a backslash stands only before"),
            ("a=b\n", "no control characters"),
        ] {
            let error = text.parse::<FieldSelector>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_value_can_not_add_requirements() {
        let selector = FieldSelector::default().equal("metadata.name", "a,b=c\\").unwrap();
        assert_eq!(selector.to_string().parse::<FieldSelector>().unwrap(), selector);
        assert!(FieldSelector::default().equal("metadata.name=b,x", "a").is_err());
    }
}
