use std::str::FromStr;

use serde_json::Value;

/// As much of `JSONPath` as definitions of kinds use: `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonPath(Vec<Step>);

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(usize),
    All,
    /// Elements in which a member has a value.
    Where(Vec<Self>, String),
}

/// A path that uses more than that.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooHard;

impl JsonPath {
    /// Whether it is the time at which an object was created.
    pub(super) fn is_creation(&self) -> bool {
        let wanted = ["metadata", "creationTimestamp"];
        self.0.len() == wanted.len()
            && self.0.iter().zip(wanted).all(|(step, name)| *step == Step::Member(name.to_owned()))
    }

    /// What there is in an object, whose metadata is apart from its data.
    pub(super) fn find(&self, data: &Value, metadata: impl FnOnce() -> Value) -> Vec<Value> {
        match self.0.split_first() {
            Some((Step::Member(name), rest)) if name == "metadata" => walk(vec![metadata()], rest),
            _ => walk(vec![data.clone()], &self.0),
        }
    }
}

fn walk(values: Vec<Value>, steps: &[Step]) -> Vec<Value> {
    steps.iter().fold(values, |values, step| {
        values.into_iter().flat_map(|value| taken(value, step)).collect()
    })
}

fn taken(mut value: Value, step: &Step) -> Vec<Value> {
    match step {
        Step::Member(name) => value.get_mut(name).map(Value::take).into_iter().collect(),
        Step::Element(at) => value.get_mut(*at).map(Value::take).into_iter().collect(),
        Step::All => elements(value),
        Step::Where(path, wanted) => {
            let wanted = Value::String(wanted.clone());
            let has = |element: &Value| walk(vec![element.clone()], path).contains(&wanted);
            elements(value).into_iter().filter(has).collect()
        }
    }
}

fn elements(value: Value) -> Vec<Value> {
    match value {
        Value::Array(elements) => elements,
        Value::Object(members) => members.into_iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    }
}

impl FromStr for JsonPath {
    type Err = TooHard;

    fn from_str(text: &str) -> Result<Self, TooHard> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        steps(text.strip_prefix('$').unwrap_or(text)).map(Self)
    }
}

fn steps(mut text: &str) -> Result<Vec<Step>, TooHard> {
    let mut steps = Vec::new();
    while !text.is_empty() {
        if let Some(inside) = text.strip_prefix('[') {
            let end = closing(inside).ok_or(TooHard)?;
            steps.push(bracket(&inside[..end])?);
            text = &inside[end + 1..];
            continue;
        }
        let rest = text.strip_prefix('.').ok_or(TooHard)?;
        // A dot of a name is written as `\.`.
        let mut name = String::new();
        let mut letters = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
                '.' | '[' => {
                    end = at;
                    break;
                }
                _ => name.push(letter),
            }
        }
        match name.as_str() {
            // `..` looks everywhere.
            "" => return Err(TooHard),
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Member(name)),
        }
        text = &rest[end..];
    }
    Ok(steps)
}

/// Where a bracket ends, which may have others and texts in it.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(inside: &str) -> Result<Step, TooHard> {
    let inside = inside.trim();
    if inside == "*" {
        return Ok(Step::All);
    }
    if let Some(name) = unquoted(inside) {
        return Ok(Step::Member(name.to_owned()));
    }
    if let Ok(at) = inside.parse() {
        return Ok(Step::Element(at));
    }
    let condition = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')'));
    let (path, wanted) = condition.and_then(|it| it.split_once("==")).ok_or(TooHard)?;
    let path = steps(path.trim().strip_prefix('@').ok_or(TooHard)?)?;
    let wanted = wanted.trim();
    Ok(Step::Where(path, unquoted(wanted).unwrap_or(wanted).to_owned()))
}

fn unquoted(text: &str) -> Option<&str> {
    let between = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    between('\'').or_else(|| between('"'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_paths_of_definitions_find_what_they_mean() {
        let data = json!({
            "spec": { "size": 3, "hosts": ["a", "b"], "a.b/c": "dotted" },
            "status": { "conditions": [{ "type": "Old", "status": "no" }, { "type": "Ready", "status": "True" }] },
        });
        let metadata = || json!({ "labels": { "app": "web" } });
        for (path, found) in [
            (".spec.size", json!([3])),
            ("{.spec.size}", json!([3])),
            ("$.spec.hosts[1]", json!(["b"])),
            (".spec.hosts[*]", json!(["a", "b"])),
            (".spec['a.b/c']", json!(["dotted"])),
            (r".spec.a\.b/c", json!(["dotted"])),
            (".metadata.labels.app", json!(["web"])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type == 'Ready')].status", json!(["True"])),
            (".status.nothing.here", json!([])),
        ] {
            let parsed: JsonPath = path.parse().unwrap();
            assert_eq!(json!(parsed.find(&data, metadata)), found, "{path}");
        }
        for path in ["spec", "..size", ".a[", ".a[?(@.b>1)]", ".a[1:2]"] {
            assert_eq!(path.parse::<JsonPath>(), Err(TooHard), "{path}");
        }
    }
}
