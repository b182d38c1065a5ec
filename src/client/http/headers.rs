use awc::error::HeaderValue;
use awc::http::header::{self, HeaderMap, HeaderName, HttpDate};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};

use crate::api::ApiError;
use crate::client::{Fairness, Impersonation};

/// A longer delay is a mistake.
const LONGEST_RETRY_AFTER: u64 = 300;

/// What has to be escaped in the name of a header: all but the letters of a token.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `kubeflect/0.1.0 (linux/x86_64)`
pub(super) fn user_agent() -> String {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("kubeflect/{} ({os}/{architecture})", env!("CARGO_PKG_VERSION"))
}

/// The `Authorization` header, which no log shows.
pub(super) fn bearer(token: &SecretString) -> Result<HeaderValue, ApiError> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
    // The cause would show the token.
    let mut value = value.map_err(|_error| ApiError::Unauthorized {
        message: "the token has characters that no token has: is it the right file?".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers that say whom we act as.
pub(super) fn impersonation(
    whom: &Impersonation,
) -> Result<Vec<(HeaderName, HeaderValue)>, ApiError> {
    let mut headers = vec![field("impersonate-user", &whom.user)?];
    if let Some(uid) = &whom.uid {
        headers.push(field("impersonate-uid", uid)?);
    }
    for group in &whom.groups {
        headers.push(field("impersonate-group", group)?);
    }
    for (name, values) in &whom.extra {
        let name = utf8_percent_encode(name, NAME).to_string().to_lowercase();
        for value in values {
            headers.push(field(&format!("impersonate-extra-{name}"), value)?);
        }
    }
    Ok(headers)
}

fn field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ApiError> {
    let invalid = || ApiError::Invalid { message: format!("{name} can not be {value:?}") };
    let value = Some(value).filter(|value| !value.is_empty()).ok_or_else(invalid)?;
    let header = HeaderName::try_from(name).map_err(|_error| invalid())?;
    let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_error| invalid())?;
    Ok((header, value))
}

pub(super) fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// So large is the head of an answer.
pub(super) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// `Retry-After`, given in seconds or as a date: then counted from the `Date` of the answer, for our clocks may differ.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let value = text(headers, header::RETRY_AFTER)?.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = if is_number {
        value.parse().unwrap_or(u64::MAX)
    } else {
        let sent = text(headers, header::DATE)?.trim();
        seconds_between(sent.parse().ok()?, value.parse().ok()?)
    };
    Some(seconds.min(LONGEST_RETRY_AFTER))
}

#[expect(clippy::disallowed_types, reason = "both times are the server's own")]
fn seconds_between(from: HttpDate, to: HttpDate) -> u64 {
    use std::time::SystemTime;
    let waited = SystemTime::from(to).duration_since(from.into());
    waited.map_or(0, |waited| waited.as_secs())
}

/// What API Priority and Fairness made of the request.
pub(super) fn fairness(headers: &HeaderMap) -> Option<Fairness> {
    let uid = |name: &str| text(headers, name).map(str::to_owned);
    let fairness = Fairness {
        flow_schema: uid("x-kubernetes-pf-flowschema-uid"),
        priority_level: uid("x-kubernetes-pf-prioritylevel-uid"),
    };
    (fairness != Fairness::default()).then_some(fairness)
}

/// Where a redirect leads, without what may be secret in it: `https://other.example`.
pub(super) fn redirect_target(headers: &HeaderMap) -> String {
    let location = text(headers, header::LOCATION).unwrap_or_default();
    let target = location.parse::<awc::http::Uri>().ok();
    let origin = target.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.host()?)));
    origin.map_or_else(|| "another path".to_owned(), |(scheme, host)| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_delay_is_in_seconds_or_until_a_date_and_never_long() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for (value, seconds) in [
            ("7", Some(7)),
            ("99999999999999999999999", Some(300)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some(20)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", Some(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", Some(300)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(&headers(&[date, ("retry-after", value)])), seconds, "{value}");
        }
        assert_eq!(retry_after(&headers(&[])), None);
    }

    #[test]
    fn a_token_is_in_no_debug_output_and_no_error() {
        let value = bearer(&SecretString::from("canary")).unwrap();
        assert!(!format!("{value:?}").contains("canary"));
        let error = bearer(&SecretString::from("canary\n")).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("canary"));
    }

    #[test]
    fn whom_we_act_as_is_said_in_headers() {
        let whom = Impersonation {
            user: "jane".to_owned(),
            uid: None,
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("Acme.com/Project".to_owned(), vec!["x".to_owned()])],
        };
        let said: Vec<String> = impersonation(&whom)
            .unwrap()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(
            said,
            [
                "impersonate-user: jane",
                "impersonate-group: a",
                "impersonate-group: b",
                "impersonate-extra-acme.com%2fproject: x",
            ]
        );
        assert!(impersonation(&Impersonation::default()).is_err());
        let split = Impersonation { user: "a\r\nx: y".to_owned(), ..Impersonation::default() };
        assert!(impersonation(&split).is_err());
    }

    #[test]
    fn a_redirect_shows_no_more_than_its_host() {
        let location = [("location", "https://user:secret@other.example/login?token=secret")];
        assert_eq!(redirect_target(&headers(&location)), "https://other.example");
        assert_eq!(redirect_target(&headers(&[("location", "/login?token=x")])), "another path");
    }
}
