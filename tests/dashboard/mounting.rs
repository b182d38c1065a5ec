//! Within an application, and on a server of its own.

use std::time::Duration;

use actix_web::test::{call_service, init_service};
use actix_web::{App, HttpResponse, web};
use kubeflect::dashboard;

use crate::support::{Answer, World, local, on_a_paused_clock};

#[test]
fn mounted_in_a_scope_it_leaves_the_rest_to_the_application() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        let app = App::new()
            .app_data(web::Data::new(world.dashboard.clone()))
            .service(web::scope("/kubeflect").configure(dashboard::configure))
            .route("/metrics", web::get().to(|| async { HttpResponse::Ok().body("mine") }))
            .default_service(web::to(|| async { HttpResponse::ImATeapot().finish() }));
        let app = init_service(app).await;
        let get =
            async |path: &str| Answer::of(call_service(&app, local(path).to_request()).await).await;
        assert_eq!(get("/metrics").await.body, "mine");
        assert_eq!(get("/").await.status, 418);
        assert!(get("/kubeflect/").await.body.contains("<title>kubeflect</title>"));
        let redirected = get("/kubeflect").await;
        assert_eq!((redirected.status, redirected.header("location")), (308, "kubeflect/"));
        assert_eq!(
            get("/kubeflect/assets/app.js").await.header("content-type"),
            "text/javascript; charset=utf-8"
        );
        assert!(get("/kubeflect/metrics").await.body.contains("kubeflect_reflector_objects"));
        assert_eq!(get("/kubeflect/readyz").await.status, 200);
        assert_eq!(get("/kubeflect/status.json").await.status, 200);
    });
}

#[test]
fn mounted_at_the_top_it_takes_no_path_but_its_own() {
    on_a_paused_clock(async {
        let world = World::new();
        let app = App::new()
            .app_data(web::Data::new(world.dashboard.clone()))
            .configure(dashboard::configure)
            .route("/mine", web::post().to(|| async { HttpResponse::Ok().body("mine") }));
        let app = init_service(app).await;
        let request = local("/mine").method(actix_web::http::Method::POST).to_request();
        assert_eq!(Answer::of(call_service(&app, request).await).await.body, "mine");
        let page = Answer::of(call_service(&app, local("/").to_request()).await).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    });
}

#[test]
fn an_application_without_a_dashboard_is_told_what_is_missing() {
    on_a_paused_clock(async {
        let app = init_service(App::new().configure(dashboard::configure)).await;
        let answer = Answer::of(call_service(&app, local("/livez").to_request()).await).await;
        assert_eq!(answer.status, 500);
        assert!(answer.body.contains("web::Data<Dashboard>"));
    });
}

/// Over a real socket, on the real clock: what is waited for comes at once.
#[test]
fn a_server_of_its_own_answers_until_it_is_stopped_whoever_still_listens() {
    actix_rt::System::new().block_on(async {
        let world = World::new();
        world.pods(&["a"]).await;
        let serving = world.dashboard.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
        let client = awc::Client::default();
        let url = serving.url();
        assert!(url.starts_with("http://127.0.0.1:") && url.ends_with('/'));
        let mut ready = client.get(format!("{url}readyz")).send().await.unwrap();
        assert_eq!(ready.body().await.unwrap(), "[+] pods: ok\nready\n");
        let mut stream = client.get(format!("{url}events")).send().await.unwrap();
        assert_eq!(stream.headers().get("content-type").unwrap(), "text/event-stream");
        assert!(futures::StreamExt::next(&mut stream).await.unwrap().is_ok());

        tokio::time::timeout(Duration::from_secs(30), serving.stop()).await.unwrap();
        assert!(client.get(format!("{url}readyz")).send().await.is_err());
        world.runtime.stop().await;
    });
}
