use secrecy::ExposeSecret as _;

use super::*;
use crate::client::config::Folder;

const TOKEN: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"canary-COUNT"}}"#;

/// A plugin that counts its runs in `calls` and then does what `script` says.
struct Script {
    folder: Folder,
    plugin: CredentialPlugin,
}

impl Script {
    fn new(script: &str) -> Self {
        Self::with(script, |_options| {})
    }

    fn with(script: &str, change: impl FnOnce(&mut PluginOptions)) -> Self {
        let folder = Folder::new();
        let calls = folder.path("calls");
        let script = format!(
            "echo >> '{calls}'\nCOUNT=$(wc -l < '{calls}' | tr -d ' ')\n{script}\n",
            calls = calls.display()
        );
        let path = folder.write("plugin.sh", &script);
        // By way of sh: a file just written may still be open for writing in a process another test is starting.
        let mut options = PluginOptions::new("/bin/sh");
        options.arguments = vec![path.display().to_string()];
        options.environment.insert("PATH".into(), "/usr/bin:/bin".into());
        options.backoff = BackoffOptions {
            first: Duration::from_secs(600),
            cap: Duration::from_secs(600),
            ..options.backoff
        };
        change(&mut options);
        Self { folder, plugin: CredentialPlugin::new(options) }
    }

    fn calls(&self) -> usize {
        std::fs::read_to_string(self.folder.path("calls")).unwrap_or_default().lines().count()
    }

    async fn token(&self) -> Result<String, String> {
        let token = self.plugin.token().await.map_err(|error| error.to_string())?;
        Ok(token.unwrap().expose_secret().to_owned())
    }
}

fn printing(json: &str) -> String {
    format!("printf '%s' '{json}' | sed \"s/COUNT/$COUNT/\"")
}

#[tokio::test]
async fn however_many_ask_a_plugin_runs_once() {
    let script = Script::new(&printing(TOKEN));
    let tokens = futures::future::join_all((0..20).map(|_| script.token())).await;
    assert!(tokens.iter().all(|token| token.as_deref() == Ok("canary-1")), "{tokens:?}");
    assert_eq!(script.plugin.identity().await.map(|identity| identity.is_none()), Ok(true));
    assert_eq!(script.calls(), 1);
}

#[actix_rt::test]
async fn a_plugin_runs_on_an_arbiter_too() {
    assert_eq!(Script::new(&printing(TOKEN)).token().await.as_deref(), Ok("canary-1"));
}

#[tokio::test]
async fn a_rejected_token_runs_the_plugin_again() {
    let script = Script::with(&printing(TOKEN), |options| options.backoff.first = Duration::ZERO);
    assert_eq!(script.token().await.as_deref(), Ok("canary-1"));
    script.plugin.rejected();
    assert_eq!(script.token().await.as_deref(), Ok("canary-2"));
    assert_eq!(script.token().await.as_deref(), Ok("canary-2"));
    assert_eq!(script.calls(), 2);
}

#[tokio::test]
async fn a_token_that_expires_runs_the_plugin_again() {
    let expired = TOKEN.replace(
        "\"canary-COUNT\"",
        "\"canary-COUNT\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"",
    );
    let script = Script::new(&printing(&expired));
    let error = "credential plugin /bin/sh: gave credentials that have expired: check its clock and its login";
    assert_eq!(script.token().await, Err(error.to_owned()));
    assert_eq!(script.token().await, Err(error.to_owned()));
    assert_eq!(script.calls(), 1, "it rests");
    let lasting = expired.replace("2020", "2120");
    let script = Script::new(&printing(&lasting));
    assert_eq!(script.token().await.as_deref(), Ok("canary-1"));
    assert_eq!(script.token().await.as_deref(), Ok("canary-1"));
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn a_plugin_that_hangs_is_stopped() {
    let script = Script::with("echo waiting >&2; exec sleep 1000", |options| {
        options.timeout = Duration::from_millis(300);
    });
    let error = script.token().await.unwrap_err();
    assert!(
        error.starts_with("credential plugin /bin/sh: took longer than 300ms and was stopped"),
        "{error}"
    );
    assert_eq!(script.token().await, Err(error));
    assert!(script.calls() <= 1, "it may not have come so far");
}

#[tokio::test]
async fn a_plugin_that_prints_garbage_is_told_without_repeating_it() {
    let script = Script::new("echo canary");
    let error = "credential plugin /bin/sh: printed no ExecCredential: line 1, column 1 is not as it should be";
    assert_eq!(script.token().await, Err(error.to_owned()));
    assert_eq!(script.token().await, Err(error.to_owned()));
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn a_plugin_that_prints_100_mb_is_stopped() {
    let script = Script::new("exec head -c 100000000 /dev/zero");
    let error = "credential plugin /bin/sh: printed more than 1024 KiB and was stopped";
    assert_eq!(script.token().await, Err(error.to_owned()));
}

#[tokio::test]
async fn a_plugin_that_says_100_mb_is_cut_short() {
    let script = Script::new("head -c 100000000 /dev/zero | tr '\\0' x >&2; exit 3");
    let error = script.token().await.unwrap_err();
    assert!(
        error.starts_with("credential plugin /bin/sh: failed with exit status: 3; it said: xxx"),
        "{error}"
    );
    assert!(error.len() < 400);
}

#[tokio::test]
async fn a_plugin_that_fails_says_why() {
    let script = Script::new("echo canary; echo 'please log in' >&2; exit 1");
    let error = "credential plugin /bin/sh: failed with exit status: 1; it said: please log in";
    assert_eq!(script.token().await, Err(error.to_owned()));
    assert!(!format!("{:?}", script.plugin).contains("plugin.sh"));
}

#[tokio::test]
async fn a_plugin_that_is_not_there_says_how_to_get_it() {
    let mut options = PluginOptions::new("/nonexistent/plugin");
    options.install_hint = Some("run\n  apt install plugin".to_owned());
    let error = CredentialPlugin::new(options).token().await.unwrap_err().to_string();
    let expected = "credential plugin /nonexistent/plugin: can not be started: entity not found: run apt install plugin";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_plugin_sees_only_the_variables_it_is_given() {
    let script = Script::with("env > \"$SEEN\"; cat; exit 1", |options| {
        let seen = options.arguments[0].replace("plugin.sh", "seen");
        options.environment.insert("SEEN".into(), seen.into());
        options.cluster = Some(serde_json::json!({ "server": "https://example.com" }));
    });
    script.token().await.unwrap_err();
    let seen = std::fs::read_to_string(script.folder.path("seen")).unwrap();
    assert!(!seen.contains("CARGO"), "{seen}");
    let info = seen.lines().find_map(|line| line.strip_prefix("KUBERNETES_EXEC_INFO=")).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(info).unwrap(),
        serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "spec": { "interactive": false, "cluster": { "server": "https://example.com" } },
        })
    );
}

#[tokio::test]
async fn a_request_that_is_given_up_does_not_end_the_run() {
    let script = Script::new(&printing(TOKEN));
    let given_up = tokio::time::timeout(Duration::ZERO, script.token()).await;
    assert!(given_up.is_err());
    assert_eq!(script.token().await.as_deref(), Ok("canary-1"));
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn what_a_plugin_leaves_behind_does_not_hold_it_up() {
    let script = Script::new(&format!("sleep 5 > /dev/null & {}", printing(TOKEN)));
    assert_eq!(script.token().await.as_deref(), Ok("canary-1"));
}
