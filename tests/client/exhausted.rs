//! A process that has no file descriptor left.

use std::fs::File;
use std::process::Command;
use std::sync::Arc;

use kubeflect::api::{ApiError, Recovery};
use kubeflect::client::{Cluster as _, Credentials as _, HttpCluster, Request, Scheme, TokenFile};
use secrecy::ExposeSecret as _;

use crate::support::{World, connection, read, whole};

/// In the child: the port of the server in the parent.
const PORT: &str = "KUBEFLECT_TEST_PORT";
const NAME: &str = "exhausted::without_a_descriptor_left_requests_fail_and_then_work_again";

/// Runs itself once more in a process that may open only a few files, and uses them up there.
#[actix::test]
async fn without_a_descriptor_left_requests_fail_and_then_work_again() {
    if let Ok(port) = std::env::var(PORT) {
        return use_them_up(port.parse().unwrap()).await;
    }
    let world = World::plain().await;
    let port = world.front.address.port();
    let child = tokio::task::spawn_blocking(move || {
        let program = std::env::current_exe().unwrap();
        let script = r#"ulimit -n 64 && exec "$0" "$@""#;
        let mut child = Command::new("sh");
        child.args(["-c", script]).arg(program).args(["--exact", NAME, "--nocapture"]);
        child.env(PORT, port.to_string()).output().unwrap()
    });
    let output = child.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    assert_eq!(world.front.heads().len(), 2, "one before, one after");
}

async fn use_them_up(port: u16) {
    let file = std::env::temp_dir().join(format!("kubeflect-exhausted-{port}"));
    std::fs::write(&file, "canary").unwrap();
    let token = Arc::new(TokenFile::new(&file));
    let mut connection = connection(Scheme::Http, "127.0.0.1", port);
    connection.credentials = Arc::<TokenFile>::clone(&token);
    let transport = HttpCluster::from_connection(connection).connect().unwrap();
    let list = || transport.send(Request::get("/api/v1/pods"));
    assert_eq!(read(list().await.unwrap()).await.unwrap().0, 200);

    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    token.rejected();
    let kept = token.token().await.unwrap().unwrap();
    assert_eq!(kept.expose_secret(), "canary", "the file can not be read, and its token is kept");
    let error = list().await.unwrap_err();
    assert!(matches!(error, ApiError::Connection(_)), "{error:?}");
    assert_eq!(error.recovery(), Recovery::Retry);
    assert!(whole(&error).contains("open files"), "{}", whole(&error));

    drop(held);
    assert_eq!(read(list().await.unwrap()).await.unwrap().0, 200);
    std::fs::remove_file(&file).unwrap();
}
