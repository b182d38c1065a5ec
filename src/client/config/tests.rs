//! Whole kubeconfigs, good and broken.

use std::path::Path;

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
fn a_file_that_is_no_kubeconfig_says_what_to_do() {
    let folder = Folder::new();
    for (content, error) in [
        (
            "users: [{name: u, user: {token: [canary]}}]",
            "DIR/config: is no kubeconfig: its YAML is wrong at line 1, column 33: correct it there",
        ),
        (
            "a: 'canary",
            "DIR/config: is no kubeconfig: its YAML is wrong at line 1, column 4: correct it there",
        ),
        ("", "DIR/config: current-context: is missing: set it, or choose a context"),
        ("clusters:", "DIR/config: current-context: is missing: set it, or choose a context"),
        (
            "current-context: dev",
            "DIR/config: current-context: no context is called \"dev\": run kubectl config get-contexts",
        ),
        (
            "{current-context: dev, contexts: [{name: dev}]}",
            "DIR/config: contexts[dev].context: is missing",
        ),
        (
            "{current-context: dev, contexts: [{name: dev, context: {cluster: c}}]}",
            "DIR/config: contexts[dev].context.cluster: no cluster is called \"c\": run kubectl config get-clusters",
        ),
        (
            "{current-context: dev, contexts: [{name: dev, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {}}]}",
            "DIR/config: contexts[dev].context.user: no user is called \"u\": run kubectl config get-users",
        ),
    ] {
        let options = options(folder.write("config", content));
        assert_eq!(error_of(&folder, &options), error, "{content}");
    }
    assert_eq!(
        error_of(&folder, &options(folder.path("nowhere"))),
        "DIR/nowhere: can not be read: entity not found: give the path of a kubeconfig"
    );
    assert_eq!(
        error_of(&folder, &options(folder.root())),
        "DIR: is not a file: give the path of a kubeconfig"
    );
    std::fs::write(folder.path("config"), b"\xff\xfe").unwrap();
    assert_eq!(
        error_of(&folder, &options(folder.path("config"))),
        "DIR/config: is not UTF-8: save it as UTF-8"
    );
    folder.write("config", &"#".repeat(1024 * 1024 + 1));
    assert_eq!(
        error_of(&folder, &options(folder.path("config"))),
        "DIR/config: is longer than 1024 KiB: give the path of a kubeconfig"
    );
}

#[test]
fn an_option_that_leads_nowhere_is_named() {
    let folder = Folder::new();
    let good = options(folder.write("config", GOOD));
    let name = || Some("x".to_owned());
    assert_eq!(
        error_of(&folder, &ConfigOptions { context: name(), ..good.clone() }),
        "DIR/config: contexts: none is called \"x\": run kubectl config get-contexts"
    );
    assert_eq!(
        error_of(&folder, &ConfigOptions { cluster: name(), ..good.clone() }),
        "DIR/config: clusters: none is called \"x\": run kubectl config get-clusters"
    );
    assert_eq!(
        error_of(&folder, &ConfigOptions { user: name(), ..good }),
        "DIR/config: users: none is called \"x\": run kubectl config get-users"
    );
}

#[test]
fn a_broken_cluster_says_what_to_do() {
    let folder = Folder::new();
    folder.write("empty.crt", "canary");
    let authority = STANDARD.encode(self_signed(2050).0);
    for (cluster, error) in [
        (String::new(), "server: is missing: write https://HOST:PORT"),
        (
            "server: 'https://me:canary@host'".to_owned(),
            "server: \"…@host\" holds a user or a password: leave out all before @ and set up a user instead",
        ),
        (
            format!("{SERVER}, certificate-authority: nowhere.crt"),
            "certificate-authority: DIR/nowhere.crt can not be read: entity not found: give the path of a PEM file",
        ),
        (
            format!("{SERVER}, certificate-authority: empty.crt"),
            "certificate-authority: holds no certificate: it must be PEM with BEGIN CERTIFICATE",
        ),
        (
            format!("{SERVER}, certificate-authority-data: 'canary!'"),
            "certificate-authority-data: is not base64: write the PEM file through base64 into it",
        ),
        (
            format!(
                "{SERVER}, certificate-authority-data: {authority}, insecure-skip-tls-verify: true"
            ),
            "insecure-skip-tls-verify: contradicts the certificate authority: remove one of them, this one if in doubt",
        ),
        (
            format!("{SERVER}, proxy-url: 'socks5://me:canary@proxy'"),
            "proxy-url: \"…@proxy\" is a SOCKS proxy, which is not supported: use an HTTP proxy, http://HOST:PORT",
        ),
    ] {
        let options = options(folder.write("config", &kubeconfig(&cluster, "")));
        let expected = format!("DIR/config: clusters[c].cluster.{error}");
        assert_eq!(error_of(&folder, &options), expected, "{cluster}");
    }
}

