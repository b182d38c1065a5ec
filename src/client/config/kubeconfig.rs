use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_client::config::{
    AuthInfo, Cluster, Context, ExecAuthCluster, Kubeconfig, KubeconfigError,
};
use tracing::warn;

use super::address::shown;
use super::{ConfigError, ConfigOptions, Environment, proxy, user};
use crate::client::credentials::{LONGEST_FILE, check_authority, read_capped};
use crate::client::{Authority, Connection, ProxyAddress, ServerAddress, TlsOptions, Verification};

const LONGEST_KUBECONFIG: u64 = 1024 * 1024;

/// A kubeconfig and where it was.
struct Source {
    file: PathBuf,
    content: Kubeconfig,
}

/// An entry of a kubeconfig: its place is what an error begins with.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a, T> {
    pub(super) file: &'a Path,
    pub(super) list: &'static str,
    pub(super) name: &'a str,
    pub(super) value: &'a T,
}

/// Whether a kubeconfig is named, or is where it is by default.
pub(super) fn is_there(options: &ConfigOptions) -> bool {
    let environment = &options.environment;
    options.kubeconfig.is_some()
        || !named_files(environment).is_empty()
        || environment.default_kubeconfig().is_some_and(|file| file.exists())
}

pub(super) fn connection(options: &ConfigOptions) -> Result<Connection, ConfigError> {
    let sources = load(options)?;
    let context = context(&sources, options)?;
    let cluster_name = match (&options.cluster, &context) {
        (Some(name), _) => name.as_str(),
        (None, Some(context)) => context.value.cluster.as_str(),
        (None, None) => {
            return Err(ConfigError::new(
                list_files(&sources),
                "current-context: is missing: set it, or choose a context",
            ));
        }
    };
    let Some(cluster) = cluster(&sources, cluster_name) else {
        return Err(unknown(&sources, options.cluster.as_ref(), context, "cluster", cluster_name));
    };
    let user_name = match (&options.user, &context) {
        (Some(name), _) => Some(name.as_str()),
        (None, Some(context)) => context.value.user.as_deref().filter(|name| !name.is_empty()),
        (None, None) => None,
    };
    let user = match user_name {
        None => None,
        Some(name) => match auth_info(&sources, name) {
            Some(user) => Some(user),
            None => return Err(unknown(&sources, options.user.as_ref(), context, "user", name)),
        },
    };
    let server = server(&cluster)?;
    let tls = tls(&cluster)?;
    let proxy =
        match cluster.value.proxy_url.as_deref().filter(|address| !address.is_empty()) {
            None => proxy::proxy_of(&options.environment, &server)?,
            Some(address) => Some(ProxyAddress::parse(address).map_err(|error| {
                cluster.error("proxy-url", format!("{} {error}", shown(address)))
            })?),
        };
    let told = || exec_cluster(&cluster, &tls);
    let (credentials, impersonation) = user::credentials(user, options, told)?;
    let namespace = context.and_then(|context| context.value.namespace.clone());
    let default_namespace =
        options.namespace.clone().or(namespace).filter(|namespace| !namespace.is_empty());
    Ok(Connection { server, tls, proxy, credentials, impersonation, default_namespace })
}

impl<T> Entry<'_, T> {
    /// Something is wrong with a field of this entry.
    pub(super) fn error(&self, field: &str, problem: impl Into<String>) -> ConfigError {
        let list = self.list;
        let single = list.trim_end_matches('s');
        ConfigError::field(
            self.file,
            format!("{list}[{}].{single}.{field}", self.name.escape_debug()),
            problem,
        )
    }

    /// A path in the kubeconfig is relative to its folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.file.parent().map_or_else(|| path.into(), |folder| folder.join(path))
    }

    /// What is in a field as base64.
    pub(super) fn decode(&self, field: &str, data: &str) -> Result<Vec<u8>, ConfigError> {
        let data: String = data.split_ascii_whitespace().collect();
        STANDARD.decode(data).map_err(|_malformed| {
            self.error(field, "is not base64: write the PEM file through base64 into it")
        })
    }
}

