use std::path::Path;
use std::sync::Arc;

use super::{ConfigError, Environment, proxy};
use crate::client::credentials::{LONGEST_FILE, TokenFile, check_authority, read_capped};
use crate::client::{Authority, Connection, Scheme, ServerAddress, TlsOptions};

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Whether we seem to be in a pod.
pub(super) fn is_there(environment: &Environment) -> bool {
    environment.get(HOST).is_some()
}

/// The API server as a pod sees it. `HTTPS_PROXY` and `NO_PROXY` hold here too, as in client-go.
pub(super) fn connection(environment: &Environment) -> Result<Connection, ConfigError> {
    let server = server(environment)?;
    let folder = environment.service_account_folder();
    let token = folder.join("token");
    let authority = folder.join("ca.crt");
    let read = |file: &Path| {
        read_capped(file, LONGEST_FILE).map_err(|problem| {
            let problem = format!("{problem}: mount a service account");
            ConfigError::new(file.display().to_string(), problem)
        })
    };
    read(&token)?;
    check_authority(&read(&authority)?)
        .map_err(|problem| ConfigError::new(authority.display().to_string(), problem))?;
    let namespace = read_capped(&folder.join("namespace"), LONGEST_FILE).ok();
    let namespace =
        namespace.and_then(|content| Some(std::str::from_utf8(&content).ok()?.trim().to_owned()));
    Ok(Connection {
        proxy: proxy::proxy_of(environment, &server)?,
        server,
        tls: TlsOptions { authority: Authority::File(authority), ..TlsOptions::default() },
        credentials: Arc::new(TokenFile::new(token)),
        impersonation: None,
        default_namespace: namespace.filter(|namespace| !namespace.is_empty()),
    })
}

fn server(environment: &Environment) -> Result<ServerAddress, ConfigError> {
    let text = |name: &str| {
        let value = environment.get(name).ok_or_else(|| {
            ConfigError::new(name, "is not set: run in a pod, or use a kubeconfig")
        })?;
        value.to_str().ok_or_else(|| ConfigError::new(name, "is not UTF-8"))
    };
    let host = text(HOST)?;
    let port = text(PORT)?;
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    if !is_port || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ConfigError::new(PORT, "is no port: it must be a number from 1 to 65535"));
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = if bare.contains(':') { format!("[{bare}]") } else { bare.to_owned() };
    let is_host = !host.contains(['/', '@', '?', '#']);
    let server = ServerAddress::parse(&format!("https://{host}:{port}")).ok().filter(|_| is_host);
    let server = server.filter(|server| server.scheme == Scheme::Https && server.path.is_empty());
    server.ok_or_else(|| ConfigError::new(HOST, "is no host: it must be a name or an address"))
}
