//! Whole kubeconfigs, service accounts and addresses.

mod broken;
mod elsewhere;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use secrecy::ExposeSecret as _;

use super::*;
use crate::client::{Authority, Impersonation, Verification};

const GOOD: &str = "
current-context: dev
contexts: [{name: dev, context: {cluster: c, user: u, namespace: shop}}]
clusters: [{name: c, cluster: {server: 'https://example.com:6443'}}]
users: [{name: u, user: {token: canary}}]
";

fn options(file: impl Into<PathBuf>) -> ConfigOptions {
    ConfigOptions {
        kubeconfig: Some(file.into()),
        environment: Environment::empty(),
        ..ConfigOptions::default()
    }
}

/// A kubeconfig of one context, cluster and user, whose fields are these, in a folder.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "current-context: dev\n\
         contexts: [{{name: dev, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    )
}

const SERVER: &str = "server: 'https://example.com'";

/// The text of the error, with the folder as `DIR`.
fn error_of(folder: &Folder, options: &ConfigOptions) -> String {
    let error = Connection::from_kubeconfig(options).unwrap_err().to_string();
    assert!(!error.contains("canary") && !error.contains('\n'), "{error}");
    error.replace(&folder.root().display().to_string(), "DIR")
}

fn token_of(connection: &Connection) -> String {
    let token = futures::executor::block_on(connection.credentials.token()).unwrap();
    token.map(|token| token.expose_secret().to_owned()).unwrap_or_default()
}

fn jwt(expires: i64) -> String {
    let payload = URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{expires}}}"));
    format!("canary.{payload}.canary")
}

#[test]
fn a_kubeconfig_becomes_a_connection() {
    let folder = Folder::new();
    let connection = Connection::from_kubeconfig(&options(folder.write("config", GOOD))).unwrap();
    assert_eq!(connection.server.to_string(), "https://example.com:6443");
    assert_eq!(connection.default_namespace.as_deref(), Some("shop"));
    assert_eq!(connection.tls, TlsOptions::default());
    assert_eq!(token_of(&connection), "canary");
    assert!(!format!("{connection:?}").contains("canary"));
}

#[test]
fn options_come_before_the_context() {
    let folder = Folder::new();
    let content = format!(
        "{GOOD}\n---\ncontexts: [{{name: other, context: {{cluster: c2}}}}]\n\
         clusters: [{{name: c2, cluster: {{server: 'https://other'}}}}]\n\
         users: [{{name: u2, user: {{token: two}}}}]\n"
    );
    let options = options(folder.write("config", &content));
    let chosen = |change: fn(&mut ConfigOptions)| {
        let mut options = options.clone();
        change(&mut options);
        let connection = Connection::from_kubeconfig(&options).unwrap();
        let namespace = connection.default_namespace.clone().unwrap_or_default();
        (connection.server.host.clone(), token_of(&connection), namespace)
    };
    let told = |host: &str, token: &str, namespace: &str| {
        (host.to_owned(), token.to_owned(), namespace.to_owned())
    };
    assert_eq!(chosen(|options| options.context = Some("other".into())), told("other", "", ""));
    assert_eq!(
        chosen(|options| options.cluster = Some("c2".into())),
        told("other", "canary", "shop")
    );
    assert_eq!(
        chosen(|options| options.user = Some("u2".into())),
        told("example.com", "two", "shop")
    );
    assert_eq!(
        chosen(|options| options.namespace = Some("n".into())),
        told("example.com", "canary", "n")
    );
}

#[test]
fn several_kubeconfigs_are_as_one_and_the_first_counts() {
    let folder = Folder::new();
    let first = folder.write(
        "a/config",
        "clusters: [{name: c, cluster: {server: 'https://first', certificate-authority: ca.crt}}]",
    );
    folder.write("a/ca.crt", &self_signed(2050).0);
    let second = folder.write("b/config", GOOD);
    let files = [first, folder.path("missing"), PathBuf::new(), second];
    let environment =
        Environment::empty().variable("KUBECONFIG", std::env::join_paths(files).unwrap());
    let options = ConfigOptions { environment, ..ConfigOptions::default() };
    let connection = Connection::from_kubeconfig(&options).unwrap();
    assert_eq!(connection.server.host, "first");
    assert_eq!(connection.tls.authority, Authority::File(folder.path("a/ca.crt")));
    assert_eq!(token_of(&connection), "canary");
}

