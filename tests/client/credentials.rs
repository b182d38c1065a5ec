//! Who we are.

use std::sync::{Arc, Mutex};

use kubeflect::api::ApiError;
use kubeflect::client::{
    Connection, CredentialError, Credentials, HttpOptions, Impersonation, Scheme,
};

use crate::certificates::{Authority, ClientCertificates};
use crate::front::{Gate, header};
use crate::support::{Followed, TestCredentials, World, connection, list, pod, trusting, whole};

const UNAUTHORIZED: &[u8] =
    b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Lets in who has the token of the moment.
pub(crate) fn guard(accepted: &Arc<Mutex<&'static str>>) -> Gate {
    let accepted = Arc::clone(accepted);
    Arc::new(move |head| {
        let expected = format!("Bearer {}", accepted.lock().unwrap());
        let let_in = header(head, "authorization") == Some(expected.as_str());
        (!let_in).then(|| UNAUTHORIZED.to_vec())
    })
}

fn with_tokens(
    connection: Connection,
    tokens: &[&'static str],
) -> (Connection, Arc<TestCredentials>) {
    let credentials = TestCredentials::tokens(tokens);
    let shared: Arc<dyn Credentials> = Arc::<TestCredentials>::clone(&credentials);
    (Connection { credentials: shared, ..connection }, credentials)
}

#[actix::test]
async fn a_token_is_replaced_while_a_watch_runs() {
    let authority = Authority::new("test");
    let accepted = Arc::new(Mutex::new("first"));
    let config = authority.server(&["127.0.0.1"], ClientCertificates::Ignored);
    let world = World::with("127.0.0.1", Some(config), Some(guard(&accepted))).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let (connection, credentials) = with_tokens(connection, &["first", "second"]);
    let mut followed = Followed::start(connection, HttpOptions::default()).await;
    *accepted.lock().unwrap() = "second";
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b", "the watch goes on");
    assert_eq!(credentials.state.lock().unwrap().rejections, 0);
    world.server.cut_watches();
    world.server.create(pod("c")).unwrap();
    assert_eq!(followed.next().await, "added default/c");
    assert_eq!(credentials.state.lock().unwrap().rejections, 1);
    assert!(followed.pods.status().condition.is_none(), "the reflector saw nothing of it");
    world.stop(followed.runtime).await;
}

#[actix::test]
async fn a_token_that_is_refused_is_asked_for_once_more_and_no_oftener() {
    let accepted = Arc::new(Mutex::new("none of them"));
    let world = World::gated(guard(&accepted)).await;
    let local = world.connection(Scheme::Http, "127.0.0.1");
    let (connection, credentials) = with_tokens(local.clone(), &["first", "second", "third"]);
    assert_eq!(list(connection).await.unwrap().0, 401);
    assert_eq!(world.front.heads().len(), 2);
    assert_eq!(credentials.state.lock().unwrap().rejections, 1);
    let (connection, _) = with_tokens(local.clone(), &["only"]);
    assert_eq!(list(connection).await.unwrap().0, 401);
    assert_eq!(world.front.heads().len(), 3, "the same token is not sent again");
    assert_eq!(list(local).await.unwrap().0, 401);
    assert_eq!(world.front.heads().len(), 4);
}

#[actix::test]
async fn a_token_is_not_sent_without_tls_except_to_this_machine() {
    let (connection, _) = with_tokens(connection(Scheme::Http, "192.0.2.1", 80), &["canary"]);
    let error = list(connection.clone()).await.unwrap_err();
    assert!(matches!(error, ApiError::Unauthorized { .. }), "{error:?}");
    assert!(error.to_string().contains("write https://"), "{error}");
    assert!(!format!("{error:?} {connection:?}").contains("canary"));

    let world = World::plain().await;
    let (connection, _) = with_tokens(world.connection(Scheme::Http, "127.0.0.1"), &["canary"]);
    assert_eq!(list(connection).await.unwrap().0, 200);
    assert_eq!(header(&world.front.heads()[0], "authorization"), Some("Bearer canary"));
}

#[actix::test]
async fn a_request_says_who_asks_and_for_whom() {
    let world = World::plain().await;
    let mut connection = world.connection(Scheme::Http, "127.0.0.1");
    connection.impersonation = Some(Impersonation {
        user: "jane".to_owned(),
        groups: vec!["developers".to_owned(), "admins".to_owned()],
        ..Impersonation::default()
    });
    assert_eq!(list(connection).await.unwrap().0, 200);
    let head = &world.front.heads()[0];
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let agent = format!("kubeflect/{} ({os}/{architecture})", env!("CARGO_PKG_VERSION"));
    assert_eq!(header(head, "user-agent"), Some(agent.as_str()));
    assert_eq!(header(head, "accept"), Some("application/json"));
    assert_eq!(header(head, "accept-encoding"), Some("gzip"));
    assert_eq!(header(head, "impersonate-user"), Some("jane"));
    assert_eq!(head.to_lowercase().matches("impersonate-group: ").count(), 2, "{head}");
    assert_eq!(header(head, "authorization"), None);
}

/// Has no token, for a reason.
#[derive(Debug)]
struct Broken;

impl Credentials for Broken {
    fn token(
        &self,
    ) -> futures::future::BoxFuture<'_, Result<Option<secrecy::SecretString>, CredentialError>>
    {
        let (what, problem) = ("token file /a".to_owned(), "is missing".to_owned());
        Box::pin(async { Err(CredentialError { what, problem }) })
    }

    fn identity(
        &self,
    ) -> futures::future::BoxFuture<
        '_,
        Result<Option<kubeflect::client::ClientIdentity>, CredentialError>,
    > {
        Box::pin(async { Ok(None) })
    }

    fn rejected(&self) {}
}

#[actix::test]
async fn credentials_that_can_not_be_had_say_why() {
    let world = World::plain().await;
    let mut connection = world.connection(Scheme::Http, "127.0.0.1");
    connection.credentials = Arc::new(Broken);
    let error = list(connection).await.unwrap_err();
    assert_eq!(whole(&error), "not authenticated: token file /a: is missing");
    assert!(error.needs_help());
}
