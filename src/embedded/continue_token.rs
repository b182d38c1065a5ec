use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::object::ObjectKey;

/// Where the next page of a list begins, in the shape Kubernetes gives it: opaque, but easy to peek into.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContinueToken {
    v: String,
    /// The revision all pages show; -1 for the newest.
    rv: i64,
    /// The last key of the page before, and a zero byte: the first key after it.
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";
const AT_NEWEST: i64 = -1;

impl ContinueToken {
    /// Goes on after `last`, at the same revision.
    pub(super) fn pinned(revision: u64, last: &ObjectKey) -> Self {
        let rv = i64::try_from(revision).unwrap_or(i64::MAX);
        Self { v: VERSION.to_owned(), rv, start: format!("{last}\0") }
    }

    /// Goes on at the same key, but at the newest revision: the pages do not fit together.
    pub(super) fn at_newest(self) -> Self {
        Self { rv: AT_NEWEST, ..self }
    }

    /// The revision to show; none for the newest.
    pub(super) fn revision(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    /// The last key of the page before.
    pub(super) fn last_key(&self) -> ObjectKey {
        let key = self.start.trim_end_matches('\0');
        key.parse().unwrap_or_else(|_| ObjectKey::cluster_scoped(key))
    }

    pub(super) fn encode(&self) -> String {
        let json = serde_json::to_string(self).expect("numbers and texts can always be written");
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(super) fn decode(text: &str) -> Result<Self, Failure> {
        let invalid =
            |problem: String| Failure::bad_request(format!("invalid continue token: {problem}"));
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(error.to_string()))?;
        let token: Self = serde_json::from_slice(&json)
            .map_err(|error| invalid(format!("continue key is not valid: {error}")))?;
        match token {
            Self { rv: 0, .. } => {
                Err(invalid("incorrect encoded start resourceVersion".to_owned()))
            }
            Self { ref v, .. } if v != VERSION => {
                Err(invalid(format!("server does not recognize this encoded version {v:?}")))
            }
            token => Ok(token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_what_it_wrote() {
        let key = ObjectKey::new("default", "web-0");
        let token = ContinueToken::decode(&ContinueToken::pinned(7, &key).encode()).unwrap();
        assert_eq!((token.revision(), token.last_key()), (Some(7), key.clone()));
        let token = ContinueToken::decode(&token.at_newest().encode()).unwrap();
        assert_eq!((token.revision(), token.last_key()), (None, key));
    }

    #[test]
    fn a_token_looks_as_in_kubernetes() {
        let token = ContinueToken::pinned(7, &ObjectKey::new("default", "web-0")).encode();
        let json = URL_SAFE_NO_PAD.decode(token).unwrap();
        let expected = r#"{"v":"meta.k8s.io/v1","rv":7,"start":"default/web-0\u0000"}"#;
        assert_eq!(String::from_utf8(json).unwrap(), expected);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let without_version =
            URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#);
        for text in ["%%%", "e30", &without_version] {
            let failure = ContinueToken::decode(text).unwrap_err();
            assert_eq!(failure.status.code, 400);
            assert!(failure.status.message.starts_with("invalid continue token: "));
        }
    }
}
