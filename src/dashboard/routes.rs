use actix_web::http::header::{self, ContentType};
use actix_web::middleware::from_fn;
use actix_web::web::{Data, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, guard as guards, web};
use serde_json::json;

use super::{Dashboard, guard, lock, stream};
use crate::object::ObjectKey;

/// The files of the page, as they are.
const ASSETS: [(&str, &str, &str); 7] = [
    ("style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("page/app.js")),
    ("tree.js", "text/javascript; charset=utf-8", include_str!("page/tree.js")),
    ("events.js", "text/javascript; charset=utf-8", include_str!("page/events.js")),
    ("object.js", "text/javascript; charset=utf-8", include_str!("page/object.js")),
    ("dom.js", "text/javascript; charset=utf-8", include_str!("page/dom.js")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

/// Mounts the page, metrics and probes into an application that has `web::Data<Dashboard>`: in a scope of their own, or
/// at the top if the application has nothing at `/`, `/assets`, `/events`, `/objects`, `/status.json`, `/metrics`,
/// `/livez` and `/readyz`.
///
/// ```
/// use actix_web::{App, test, web};
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::dashboard::{self, Dashboard};
/// use kubeflect::embedded::ApiServer;
/// use kubeflect::{Options, Runtime};
///
/// # actix_rt::System::new().block_on(async {
/// let runtime = Runtime::new(ApiServer::demo_cluster(1));
/// let pods = runtime.reflect::<Pod>(Options::all()).await?;
/// let dashboard = Dashboard::new(runtime.clone());
/// dashboard.observe(&pods).await?; // for the stream of events and the histories of objects
/// pods.synced().await?;
///
/// let app = App::new()
///     .app_data(web::Data::new(dashboard))
///     .service(web::scope("/kubeflect").configure(dashboard::configure));
/// let app = test::init_service(app).await;
/// let ready = test::TestRequest::get().uri("/kubeflect/readyz").insert_header(("host", "localhost"));
/// assert_eq!(test::call_and_read_body(&app, ready.to_request()).await, "[+] pods: ok\nready\n");
/// # runtime.stop().await;
/// # Ok::<(), kubeflect::Error>(())
/// # }).unwrap();
/// ```
pub fn configure(config: &mut ServiceConfig) {
    let read = || web::route().guard(guards::Any(guards::Get()).or(guards::Head()));
    // Each is guarded by itself: a scope around them would take the application's other paths.
    let page = |path: &str| web::resource(path.to_owned());
    let shown = |resource: Resource| resource.wrap(from_fn(guard::protect));
    let probed = |resource: Resource| resource.wrap(from_fn(guard::probe));
    config
        .service(shown(page("/").route(read().to(index))))
        .service(shown(page("").route(read().to(index))))
        .service(shown(page("/assets/{name}").route(read().to(asset))))
        .service(shown(page("/events").route(web::get().to(events))))
        .service(shown(page("/status.json").route(read().to(status))))
        .service(shown(page("/objects").route(read().to(object))))
        .service(probed(page("/metrics").route(read().to(metrics))))
        .service(probed(page("/livez").route(read().to(livez))))
        .service(probed(page("/readyz").route(read().to(readyz))));
}

async fn index(request: HttpRequest) -> HttpResponse {
    // The page names its files relative to itself.
    if let Some(folder) = request.path().rsplit('/').next().filter(|name| !name.is_empty()) {
        let location = format!("{folder}/");
        return HttpResponse::PermanentRedirect()
            .insert_header((header::LOCATION, location))
            .finish();
    }
    HttpResponse::Ok().content_type(ContentType::html()).body(include_str!("page/index.html"))
}

async fn asset(name: Path<String>) -> HttpResponse {
    match ASSETS.iter().find(|(known, ..)| *known == name.as_str()) {
        Some((_, content_type, text)) => HttpResponse::Ok().content_type(*content_type).body(*text),
        None => HttpResponse::NotFound().finish(),
    }
}

async fn events(dashboard: Data<Dashboard>, request: HttpRequest) -> HttpResponse {
    stream::respond(&dashboard, &request)
}

async fn status(dashboard: Data<Dashboard>) -> HttpResponse {
    HttpResponse::Ok().json(dashboard.status(&dashboard.known()))
}

async fn object(dashboard: Data<Dashboard>, request: HttpRequest) -> HttpResponse {
    let (mut reflector, mut namespace, mut name) = (None, String::new(), String::new());
    for (key, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
        match &*key {
            "reflector" => reflector = value.parse().ok(),
            "namespace" => namespace = value.into_owned(),
            "name" => name = value.into_owned(),
            _ => {}
        }
    }
    let Some(reflector) = reflector.filter(|_| !name.is_empty()) else {
        let problem =
            "write /objects?reflector=ID&namespace=NAMESPACE&name=NAME, the ID from /status.json";
        return HttpResponse::BadRequest().json(json!({ "error": problem }));
    };
    let found =
        lock(&dashboard.inner.journal).object(reflector, &ObjectKey::new(&namespace, &name));
    match found {
        Some(mut found) => {
            found["now"] = dashboard.inner.clock.now().into();
            HttpResponse::Ok().json(found)
        }
        None => {
            let problem = "neither cached nor seen lately, or its reflector is not observed";
            HttpResponse::NotFound().json(json!({ "error": problem }))
        }
    }
}

async fn metrics(dashboard: Data<Dashboard>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; version=0.0.4; charset=utf-8")
        .body(dashboard.metrics())
}

async fn livez(dashboard: Data<Dashboard>) -> HttpResponse {
    dashboard.livez()
}

async fn readyz(dashboard: Data<Dashboard>) -> HttpResponse {
    dashboard.readyz()
}
