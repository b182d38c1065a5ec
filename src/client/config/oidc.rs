use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use kube_client::config::{AuthInfo, AuthProviderConfig};
use secrecy::{ExposeSecret as _, SecretString};

use super::ConfigError;
use super::kubeconfig::Entry;
use crate::client::credentials::{BearerToken, OidcOptions, OidcToken, check_token, expiry};
use crate::client::{Authority, Credentials, ServerAddress};

/// What is left of `auth-provider`: the token OIDC last got, renewed if there is all that takes, else as long as it is
/// good.
pub(super) fn credentials(
    user: &Entry<'_, AuthInfo>,
    provider: &AuthProviderConfig,
) -> Result<Arc<dyn Credentials>, ConfigError> {
    if provider.name != "oidc" {
        return Err(user.error(
            "auth-provider",
            "is no longer supported by Kubernetes: use the exec plugin of your provider",
        ));
    }
    if let Some(refreshed) = refreshed(user, provider)? {
        return Ok(Arc::new(refreshed));
    }
    let refuse = |problem: &str| {
        let problem = format!(
            "{problem}, and there is no refresh-token to renew it: use an exec plugin such as kubelogin"
        );
        user.error("auth-provider.config.id-token", problem)
    };
    let token = provider.config.get("id-token").ok_or_else(|| refuse("is missing"))?;
    let token = check_token(token).map_err(refuse)?;
    let expires = expiry(token.expose_secret()).ok_or_else(|| refuse("is no token of OIDC"))?;
    if expires <= Timestamp::now() {
        return Err(refuse(&format!("has expired at {expires}")));
    }
    let what = format!("{}: users[{}].user.auth-provider", user.file.display(), user.name);
    Ok(Arc::new(BearerToken::until(token, what, Some(expires))))
}

/// A token that can be renewed, if there is all that takes.
fn refreshed(
    user: &Entry<'_, AuthInfo>,
    provider: &AuthProviderConfig,
) -> Result<Option<OidcToken>, ConfigError> {
    let value = |name: &str| {
        provider.config.get(name).map(String::as_str).filter(|value| !value.is_empty())
    };
    let Some(refresh_token) = value("refresh-token") else { return Ok(None) };
    let field = |name: &str| format!("auth-provider.config.{name}");
    let missing =
        |name: &str| user.error(&field(name), "is missing: log in again, or use an exec plugin");
    let issuer = value("idp-issuer-url").ok_or_else(|| missing("idp-issuer-url"))?;
    let issuer = ServerAddress::parse(issuer)
        .map_err(|error| user.error(&field("idp-issuer-url"), error.to_string()))?;
    let authority =
        match (value("idp-certificate-authority-data"), value("idp-certificate-authority")) {
            (Some(data), _) => {
                let pem = STANDARD.decode(data).map_err(|_error| {
                    user.error(
                        &field("idp-certificate-authority-data"),
                        "is no base64: write it anew",
                    )
                })?;
                Authority::Pem(pem)
            }
            (None, Some(file)) => Authority::File(user.resolve(file)),
            (None, None) => Authority::System,
        };
    let token = value("id-token").and_then(|token| check_token(token).ok());
    Ok(Some(OidcToken::new(OidcOptions {
        issuer,
        authority,
        client_id: value("client-id").ok_or_else(|| missing("client-id"))?.to_owned(),
        client_secret: value("client-secret").map(SecretString::from),
        refresh_token: refresh_token.into(),
        id_token: token,
    })))
}
