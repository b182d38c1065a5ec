use std::ffi::OsString;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube_client::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use secrecy::{ExposeSecret as _, SecretString};

use super::kubeconfig::{Entry, warn_if_exposed};
use super::{ConfigError, ConfigOptions, command, oidc};
use crate::client::credentials::{
    BearerToken, ClientCertificate, CredentialPair, CredentialPlugin, Half, LONGEST_FILE, Material,
    PluginOptions, PluginVersion, TokenFile, check_identity, check_token, read_capped,
};
use crate::client::{Anonymous, Credentials, Impersonation};

type Cluster = Result<serde_json::Value, ConfigError>;
type Shared = Arc<dyn Credentials>;

/// Who a user is and whom it acts as. Without a user we are nobody.
pub(super) fn credentials(
    user: Option<Entry<'_, AuthInfo>>,
    options: &ConfigOptions,
    cluster: impl FnOnce() -> Cluster,
) -> Result<(Shared, Option<Impersonation>), ConfigError> {
    let Some(user) = user else { return Ok((Arc::new(Anonymous), None)) };
    for (field, is_set) in
        [("username", user.value.username.is_some()), ("password", user.value.password.is_some())]
    {
        if is_set {
            return Err(user.error(
                field,
                "is not supported, no cluster since 1.19 takes it: use a token, a client certificate or an exec plugin",
            ));
        }
    }
    let token = token(&user, options, cluster)?;
    let identity = certificate(&user)?;
    let credentials: Shared = match (token, identity) {
        (None, None) => Arc::new(Anonymous),
        (Some(token), None) => token,
        (None, Some(identity)) => identity,
        (Some(token), Some(identity)) => Arc::new(CredentialPair { token, identity }),
    };
    Ok((credentials, impersonation(&user)?))
}

/// `token` and `tokenFile` before a plugin, as in client-go.
fn token(
    user: &Entry<'_, AuthInfo>,
    options: &ConfigOptions,
    cluster: impl FnOnce() -> Cluster,
) -> Result<Option<Shared>, ConfigError> {
    let given = user
        .value
        .token
        .as_ref()
        .map(|token| token.expose_secret())
        .filter(|token| !token.is_empty());
    let given = given
        .map(|token| {
            check_token(token)
                .map_err(|problem| user.error("token", format!("{problem}: write it anew")))
        })
        .transpose()?;
    let file = user.value.token_file.as_deref().filter(|path| !path.is_empty());
    match (file, given) {
        (Some(path), given) => {
            let path = user.resolve(path);
            let file = TokenFile::new(path.clone());
            match given {
                Some(token) => return Ok(Some(Arc::new(file.starting_with(token)))),
                None => read_capped(&path, LONGEST_FILE).map_err(|problem| {
                    let problem = format!(
                        "{} {problem}: give the path of a file with a token",
                        path.display()
                    );
                    user.error("tokenFile", problem)
                })?,
            };
            return Ok(Some(Arc::new(file)));
        }
        (None, Some(token)) => return Ok(Some(Arc::new(BearerToken::new(token)))),
        (None, None) => {}
    }
    match (&user.value.exec, &user.value.auth_provider) {
        (Some(_), Some(_)) => {
            Err(user.error("auth-provider", "stands beside exec: remove one of them"))
        }
        (Some(exec), None) => Ok(Some(Arc::new(plugin(user, exec, options, cluster)?))),
        (None, Some(provider)) => Ok(Some(oidc::credentials(user, provider)?)),
        (None, None) => Ok(None),
    }
}

fn plugin(
    user: &Entry<'_, AuthInfo>,
    exec: &ExecConfig,
    options: &ConfigOptions,
    cluster: impl FnOnce() -> Cluster,
) -> Result<CredentialPlugin, ConfigError> {
    let version = match exec.api_version.as_deref().unwrap_or_default() {
        "client.authentication.k8s.io/v1" => PluginVersion::V1,
        "client.authentication.k8s.io/v1beta1" => PluginVersion::V1Beta1,
        _ => {
            return Err(user.error(
                "exec.apiVersion",
                "is not supported: write client.authentication.k8s.io/v1, and update the plugin if it is older",
            ));
        }
    };
    match exec.interactive_mode {
        Some(ExecInteractiveMode::Always) => {
            return Err(user.error(
                "exec.interactiveMode",
                "is Always, but there is no terminal here: log in beforehand and write IfAvailable or Never",
            ));
        }
        Some(ExecInteractiveMode::IfAvailable | ExecInteractiveMode::Never) | None => {}
    }
    let Some(name) = exec.command.as_deref().filter(|command| !command.is_empty()) else {
        return Err(
            user.error("exec.command", "is missing: write the name or the path of a program")
        );
    };
    let refuse = |problem: String| user.error("exec.command", problem);
    if options.plugins == super::PluginPolicy::Deny {
        options.plugins.check(name.as_ref(), &options.environment).map_err(refuse)?;
    }
    let path = match name.contains(std::path::MAIN_SEPARATOR) {
        true => user.resolve(name).display().to_string(),
        false => name.to_owned(),
    };
    let command = command::find(&path, &options.environment).map_err(|problem| {
        let hint = exec.install_hint.as_deref().unwrap_or("install it, or correct the name");
        let hint = hint.split_whitespace().collect::<Vec<_>>().join(" ");
        refuse(format!("{problem}: {hint}"))
    })?;
    options.plugins.check(&command, &options.environment).map_err(refuse)?;

    let mut plugin = PluginOptions::new(command);
    plugin.arguments = exec.args.clone().unwrap_or_default();
    plugin.environment = options.environment.variables().clone();
    let dropped = options.plugins_without.iter().chain(exec.drop_env.iter().flatten());
    for name in dropped {
        plugin.environment.remove(&OsString::from(name));
    }
    for variable in exec.env.iter().flatten() {
        let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) else {
            return Err(
                user.error("exec.env", "has an entry without name or value: give each both")
            );
        };
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(
                user.error("exec.env", "has an entry that can be no variable: correct its name")
            );
        }
        plugin.environment.insert(name.into(), value.into());
    }
    plugin.version = version;
    plugin.install_hint = exec.install_hint.clone();
    plugin.timeout = options.plugin_timeout;
    if exec.provide_cluster_info {
        plugin.cluster = Some(cluster()?);
    }
    Ok(CredentialPlugin::new(plugin))
}

