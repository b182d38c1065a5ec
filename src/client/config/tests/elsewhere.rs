//! What is not in a kubeconfig.

use std::path::Path;

use secrecy::ExposeSecret as _;

use super::{GOOD, token_of};
use crate::client::config::{ConfigOptions, Environment, Folder, self_signed};
use crate::client::{Authority, Connection};

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
    let pod = pod.home(folder.root());
    assert_eq!(infer(pod.clone()).as_deref(), Ok("https://example.com:6443"));
    assert_eq!(infer(pod.variable("KUBECONFIG", ":")).as_deref(), Ok("https://example.com:6443"));
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
        assert_eq!(crate::client::config::kubeconfig::is_exposed(&file), is_exposed, "{mode:o}");
    }
}
