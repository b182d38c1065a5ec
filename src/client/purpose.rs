use super::{Method, Request};

/// What a request is for, as far as its treatment differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Its answer ends late, and may begin late.
    Watch,
    /// Its answer may be large.
    List,
    /// Anything else.
    Other,
}

impl Purpose {
    pub(super) fn of(request: &Request) -> Self {
        let watches =
            |(name, value): &(&str, String)| *name == "watch" && (value == "true" || value == "1");
        if request.method != Method::Get {
            Self::Other
        } else if request.query.iter().any(watches) {
            Self::Watch
        } else if is_collection(&request.path) && !request.query.iter().any(is_of_one) {
            Self::List
        } else {
            Self::Other
        }
    }
}

/// A list of one object asks how far the server has come.
fn is_of_one((name, value): &(&str, String)) -> bool {
    *name == "limit" && value == "1"
}

/// Whether a path is that of all objects of a kind, or of those of a namespace.
fn is_collection(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (["api", _version, rest @ ..] | ["apis", _, _version, rest @ ..]) = segments.as_slice()
    else {
        return false;
    };
    matches!(rest, [_kind] | ["namespaces", _, _kind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_path_and_query() {
        for (path, purpose) in [
            ("/api/v1/pods", Purpose::List),
            ("/api/v1/namespaces", Purpose::List),
            ("/api/v1/namespaces/default/pods", Purpose::List),
            ("/apis/apps/v1/deployments", Purpose::List),
            ("/apis/apps/v1/namespaces/default/deployments", Purpose::List),
            ("/api/v1/namespaces/default", Purpose::Other),
            ("/api/v1/namespaces/default/pods/a", Purpose::Other),
            ("/apis/apps/v1", Purpose::Other),
            ("/api/v1", Purpose::Other),
            ("/version", Purpose::Other),
        ] {
            assert_eq!(Purpose::of(&Request::get(path)), purpose, "{path}");
        }
        let watch =
            Request { query: vec![("watch", "true".to_owned())], ..Request::get("/api/v1/pods") };
        assert_eq!(Purpose::of(&watch), Purpose::Watch);
        let check =
            Request { query: vec![("limit", "1".to_owned())], ..Request::get("/api/v1/pods") };
        assert_eq!(Purpose::of(&check), Purpose::Other, "and waits for no list");
        let create = Request { method: Method::Post, ..Request::get("/api/v1/pods") };
        assert_eq!(Purpose::of(&create), Purpose::Other);
    }
}
