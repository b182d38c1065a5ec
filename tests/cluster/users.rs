//! Who asks, and how that is written down for clients.

use std::fs;
use std::path::{Path, PathBuf};

use kubeflect::client::{ConfigOptions, Connection, Environment};
use serde_json::{Value, json};

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum User {
    /// May do everything: by a client certificate where there is TLS, else by a token.
    Admin,
    /// By one of the tokens the API server was told.
    Token(&'static str),
    /// By the token in the file `token`.
    TokenFile,
    /// By the token that the program `plugin` tells.
    Plugin,
}

/// A program that tells the token in the file `token` beside it.
const PLUGIN: &str = r#"#!/bin/sh
read -r token < "${0%/*}/token"
echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"$token\"}}"
"#;

impl User {
    /// Writes down how to reach a server for this user. The folder has what it takes.
    pub(crate) fn write_kubeconfig(self, folder: &Path, url: &str) -> PathBuf {
        let secure = url.starts_with("https:");
        let credentials: Value = match self {
            Self::Admin if secure => {
                json!({ "client-certificate": "admin.crt", "client-key": "admin.key" })
            }
            Self::Admin => json!({ "token": "admin-token" }),
            Self::Token(token) => json!({ "token": token }),
            Self::TokenFile => json!({ "tokenFile": "token" }),
            Self::Plugin => json!({ "exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
                "command": "/bin/sh", "args": [folder.join("plugin")],
            } }),
        };
        if matches!(self, Self::Plugin) {
            fs::write(folder.join("plugin"), PLUGIN).unwrap();
        }
        let mut cluster = json!({ "server": url });
        if secure {
            cluster["certificate-authority"] = json!("ca.crt");
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "test", "user": credentials }],
        });
        let file = folder.join(format!("kubeconfig-{}", fastrand::u32(..)));
        fs::write(&file, config.to_string()).unwrap();
        file
    }
}

pub(crate) fn load(kubeconfig: &Path) -> Connection {
    let options = ConfigOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        environment: Environment::empty(),
        ..ConfigOptions::default()
    };
    Connection::from_kubeconfig(&options).unwrap()
}
