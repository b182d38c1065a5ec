//! An ID token that is renewed: a kubeconfig, a provider, and a server that takes only what the provider gave last.

use std::sync::{Arc, Mutex};

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubeflect::client::{Connection, HttpOptions};
use serde_json::json;

use crate::certificates::Authority;
use crate::kubeconfig::{Folder, guarded, kubeconfig, load};
use crate::support::{Followed, pod};

/// Tokens that are good until the year 2100.
fn jwt(subject: &str) -> String {
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!(
        "{}.{}.c2lnbmF0dXJl",
        part(json!({ "alg": "none" })),
        part(json!({ "sub": subject, "exp": 4_102_444_800_u64 }))
    )
}

/// A provider that gives another refresh token with each ID token, and takes only the one it gave last.
struct Provider {
    url: String,
    forms: Arc<Mutex<Vec<String>>>,
    handle: ServerHandle,
}

impl Provider {
    fn start() -> Self {
        let forms: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&forms);
        let token = move |form: String| {
            let mut forms = seen.lock().unwrap();
            let count = forms.len();
            let expected = format!("refresh_token=refresh-{count}&");
            let answer = match form.contains(&expected) {
                true => HttpResponse::Ok().json(json!({
                    "id_token": jwt(&format!("token-{}", count + 1)), "refresh_token": format!("refresh-{}", count + 1),
                })),
                false => HttpResponse::BadRequest().json(json!({ "error": "invalid_grant", "hint": "canary" })),
            };
            forms.push(form);
            async { answer }
        };
        let configuration = |request: actix_web::HttpRequest| {
            let endpoint = format!("http://{}/tenant/token", request.connection_info().host());
            async move { HttpResponse::Ok().json(json!({ "token_endpoint": endpoint })) }
        };
        let server = HttpServer::new(move || {
            App::new()
                .route("/tenant/.well-known/openid-configuration", web::get().to(configuration))
                .route("/tenant/token", web::post().to(token.clone()))
        });
        let server = server.workers(1).bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/tenant", server.addrs()[0]);
        let server = server.disable_signals().run();
        let handle = server.handle();
        actix_rt::spawn(server);
        Self { url, forms, handle }
    }

    fn user(&self, refresh_token: &str) -> serde_json::Value {
        json!({ "auth-provider": { "name": "oidc", "config": {
            "idp-issuer-url": self.url, "client-id": "kubeflect", "client-secret": "s&cret",
            "refresh-token": refresh_token, "id-token": "",
        } } })
    }
}

#[actix::test]
async fn an_id_token_is_renewed_when_there_is_none_and_when_it_is_refused() {
    let (folder, provider) = (Folder::new("oidc"), Provider::start());
    let authority = Authority::new("test");
    let accepted = Arc::new(Mutex::new(&*jwt("token-1").leak()));
    let world = guarded(&authority, &accepted).await;
    let connection: Connection =
        load(&kubeconfig(&folder, &world, &authority, &provider.user("refresh-0")));
    assert!(!format!("{connection:?}").contains("cret"), "{connection:?}");

    let mut followed = Followed::start(connection, HttpOptions::default()).await;
    assert_eq!(provider.forms.lock().unwrap().len(), 1);
    assert!(provider.forms.lock().unwrap()[0].contains("client_secret=s%26cret"));

    *accepted.lock().unwrap() = jwt("token-2").leak();
    world.server.cut_watches();
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b");
    assert_eq!(
        provider.forms.lock().unwrap().len(),
        2,
        "with the refresh token that came with the first"
    );
    world.stop(followed.runtime).await;
    provider.handle.stop(false).await;
}

#[actix::test]
async fn a_provider_that_refuses_is_told_without_what_it_said() {
    let (folder, provider) = (Folder::new("oidc-refused"), Provider::start());
    let authority = Authority::new("test");
    let world = guarded(&authority, &Arc::new(Mutex::new("none"))).await;
    let connection = load(&kubeconfig(&folder, &world, &authority, &provider.user("stolen")));
    let error = connection.credentials.token().await.unwrap_err().to_string();
    assert!(error.starts_with("OpenID provider http://127.0.0.1:"), "{error}");
    assert!(error.ends_with(
        "refused with HTTP 400 invalid_grant: log in again, or use an exec plugin such as kubelogin"
    ));
    let again = connection.credentials.token().await.unwrap_err().to_string();
    assert_eq!(
        (again, provider.forms.lock().unwrap().len()),
        (error, 1),
        "it is not asked in a loop"
    );
    provider.handle.stop(false).await;
}
