//! Every kubeconfig that can not be used says in one line where, which field, and what to do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{GOOD, SERVER, error_of, jwt, kubeconfig, options};
use crate::client::config::{ConfigOptions, Environment, Folder, PluginPolicy, self_signed};

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
    const REFRESH: &str =
        "and there is no refresh-token to renew it: use an exec plugin such as kubelogin";
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