fn certificate(user: &Entry<'_, AuthInfo>) -> Result<Option<Shared>, ConfigError> {
    let secret = user.value.client_key_data.as_ref().map(|key| key.expose_secret());
    let certificate = half(
        user,
        "client-certificate",
        user.value.client_certificate_data.as_deref(),
        user.value.client_certificate.as_deref(),
    )?;
    let key = half(user, "client-key", secret, user.value.client_key.as_deref())?;
    let (certificate, key) = match (certificate, key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (Some(_), None) => {
            return Err(user.error("client-key", "is missing: client-certificate needs it"));
        }
        (None, Some(_)) => {
            return Err(user.error("client-certificate", "is missing: client-key needs it"));
        }
    };
    if let Material::File(path) = &key.material {
        warn_if_exposed(path);
    }
    let checked = check_identity(
        certificate.pem.expose_secret().as_bytes(),
        key.pem.expose_secret().as_bytes(),
    );
    let expires = checked.map_err(|(at, problem)| match at {
        Half::Certificate => user.error(certificate.field, problem),
        Half::Key => user.error(key.field, problem),
    })?;
    if let Some(expires) = expires.filter(|expires| *expires <= Timestamp::now()) {
        let problem = format!("has expired at {expires}: get a new certificate");
        return Err(user.error(certificate.field, problem));
    }
    Ok(Some(Arc::new(ClientCertificate::new(certificate.material, key.material))))
}

/// Half of a key pair, as it is now.
struct HalfPair {
    field: &'static str,
    material: Material,
    pem: SecretString,
}

/// Data counts before a file, as in client-go.
fn half(
    user: &Entry<'_, AuthInfo>,
    field: &'static str,
    data: Option<&str>,
    file: Option<&str>,
) -> Result<Option<HalfPair>, ConfigError> {
    let text = |field: &'static str, bytes: &[u8]| {
        let text =
            std::str::from_utf8(bytes).map_err(|_not_utf8| user.error(field, "is not PEM"))?;
        Ok(SecretString::from(text))
    };
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let field = match field {
            "client-key" => "client-key-data",
            _ => "client-certificate-data",
        };
        let pem = text(field, &user.decode(field, data)?)?;
        return Ok(Some(HalfPair { field, material: Material::Pem(pem.clone()), pem }));
    }
    let Some(file) = file.filter(|file| !file.is_empty()) else { return Ok(None) };
    let path = user.resolve(file);
    let content = read_capped(&path, LONGEST_FILE).map_err(|problem| {
        user.error(field, format!("{} {problem}: give the path of a PEM file", path.display()))
    })?;
    Ok(Some(HalfPair { field, pem: text(field, &content)?, material: Material::File(path) }))
}

fn impersonation(user: &Entry<'_, AuthInfo>) -> Result<Option<Impersonation>, ConfigError> {
    let value = user.value;
    let groups = value.impersonate_groups.clone().unwrap_or_default();
    let mut extra: Vec<_> = value.impersonate_user_extra.clone().into_iter().flatten().collect();
    extra.sort();
    let uid = value.impersonate_uid.clone().filter(|uid| !uid.is_empty());
    let Some(name) = value.impersonate.clone().filter(|name| !name.is_empty()) else {
        if uid.is_some() || !groups.is_empty() || !extra.is_empty() {
            return Err(user.error("as", "is missing: as-uid, as-groups and as-user-extra need it"));
        }
        return Ok(None);
    };
    let texts = |field: &'static str, texts: &[String]| match texts
        .iter()
        .any(|text| text.chars().any(char::is_control))
    {
        true => Err(user.error(field, "holds control characters: remove them")),
        false => Ok(()),
    };
    texts("as", std::slice::from_ref(&name))?;
    texts("as-uid", uid.as_slice())?;
    texts("as-groups", &groups)?;
    for (name, values) in &extra {
        texts("as-user-extra", std::slice::from_ref(name))?;
        texts("as-user-extra", values)?;
    }
    Ok(Some(Impersonation { user: name, uid, groups, extra }))
}
