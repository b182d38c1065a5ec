use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api::ApiError;
use crate::object::Kind;

/// What stays as it is in a segment of a path.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// The addresses of one kind, in one namespace or in all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) kind: &'a Kind,
    pub(super) namespace: Option<&'a str>,
}

impl Place<'_> {
    /// `/api/v1/pods`, `/apis/apps/v1/namespaces/default/deployments`.
    pub(super) fn collection(self) -> Result<String, ApiError> {
        let mut path = version_path(&self.kind.group, &self.kind.version)?;
        if let Some(namespace) = self.namespace {
            path.push_str("/namespaces/");
            path.push_str(&segment("namespace", namespace)?);
        }
        path.push('/');
        path.push_str(&segment("plural name", &self.kind.plural)?);
        Ok(path)
    }

    /// The address of one object, or of a part of it such as `status`.
    pub(super) fn object(self, name: &str, part: Option<&str>) -> Result<String, ApiError> {
        let mut path = self.collection()?;
        path.push('/');
        path.push_str(&segment("name", name)?);
        if let Some(part) = part {
            path.push('/');
            path.push_str(&segment("subresource", part)?);
        }
        Ok(path)
    }
}

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn version_path(group: &str, version: &str) -> Result<String, ApiError> {
    let version = segment("version", version)?;
    if group.is_empty() {
        return Ok(format!("/api/{version}"));
    }
    Ok(format!("/apis/{}/{version}", segment("group", group)?))
}

/// One segment, escaped. What could lead elsewhere is refused, not escaped: a proxy may undo that.
fn segment(what: &str, text: &str) -> Result<String, ApiError> {
    if is_segment(text) {
        return Ok(utf8_percent_encode(text, ESCAPED).to_string());
    }
    let text: String = text.chars().take(64).collect();
    Err(ApiError::Invalid { message: format!("{text:?} can not be a {what}") })
}

fn is_segment(text: &str) -> bool {
    let forbidden = |c: char| c.is_control() || matches!(c, '/' | '\\' | '%' | '?' | '#');
    !text.is_empty()
        && text.len() <= 253
        && text != "."
        && !text.contains("..")
        && !text.contains(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Scope;

    #[test]
    fn an_address_follows_from_kind_namespace_and_name() {
        let pods = Kind::new("", "v1", "Pod", "pods", Scope::Namespaced);
        let place = Place { kind: &pods, namespace: None };
        assert_eq!(place.collection().unwrap(), "/api/v1/pods");
        let deployments = Kind::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced);
        let place = Place { kind: &deployments, namespace: Some("default") };
        assert_eq!(
            place.object("web", Some("status")).unwrap(),
            "/apis/apps/v1/namespaces/default/deployments/web/status"
        );
    }

    #[test]
    fn names_that_kubernetes_has_are_written_plainly_and_others_escaped() {
        assert_eq!(segment("name", "system:node-1.example").unwrap(), "system:node-1.example");
        assert_eq!(segment("name", "a b&ü").unwrap(), "a%20b%26%C3%BC");
    }

    #[test]
    fn a_segment_that_could_lead_elsewhere_is_refused() {
        for text in ["", ".", "..", "a/b", "a..b", "%2e%2e", "a?b", "a#b", "a\\b", "a\nb", "a\0"] {
            let error = segment("name", text).unwrap_err();
            assert!(matches!(error, ApiError::Invalid { .. }), "{text:?}");
            assert!(error.to_string().ends_with("can not be a name"), "{error}");
        }
        assert!(segment("name", &"a".repeat(254)).is_err());
    }
}
