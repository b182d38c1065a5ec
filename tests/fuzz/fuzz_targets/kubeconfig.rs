//! A kubeconfig, whatever it holds, makes a connection or one line that says what is wrong with it.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use kubeflect::client::{ConfigOptions, Connection, Environment, PluginPolicy};
use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("kubeflect-fuzz-{}", std::process::id())));

fuzz_target!(|input: &[u8]| {
    std::fs::write(&*FILE, input).expect("the folder for temporary files can be written to");
    let options = ConfigOptions {
        kubeconfig: Some(FILE.clone()),
        plugins: PluginPolicy::Deny,
        environment: Environment::empty(),
        ..ConfigOptions::default()
    };
    if let Err(error) = Connection::from_kubeconfig(&options) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
});