#[test]
fn the_cluster_says_how_it_is_checked_and_reached() {
    let folder = Folder::new();
    let (authority, _) = self_signed(2050);
    let data = STANDARD.encode(&authority);
    let cluster = format!(
        "{SERVER}, certificate-authority-data: {data}, tls-server-name: api, proxy-url: 'http://me:canary@proxy:3128'"
    );
    let mut options = options(folder.write("config", &kubeconfig(&cluster, "")));
    options.environment = Environment::empty().variable("HTTPS_PROXY", "http://other");
    let connection = Connection::from_kubeconfig(&options).unwrap();
    assert_eq!(connection.tls.authority, Authority::Pem(authority.into_bytes()));
    assert_eq!(connection.tls.server_name.as_deref(), Some("api"));
    let proxy = connection.proxy.clone().unwrap();
    assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
    assert!(!format!("{connection:?}").contains("canary"));

    folder.write("config", &kubeconfig(&format!("{SERVER}, insecure-skip-tls-verify: true"), ""));
    let connection = Connection::from_kubeconfig(&options).unwrap();
    assert_eq!(connection.tls.verification, Verification::Skipped);
    assert_eq!(connection.proxy.map(|proxy| proxy.host).as_deref(), Some("other"));
}

#[tokio::test]
async fn a_user_may_have_a_certificate_a_token_file_and_someone_to_act_as() {
    let folder = Folder::new();
    let (certificate, key) = self_signed(2050);
    folder.write("tls.crt", &certificate);
    folder.write("token", "canary\n");
    let user = format!(
        "client-certificate: tls.crt, client-key-data: {}, tokenFile: token, \
         as: jane, as-uid: '7', as-groups: [b, a], as-user-extra: {{z: [1], y: [2, 3]}}",
        STANDARD.encode(&key)
    );
    let options = options(folder.write(
        "config",
        &kubeconfig(SERVER, &user.replace("[1]", "['1']").replace("[2, 3]", "['2', '3']")),
    ));
    let connection = Connection::from_kubeconfig(&options).unwrap();
    let token = connection.credentials.token().await.unwrap().unwrap();
    assert_eq!(token.expose_secret(), "canary");
    let identity = connection.credentials.identity().await.unwrap().unwrap();
    assert_eq!((identity.certificates, identity.generation), (certificate.into_bytes(), 1));
    assert_eq!(identity.key.expose_secret(), key);
    let two = ["2".to_owned(), "3".to_owned()].to_vec();
    let expected = Impersonation {
        user: "jane".to_owned(),
        uid: Some("7".to_owned()),
        groups: vec!["b".to_owned(), "a".to_owned()],
        extra: vec![("y".to_owned(), two), ("z".to_owned(), vec!["1".to_owned()])],
    };
    assert_eq!(connection.impersonation, Some(expected));
}

#[test]
fn a_token_of_oidc_is_used_while_it_is_good() {
    let folder = Folder::new();
    let token = jwt(4_000_000_000);
    let user = format!("auth-provider: {{name: oidc, config: {{id-token: {token}}}}}");
    let options = options(folder.write("config", &kubeconfig(SERVER, &user)));
    let connection = Connection::from_kubeconfig(&options).unwrap();
    assert_eq!(token_of(&connection), token);
    assert!(!format!("{connection:?}").contains("canary"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_plugin_runs_as_the_kubeconfig_says() {
    const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";
    let folder = Folder::new();
    let script = r#"printf '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s.%s.%s"}}' "$2" "$1" "$ADDED" "${DROPPED:-none}""#;
    folder.write("plugin.sh", script);
    let user = format!(
        "exec: {{apiVersion: {V1BETA1}, command: sh, args: ['{}', canary, {V1BETA1}], provideClusterInfo: true, \
         env: [{{name: ADDED, value: added}}]}}",
        folder.path("plugin.sh").display()
    );
    let mut options = options(folder.write("config", &kubeconfig(SERVER, &user)));
    options.plugins = PluginPolicy::AllowList(vec!["sh".into()]);
    options.plugins_without = vec!["DROPPED".to_owned()];
    options.environment =
        Environment::empty().variable("PATH", "/usr/bin:/bin").variable("DROPPED", "canary");
    let connection = Connection::from_kubeconfig(&options).unwrap();
    let token = connection.credentials.token().await.unwrap().unwrap();
    assert_eq!(token.expose_secret(), "canary.added.none");
    assert!(!format!("{options:?}{connection:?}").contains("canary"));
}
