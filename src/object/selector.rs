use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kube_core::{Expression, Selector, SelectorExt as _};

/// A label selector as kubectl's `-l` takes it: `app=web,tier in (front, back),!canary`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector(Selector);

/// A text that is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a label selector: {problem}")]
pub struct ParseSelectorError {
    text: String,
    problem: &'static str,
}

impl LabelSelector {
    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
        self.0.matches(labels.unwrap_or(&NO_LABELS))
    }

    /// Of those, only objects whose label has this value.
    ///
    /// # Errors
    /// When that can be no label.
    pub fn equal(self, key: &str, value: &str) -> Result<Self, ParseSelectorError> {
        self.and(Expression::Equal(key.to_owned(), value.to_owned()))
    }

    /// Of those, only objects whose label has another value, or that do not have it.
    ///
    /// # Errors
    /// When that can be no label.
    pub fn not_equal(self, key: &str, value: &str) -> Result<Self, ParseSelectorError> {
        self.and(Expression::NotEqual(key.to_owned(), value.to_owned()))
    }

    /// Of those, only objects of which this is true.
    ///
    /// # Errors
    /// When a key or a value can be none: then it would be read as something else.
    pub fn and(mut self, expression: Expression) -> Result<Self, ParseSelectorError> {
        let problem = "a key or a value in it is none";
        let text = expression.to_string();
        let meant = Self(std::iter::once(expression.clone()).collect());
        match text.parse::<Self>() {
            Ok(read) if read == meant => {
                self.0.extend(std::iter::once(expression));
                Ok(self)
            }
            Ok(_) => Err(ParseSelectorError { text, problem }),
            Err(error) => Err(error),
        }
    }

    /// Whether every object is selected.
    pub fn selects_all(&self) -> bool {
        self.0.selects_all()
    }
}

impl From<Selector> for LabelSelector {
    fn from(selector: Selector) -> Self {
        Self(selector)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LabelSelector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let problem = |problem| ParseSelectorError { text: text.to_owned(), problem };
        let expressions: Result<Vec<Expression>, _> = split_outside_parentheses(text)
            .filter(|part| !part.is_empty())
            .map(expression)
            .collect();
        Ok(Self(expressions.map_err(problem)?.into_iter().collect()))
    }
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
    .map(str::trim)
}

fn expression(text: &str) -> Result<Expression, &'static str> {
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(label_key(key)?));
    }
    if let Some((head, values)) = text.split_once('(') {
        let values =
            values.strip_suffix(')').ok_or("a set is written in parentheses: key in (a, b)")?;
        let values = values.split(',').map(label_value).collect::<Result<_, _>>()?;
        let (key, operator) = head
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or("a set needs an operator: key in (a, b)")?;
        return match operator {
            "in" => Ok(Expression::In(label_key(key)?, values)),
            "notin" => Ok(Expression::NotIn(label_key(key)?, values)),
            _ => Err("the operators of sets are in and notin"),
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Expression::NotEqual(label_key(key)?, label_value(value)?));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Expression::Equal(label_key(key)?, label_value(value)?));
    }
    Ok(Expression::Exists(label_key(text)?))
}

fn label_key(text: &str) -> Result<String, &'static str> {
    let key = text.trim();
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(valid) || key.matches('/').count() > 1 {
        return Err("a label key holds letters, digits, - _ . and at most one /");
    }
    Ok(key.to_owned())
}

fn label_value(text: &str) -> Result<String, &'static str> {
    let value = text.trim();
    if value.len() > 63 || !value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return Err("a label value holds at most 63 letters, digits, - _ .");
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        selector.parse::<LabelSelector>().unwrap().matches(Some(&labels))
    }

    #[test]
    fn each_operator_selects_as_kubectl_does() {
        let web = [("app", "web"), ("tier", "front")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app=db", false),
            ("app!=db", true),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app notin (web,db)", false),
            ("tier", true),
            ("!tier", false),
            ("app=web,tier in (back)", false),
            ("app in (web,db),!canary", true),
        ] {
            assert_eq!(selects(selector, &web), expected, "{selector:?}");
        }
    }

    #[test]
    fn an_object_without_labels_can_be_selected() {
        assert!("!app".parse::<LabelSelector>().unwrap().matches(None));
        assert!(!"app".parse::<LabelSelector>().unwrap().matches(None));
    }

    #[test]
    fn a_bad_selector_is_refused_with_its_problem() {
        for text in
            ["app in web", "a b", "app in (web", "=x", "app=a b", "a/b/c=d", "app near (web)"]
        {
            assert!(text.parse::<LabelSelector>().is_err(), "{text:?}");
        }
        let error = "app near (web)".parse::<LabelSelector>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#""app near (web)" is not a label selector: the operators of sets are in and notin"#
        );
    }

    #[test]
    fn a_selector_that_is_built_is_read_back_and_can_not_be_added_to() {
        let values = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
        let selector = LabelSelector::default()
            .equal("app", "web")
            .and_then(|selector| selector.not_equal("example.com/tier", "back"))
            .and_then(|selector| selector.and(Expression::In("a".to_owned(), values(&["b", "c"]))))
            .and_then(|selector| selector.and(Expression::DoesNotExist("canary".to_owned())))
            .unwrap();
        assert_eq!(selector.to_string().parse::<LabelSelector>().unwrap(), selector);

        for (key, value) in [("app", "a,b=c"), ("app", "a)"), ("", "a"), ("a,b", "c"), ("!a", "b")]
        {
            assert!(LabelSelector::default().equal(key, value).is_err(), "{key}={value}");
        }
        let nothing = Expression::In("a".to_owned(), values(&[]));
        assert!(LabelSelector::default().and(nothing).is_err());
        let hidden = Expression::In("a".to_owned(), values(&["b)", "c in (d"]));
        assert!(LabelSelector::default().and(hidden).is_err());
    }
}