#[test]
fn a_broken_user_says_what_to_do() {
    const BASIC: &str = "is not supported, no cluster since 1.19 takes it: \
                         use a token, a client certificate or an exec plugin";
    const REFRESH: &str = "and it is not refreshed here: use an exec plugin such as kubelogin";
    let folder = Folder::new();
    let (certificate, key) = self_signed(2050);
    folder.write("tls.crt", &certificate);
    folder.write("tls.key", &key);
    folder.write("old.crt", &self_signed(2020).0);
    let (old, old_key) = self_signed(2020);
    folder.write("old.crt", &old);
    folder.write("old.key", &old_key);
    for (user, error) in [
        ("username: canary".to_owned(), format!("username: {BASIC}")),
        ("password: canary".to_owned(), format!("password: {BASIC}")),
        ("token: 'can ary'".to_owned(), "token: holds characters that no token has: write it anew".to_owned()),
        (
            "tokenFile: nowhere".to_owned(),
            "tokenFile: DIR/nowhere can not be read: entity not found: give the path of a file with a token".to_owned(),
        ),
        ("client-certificate: tls.crt".to_owned(), "client-key: is missing: client-certificate needs it".to_owned()),
        ("client-key: tls.key".to_owned(), "client-certificate: is missing: client-key needs it".to_owned()),
        (
            "client-certificate: tls.crt, client-key: nowhere".to_owned(),
            "client-key: DIR/nowhere can not be read: entity not found: give the path of a PEM file".to_owned(),
        ),
        (
            "client-certificate: tls.crt, client-key: old.key".to_owned(),
            "client-key: does not belong to the certificate".to_owned(),
        ),
        (
            "client-certificate: tls.key, client-key: tls.key".to_owned(),
            "client-certificate: holds no certificate: it must be PEM with BEGIN CERTIFICATE".to_owned(),
        ),
        (
            "client-certificate: tls.crt, client-key: tls.crt".to_owned(),
            "client-key: holds no private key: it must be PEM with BEGIN PRIVATE KEY, not encrypted".to_owned(),
        ),
        (
            "client-certificate: tls.crt, client-key-data: 'canary!'".to_owned(),
            "client-key-data: is not base64: write the PEM file through base64 into it".to_owned(),
        ),
        (
            "client-certificate: old.crt, client-key: old.key".to_owned(),
            "client-certificate: has expired at 2020-01-01T00:00:00Z: get a new certificate".to_owned(),
        ),
        (
            "as-groups: [a]".to_owned(),
            "as: is missing: as-uid, as-groups and as-user-extra need it".to_owned(),
        ),
        ("as: \"a\\r\\nb\"".to_owned(), "as: holds control characters: remove them".to_owned()),
        (
            "auth-provider: {name: gcp}".to_owned(),
            "auth-provider: is no longer supported by Kubernetes: use the exec plugin of your provider".to_owned(),
        ),
        (
            "auth-provider: {name: oidc}".to_owned(),
            format!("auth-provider.config.id-token: is missing, {REFRESH}"),
        ),
        (
            "auth-provider: {name: oidc, config: {id-token: canary}}".to_owned(),
            format!("auth-provider.config.id-token: is no token of OIDC, {REFRESH}"),
        ),
        (
            format!("auth-provider: {{name: oidc, config: {{id-token: {}}}}}", jwt(0)),
            format!("auth-provider.config.id-token: has expired at 1970-01-01T00:00:00Z, {REFRESH}"),
        ),
        (
            "auth-provider: {name: oidc}, exec: {command: x}".to_owned(),
            "auth-provider: stands beside exec: remove one of them".to_owned(),
        ),
    ] {
        let options = options(folder.write("config", &kubeconfig(SERVER, &user)));
        let expected = format!("DIR/config: users[u].user.{error}");
        assert_eq!(error_of(&folder, &options), expected, "{user}");
    }
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
#[test]
fn a_broken_plugin_entry_says_what_to_do() {
    const V1: &str = "apiVersion: client.authentication.k8s.io/v1";
    let folder = Folder::new();
    for (exec, error) in [
        (
            "command: sh, apiVersion: client.authentication.k8s.io/v1alpha1".to_owned(),
            "exec.apiVersion: is not supported: write client.authentication.k8s.io/v1, and update the plugin if it is older",
        ),
        (
            format!("{V1}, command: sh, interactiveMode: Always"),
            "exec.interactiveMode: is Always, but there is no terminal here: \
             log in beforehand and write IfAvailable or Never",
        ),
        (V1.to_owned(), "exec.command: is missing: write the name or the path of a program"),
        (
            format!("{V1}, command: nothing-of-that-name"),
            "exec.command: there is no program nothing-of-that-name in PATH: install it, or correct the name",
        ),
        (
            format!("{V1}, command: ./tool, installHint: \"run\\n apt install tool\""),
            "exec.command: there is no program DIR/./tool: run apt install tool",
        ),
        (
            format!("{V1}, command: sh, env: [{{name: A}}]"),
            "exec.env: has an entry without name or value: give each both",
        ),
        (
            format!("{V1}, command: sh, env: [{{name: 'A=', value: canary}}]"),
            "exec.env: has an entry that can be no variable: correct its name",
        ),
    ] {
        let user = format!("exec: {{{exec}}}");
        let mut options = options(folder.write("config", &kubeconfig(SERVER, &user)));
        options.environment = Environment::empty().variable("PATH", "/bin");
        let expected = format!("DIR/config: users[u].user.{error}");
        assert_eq!(error_of(&folder, &options), expected, "{exec}");
    }
    let user = format!("exec: {{{V1}, command: sh}}");
    let mut options = options(folder.write("config", &kubeconfig(SERVER, &user)));
    options.environment = Environment::empty().variable("PATH", "/bin");
    for (plugins, error) in [
        (PluginPolicy::Deny, "credential plugins are not allowed: allow them, or use a token"),
        (
            PluginPolicy::AllowList(vec!["aws".into()]),
            "the credential plugin /bin/sh is not among those allowed: add it to them",
        ),
    ] {
        let expected = format!("DIR/config: users[u].user.exec.command: {error}");
        assert_eq!(error_of(&folder, &ConfigOptions { plugins, ..options.clone() }), expected);
    }
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

fn in_pod(folder: &Path, host: &str, port: &str) -> Environment {
    Environment::empty()
        .variable("KUBERNETES_SERVICE_HOST", host)
        .variable("KUBERNETES_SERVICE_PORT", port)
        .service_account(folder)
}

#[tokio::test]
async fn a_pod_finds_its_server_and_its_account() {
    let folder = Folder::new();
    folder.write("token", "canary\n");
    folder.write("ca.crt", &self_signed(2050).0);
    folder.write("namespace", "shop\n");
    for (host, server) in [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("[fd00::1]", "https://[fd00::1]:443"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:443"),
    ] {
        let connection = Connection::in_cluster_with(&in_pod(folder.root(), host, "443")).unwrap();
        assert_eq!(connection.server.to_string(), server);
        assert_eq!(connection.default_namespace.as_deref(), Some("shop"));
        assert_eq!(connection.tls.authority, Authority::File(folder.path("ca.crt")));
        let token = connection.credentials.token().await.unwrap().unwrap();
        assert_eq!(token.expose_secret(), "canary");
    }
}

#[test]
fn a_pod_without_what_it_needs_says_so() {
    let folder = Folder::new();
    let error = |environment: &Environment| {
        let error = Connection::in_cluster_with(environment).unwrap_err().to_string();
        error.replace(&folder.root().display().to_string(), "DIR")
    };
    let no_host = "KUBERNETES_SERVICE_HOST: is no host: it must be a name or an address";
    let no_port = "KUBERNETES_SERVICE_PORT: is no port: it must be a number from 1 to 65535";
    for (host, port, expected) in [
        ("", "443", "KUBERNETES_SERVICE_HOST: is not set: run in a pod, or use a kubeconfig"),
        ("10.0.0.1", "", "KUBERNETES_SERVICE_PORT: is not set: run in a pod, or use a kubeconfig"),
        ("me@host", "443", no_host),
        ("host/path", "443", no_host),
        ("a:b", "443", no_host),
        ("10.0.0.1", "0", no_port),
        ("10.0.0.1", "+443", no_port),
        (
            "10.0.0.1",
            "443",
            "DIR/token: can not be read: entity not found: mount a service account",
        ),
    ] {
        assert_eq!(error(&in_pod(folder.root(), host, port)), expected);
    }
    folder.write("token", "canary");
    folder.write("ca.crt", "canary");
    assert_eq!(
        error(&in_pod(folder.root(), "10.0.0.1", "443")),
        "DIR/ca.crt: holds no certificate: it must be PEM with BEGIN CERTIFICATE"
    );
}

#[test]
fn what_is_there_is_found_and_what_is_not_is_named() {
    let folder = Folder::new();
    let home = Environment::empty().home(folder.root());
    let infer = |environment: Environment| {
        let options = ConfigOptions { environment, ..ConfigOptions::default() };
        let connection = Connection::infer_with(&options);
        let text = connection.map(|connection| connection.server.to_string());
        let shown = |text: String| text.replace(&folder.root().display().to_string(), "DIR");
        text.map_err(|error| shown(error.to_string()))
    };
    assert_eq!(
        infer(home.clone()).unwrap_err(),
        "no cluster: DIR/.kube/config is not there and KUBERNETES_SERVICE_HOST is not set: \
         set KUBECONFIG to a kubeconfig, or run in a pod"
    );
    assert_eq!(
        infer(home.variable("KUBECONFIG", folder.path("nowhere"))).unwrap_err(),
        "KUBECONFIG: names no file that exists (DIR/nowhere): set it to a kubeconfig"
    );
    folder.write("token", "canary");
    folder.write("ca.crt", &self_signed(2050).0);
    let pod = in_pod(folder.root(), "10.0.0.1", "443");
    assert_eq!(infer(pod.clone().home(folder.root())).as_deref(), Ok("https://10.0.0.1:443"));
    folder.write(".kube/config", GOOD);
    assert_eq!(infer(pod.home(folder.root())).as_deref(), Ok("https://example.com:6443"));
}

#[test]
fn an_address_alone_is_a_connection_as_nobody() {
    let connection = Connection::at("http://127.0.0.1:8001").unwrap();
    assert_eq!(token_of(&connection), "");
    assert_eq!(
        Connection::at("https://me:canary@host").unwrap_err().to_string(),
        "\"…@host\": holds a user or a password: leave out all before @ and set up a user instead"
    );
}

#[cfg(unix)]
#[test]
fn a_file_others_may_read_is_exposed() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let file = folder.write("config", GOOD);
    for (mode, is_exposed) in [(0o600, false), (0o640, true), (0o604, true), (0o400, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(kubeconfig::is_exposed(&file), is_exposed, "{mode:o}");
    }
}

#[test]
fn aliases_that_multiply_are_refused() {
    let folder = Folder::new();
    let mut content = "a0: &a0 [canary, canary]\n".to_owned();
    for level in 1..40 {
        let last = level - 1;
        content += &format!("a{level}: &a{level} [*a{last}, *a{last}]\n");
    }
    let error = error_of(&folder, &options(folder.write("config", &content)));
    assert!(error.starts_with("DIR/config: is no kubeconfig: its YAML is wrong"), "{error}");
}