/// All the kubeconfigs there are, the most important one first.
fn load(options: &ConfigOptions) -> Result<Vec<Source>, ConfigError> {
    if let Some(file) = &options.kubeconfig {
        return Ok(vec![read(file)?]);
    }
    let environment = &options.environment;
    let files = named_files(environment);
    if files.is_empty() {
        let file = environment.default_kubeconfig().ok_or_else(|| {
            let problem = "is not set and there is no home folder: set it to a kubeconfig";
            ConfigError::new("KUBECONFIG", problem)
        })?;
        return Ok(vec![read(&file)?]);
    }
    let present: Vec<_> = files.iter().filter(|file| file.exists()).collect();
    if present.is_empty() {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let problem =
            format!("names no file that exists ({}): set it to a kubeconfig", names.join(", "));
        return Err(ConfigError::new("KUBECONFIG", problem));
    }
    present.into_iter().map(|file| read(file)).collect()
}

/// The files `KUBECONFIG` names; empty names do not count.
fn named_files(environment: &Environment) -> Vec<PathBuf> {
    let files = environment.get("KUBECONFIG").map(std::env::split_paths);
    files.into_iter().flatten().filter(|file| !file.as_os_str().is_empty()).collect()
}

fn read(file: &Path) -> Result<Source, ConfigError> {
    let place = || file.display().to_string();
    let bytes = read_capped(file, LONGEST_KUBECONFIG).map_err(|problem| {
        ConfigError::new(place(), format!("{problem}: give the path of a kubeconfig"))
    })?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_not_utf8| ConfigError::new(place(), "is not UTF-8: save it as UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let content = Kubeconfig::from_yaml(text).map_err(|error| {
        // The text of the error would quote the file.
        let location = match &error {
            KubeconfigError::Parse(error) => error.location(),
            _ => None,
        };
        let at = location.map_or_else(String::new, |location| {
            format!(" at line {}, column {}", location.line(), location.column())
        });
        ConfigError::new(
            place(),
            format!("is no kubeconfig: its YAML is wrong{at}: correct it there"),
        )
    })?;
    if content.auth_infos.iter().filter_map(|user| user.auth_info.as_ref()).any(has_secrets) {
        warn_if_exposed(file);
    }
    Ok(Source { file: std::path::absolute(file).unwrap_or_else(|_| file.to_owned()), content })
}

fn has_secrets(user: &AuthInfo) -> bool {
    user.token.is_some()
        || user.client_key_data.is_some()
        || user.password.is_some()
        || user.auth_provider.is_some()
}

/// Warns about a file with secrets in it that others may read.
pub(super) fn warn_if_exposed(file: &Path) {
    if is_exposed(file) {
        warn!(file = %file.display(), "others may read a file with keys or tokens: run chmod 600 on it");
    }
}

