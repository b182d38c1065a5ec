use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// Where in an object something is: `spec.nodeName`, `metadata.labels['app.kubernetes.io/name']`,
/// `spec.containers[*].image`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Each,
}

impl FieldPath {
    /// The texts, numbers and truth values found there; nothing where there is none.
    pub fn values(&self, object: &Value) -> Vec<String> {
        let mut found = vec![object];
        for step in &self.steps {
            found = match step {
                Step::Field(name) => found.iter().filter_map(|value| value.get(name)).collect(),
                Step::Each => found.iter().filter_map(|value| value.as_array()).flatten().collect(),
            };
        }
        found.into_iter().filter_map(text).collect()
    }

    /// Whether it leads into the metadata of an object.
    pub fn is_metadata(&self) -> bool {
        self.steps.first() == Some(&Step::Field("metadata".to_owned()))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FieldPath {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (mut rest, mut steps) = (text, Vec::new());
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(Step::Each);
                rest = after;
            } else if let Some(quoted) = rest.strip_prefix("['") {
                let (name, after) = quoted.split_once("']").ok_or(())?;
                steps.push(Step::Field(name.to_owned()));
                rest = after;
            } else {
                let name = rest.strip_prefix('.').filter(|_| !steps.is_empty()).unwrap_or(rest);
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let is_name = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
                if end == 0 || !name[..end].chars().all(is_name) {
                    return Err(());
                }
                steps.push(Step::Field(name[..end].to_owned()));
                rest = &name[end..];
            }
        }
        if steps.is_empty() { Err(()) } else { Ok(Self { text: text.to_owned(), steps }) }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_what_is_there() {
        let pod = json!({
            "metadata": { "labels": { "app.kubernetes.io/name": "web" } },
            "spec": { "nodeName": "node-1", "containers": [{ "image": "a" }, { "image": "b" }, {}] },
            "status": { "ready": true },
        });
        for (path, values) in [
            ("spec.nodeName", vec!["node-1"]),
            ("metadata.labels['app.kubernetes.io/name']", vec!["web"]),
            ("spec.containers[*].image", vec!["a", "b"]),
            ("status.ready", vec!["true"]),
            ("spec", vec![]),
            ("spec.nothing.here", vec![]),
        ] {
            assert_eq!(path.parse::<FieldPath>().unwrap().values(&pod), values, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", ".spec", "spec..name", "spec.", "spec['a", "spec name", "spec[0]"] {
            assert_eq!(text.parse::<FieldPath>(), Err(()), "{text}");
        }
    }
}
