use k8s_openapi::jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use super::PluginVersion;
use crate::client::credentials::lease::{Output, Pair};
use crate::client::credentials::{check_identity, check_token};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Output {
    /// Reads an `ExecCredential`. The problem never repeats what was printed.
    pub(in crate::client::credentials) fn parse(
        stdout: &[u8],
        version: PluginVersion,
    ) -> Result<Self, String> {
        let credential: ExecCredential = serde_json::from_slice(stdout).map_err(|error| {
            // The text of the error would quote what was printed.
            let (line, column) = (error.line(), error.column());
            format!(
                "printed no ExecCredential: line {line}, column {column} is not as it should be"
            )
        })?;
        if credential.kind != "ExecCredential" {
            return Err("printed no ExecCredential: its kind is another".to_owned());
        }
        if credential.api_version != version.as_str() {
            let version = version.as_str();
            return Err(format!(
                "printed an ExecCredential of another version: it was asked for {version}"
            ));
        }
        let status = credential.status.ok_or("printed an ExecCredential without a status")?;
        let token = status.token.filter(|token| !token.is_empty());
        let token = token
            .map(|token| {
                check_token(&token).map_err(|problem| format!("printed a token that {problem}"))
            })
            .transpose()?;
        let full = |text: Option<String>| text.filter(|text| !text.is_empty());
        let mut ends = None;
        let pair = match (full(status.client_certificate_data), full(status.client_key_data)) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                ends = check_identity(certificate.as_bytes(), key.as_bytes()).map_err(
                    |(_half, problem)| {
                        format!("printed a certificate and a key of which one {problem}")
                    },
                )?;
                Some(Pair { certificate, key: SecretString::from(key) })
            }
            (Some(_), None) => {
                return Err("printed clientCertificateData without clientKeyData".to_owned());
            }
            (None, Some(_)) => {
                return Err("printed clientKeyData without clientCertificateData".to_owned());
            }
        };
        if token.is_none() && pair.is_none() {
            return Err("printed neither a token nor a client certificate".to_owned());
        }
        let stated: Option<Timestamp> = match status.expiration_timestamp {
            None => None,
            Some(text) => Some(text.parse().map_err(
                |_malformed| "printed an expirationTimestamp that is no time of RFC 3339",
            )?),
        };
        // A certificate ends when it says so, whatever is stated beside it.
        let expires = stated.into_iter().chain(ends).min();
        Ok(Self { token, pair, expires })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::client::config::self_signed;

    fn parse(status: &serde_json::Value) -> Result<Output, String> {
        let version = PluginVersion::V1;
        let credential = serde_json::json!({
            "apiVersion": version.as_str(), "kind": "ExecCredential", "status": status,
        });
        Output::parse(credential.to_string().as_bytes(), version)
    }

    #[test]
    fn a_token_and_its_end_are_read() {
        let output = parse(&serde_json::json!({
            "token": "secret", "expirationTimestamp": "2030-01-02T03:04:05Z",
        }))
        .unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(output.token.unwrap().expose_secret(), "secret");
        assert_eq!(output.expires, "2030-01-02T03:04:05Z".parse().ok());
    }

    #[test]
    fn a_certificate_is_read_with_its_key() {
        let (certificate, key) = self_signed(2050);
        let both =
            serde_json::json!({ "clientCertificateData": certificate, "clientKeyData": key });
        assert!(parse(&both).is_ok_and(|output| output.pair.is_some()));
        let half = serde_json::json!({ "clientCertificateData": certificate });
        assert_eq!(
            parse(&half).err().unwrap(),
            "printed clientCertificateData without clientKeyData"
        );
    }

    #[test]
    fn what_is_no_credential_is_told_without_repeating_it() {
        for (printed, problem) in [
            ("", "printed no ExecCredential: line 1, column 0 is not as it should be"),
            ("canary", "printed no ExecCredential: line 1, column 1 is not as it should be"),
            (
                "{\"apiVersion\":[\"canary\"]}",
                "printed no ExecCredential: line 1, column 14 is not as it should be",
            ),
            (
                "{\"apiVersion\":\"canary\",\"kind\":\"canary\"}",
                "printed no ExecCredential: its kind is another",
            ),
            (
                "{\"apiVersion\":\"canary\",\"kind\":\"ExecCredential\"}",
                "printed an ExecCredential of another version: it was asked for client.authentication.k8s.io/v1beta1",
            ),
            (
                "{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":\"ExecCredential\"}",
                "printed an ExecCredential without a status",
            ),
        ] {
            let error = Output::parse(printed.as_bytes(), PluginVersion::V1Beta1).err();
            assert_eq!(error.as_deref(), Some(problem), "{printed}");
        }
        for (status, problem) in [
            (serde_json::json!({}), "printed neither a token nor a client certificate"),
            (serde_json::json!({"token": ""}), "printed neither a token nor a client certificate"),
            (
                serde_json::json!({"token": "a\nb"}),
                "printed a token that holds characters that no token has",
            ),
            (
                serde_json::json!({"token": "a", "expirationTimestamp": "canary"}),
                "printed an expirationTimestamp that is no time of RFC 3339",
            ),
            (
                serde_json::json!({"clientKeyData": "canary"}),
                "printed clientKeyData without clientCertificateData",
            ),
            (
                serde_json::json!({"clientKeyData": "canary", "clientCertificateData": "canary"}),
                "printed a certificate and a key of which one holds no certificate: it must be PEM with BEGIN CERTIFICATE",
            ),
        ] {
            assert_eq!(parse(&status).err().as_deref(), Some(problem));
        }
    }
}