#[cfg(unix)]
pub(super) fn is_exposed(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_exposed(_file: &Path) -> bool {
    false
}

fn list_files(sources: &[Source]) -> String {
    sources.iter().map(|source| source.file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn context<'a>(
    sources: &'a [Source],
    options: &'a ConfigOptions,
) -> Result<Option<Entry<'a, Context>>, ConfigError> {
    let current = sources.iter().find_map(|source| {
        let name = source.content.current_context.as_deref().filter(|name| !name.is_empty())?;
        Some((source, name))
    });
    let (name, place) = match (&options.context, current) {
        (Some(name), _) => {
            (name.as_str(), ConfigError::new(list_files(sources), missing("contexts", name)))
        }
        (None, Some((source, name))) => {
            let problem = format!("no context is called {name:?}: run kubectl config get-contexts");
            (name, ConfigError::field(&source.file, "current-context", problem))
        }
        (None, None) => return Ok(None),
    };
    let found = sources.iter().find_map(|source| {
        let named = source.content.contexts.iter().find(|named| named.name == name)?;
        Some((source, named))
    });
    let Some((source, named)) = found else { return Err(place) };
    let Some(value) = &named.context else {
        return Err(ConfigError::field(
            &source.file,
            format!("contexts[{name}].context"),
            "is missing",
        ));
    };
    Ok(Some(Entry { file: &source.file, list: "contexts", name, value }))
}

fn missing(list: &str, name: &str) -> String {
    format!("{list}: none is called {name:?}: run kubectl config get-{list}")
}

/// A name that leads nowhere: of an option, or of a context.
fn unknown(
    sources: &[Source],
    option: Option<&String>,
    context: Option<Entry<'_, Context>>,
    field: &str,
    name: &str,
) -> ConfigError {
    match (option, context) {
        (None, Some(context)) => context.error(
            field,
            format!("no {field} is called {name:?}: run kubectl config get-{field}s"),
        ),
        (Some(_), _) | (None, None) => {
            ConfigError::new(list_files(sources), missing(&format!("{field}s"), name))
        }
    }
}

fn cluster<'a>(sources: &'a [Source], name: &'a str) -> Option<Entry<'a, Cluster>> {
    sources.iter().find_map(|source| {
        let named = source.content.clusters.iter().find(|named| named.name == name)?;
        let value = named.cluster.as_ref()?;
        Some(Entry { file: source.file.as_path(), list: "clusters", name, value })
    })
}

fn auth_info<'a>(sources: &'a [Source], name: &'a str) -> Option<Entry<'a, AuthInfo>> {
    sources.iter().find_map(|source| {
        let named = source.content.auth_infos.iter().find(|named| named.name == name)?;
        let value = named.auth_info.as_ref()?;
        Some(Entry { file: source.file.as_path(), list: "users", name, value })
    })
}

fn server(cluster: &Entry<'_, Cluster>) -> Result<ServerAddress, ConfigError> {
    let Some(address) = cluster.value.server.as_deref().filter(|address| !address.is_empty())
    else {
        return Err(cluster.error("server", "is missing: write https://HOST:PORT"));
    };
    ServerAddress::parse(address)
        .map_err(|error| cluster.error("server", format!("{} {error}", shown(address))))
}

fn tls(cluster: &Entry<'_, Cluster>) -> Result<TlsOptions, ConfigError> {
    let full = |text: &'_ Option<String>| text.clone().filter(|text| !text.is_empty());
    let check = |field: &str, pem: &[u8]| {
        check_authority(pem).map_err(|problem| cluster.error(field, problem))
    };
    let data = full(&cluster.value.certificate_authority_data);
    let authority = match (data, full(&cluster.value.certificate_authority)) {
        (Some(data), _) => {
            let pem = cluster.decode("certificate-authority-data", &data)?;
            check("certificate-authority-data", &pem)?;
            Authority::Pem(pem)
        }
        (None, Some(path)) => {
            let path = cluster.resolve(&path);
            let pem = read_capped(&path, LONGEST_FILE).map_err(|problem| {
                let problem = format!("{} {problem}: give the path of a PEM file", path.display());
                cluster.error("certificate-authority", problem)
            })?;
            check("certificate-authority", &pem)?;
            Authority::File(path)
        }
        (None, None) => Authority::System,
    };
    let verification = match cluster.value.insecure_skip_tls_verify {
        Some(true) => Verification::Skipped,
        Some(false) | None => Verification::Required,
    };
    if verification == Verification::Skipped && authority != Authority::System {
        return Err(cluster.error(
            "insecure-skip-tls-verify",
            "contradicts the certificate authority: remove one of them, this one if in doubt",
        ));
    }
    Ok(TlsOptions { authority, server_name: full(&cluster.value.tls_server_name), verification })
}

/// What a plugin is told of the cluster when it wants to know.
fn exec_cluster(
    cluster: &Entry<'_, Cluster>,
    tls: &TlsOptions,
) -> Result<serde_json::Value, ConfigError> {
    let certificate_authority_data = match &tls.authority {
        Authority::System => None,
        Authority::Pem(pem) => Some(pem.clone()),
        Authority::File(path) => read_capped(path, LONGEST_FILE).ok().map(|pem| pem.to_vec()),
    };
    let extensions = cluster.value.extensions.iter().flatten();
    let config = extensions
        .into_iter()
        .find(|extension| extension.name == "client.authentication.k8s.io/exec")
        .map(|extension| extension.extension.clone());
    let told = ExecAuthCluster {
        server: cluster.value.server.clone(),
        insecure_skip_tls_verify: cluster.value.insecure_skip_tls_verify,
        certificate_authority_data,
        proxy_url: cluster.value.proxy_url.clone(),
        tls_server_name: cluster.value.tls_server_name.clone(),
        config,
    };
    serde_json::to_value(told)
        .map_err(|_unlikely| cluster.error("extensions", "can not be told to a plugin as JSON"))
}
