//! From a kubeconfig to a cache: what a user writes, over TLS, with a plugin and with a token file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeflect::client::{ConfigOptions, Connection, Environment, HttpOptions};
use serde_json::json;

use crate::certificates::{Authority, ClientCertificates};
use crate::credentials::guard;
use crate::support::{Followed, World, pod};

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kubeflect-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        fs::write(&file, text).unwrap();
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(crate) async fn guarded(authority: &Authority, accepted: &Arc<Mutex<&'static str>>) -> World {
    let config = authority.server(&["127.0.0.1"], ClientCertificates::Ignored);
    World::with("127.0.0.1", Some(config), Some(guard(accepted))).await
}

/// A kubeconfig for the world's front and this user.
pub(crate) fn kubeconfig(
    folder: &Folder,
    world: &World,
    authority: &Authority,
    user: &serde_json::Value,
) -> PathBuf {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "front", "user": "somebody" } }],
        "clusters": [{ "name": "front", "cluster": {
            "server": format!("https://{}", world.front.address),
            "certificate-authority-data": STANDARD.encode(authority.pem()),
        } }],
        "users": [{ "name": "somebody", "user": user }],
    });
    folder.file("config", &config.to_string())
}

pub(crate) fn load(file: &Path) -> Connection {
    let options = ConfigOptions {
        kubeconfig: Some(file.to_owned()),
        environment: Environment::empty(),
        ..ConfigOptions::default()
    };
    Connection::from_kubeconfig(&options).unwrap()
}

#[actix::test]
async fn a_plugin_is_run_once_for_all_requests_and_again_when_its_token_is_refused() {
    let folder = Folder::new("plugin");
    let (authority, accepted) = (Authority::new("test"), Arc::new(Mutex::new("token-1")));
    let world = guarded(&authority, &accepted).await;
    let script = folder.file(
        "plugin.sh",
        &format!(
            r#"echo run >> {0}/runs
count=$(wc -l < {0}/runs | tr -d ' ')
printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"token-%s"}}}}' $count
"#,
            folder.0.display()
        ),
    );
    let user = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": [script],
        "interactiveMode": "Never",
    } });
    let connection = load(&kubeconfig(&folder, &world, &authority, &user));
    let runs = || fs::read_to_string(folder.0.join("runs")).unwrap().lines().count();

    let mut followed = Followed::start(connection, HttpOptions::default()).await;
    world.server.cut_watches();
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b");
    assert_eq!(runs(), 1, "one run serves every request");

    *accepted.lock().unwrap() = "token-2";
    world.server.cut_watches();
    world.server.create(pod("c")).unwrap();
    assert_eq!(followed.next().await, "added default/c");
    assert_eq!(runs(), 2);
    world.stop(followed.runtime).await;
}

#[actix::test]
async fn a_token_file_is_read_again_when_its_token_is_refused() {
    let folder = Folder::new("token");
    let (authority, accepted) = (Authority::new("test"), Arc::new(Mutex::new("first")));
    let world = guarded(&authority, &accepted).await;
    folder.file("token", "first\n");
    // Relative, and so beside the kubeconfig.
    let connection =
        load(&kubeconfig(&folder, &world, &authority, &json!({ "tokenFile": "token" })));

    let mut followed = Followed::start(connection, HttpOptions::default()).await;
    folder.file("token", "second\n");
    *accepted.lock().unwrap() = "second";
    world.server.cut_watches();
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b");
    world.stop(followed.runtime).await;
}
