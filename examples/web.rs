//! Inside an actix-web application: request handlers read the cache, without a mailbox in between.
//!
//! Run with `cargo run --example web`. It needs no cluster, asks itself a few questions, and ends.

use actix_web::web::{Data, Json, Path};
use actix_web::{App, HttpResponse, HttpServer, Responder, web};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::{Options, Reflector, Runtime};
use serde_json::{Value, json};

async fn pods_on(node: Path<String>, pods: Data<Reflector<Pod>>) -> impl Responder {
    let Ok(found) = pods.store().by_index("node", &node) else {
        return HttpResponse::InternalServerError().finish();
    };
    let names: Vec<&str> = found.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    HttpResponse::Ok().json(names)
}

async fn ready(runtime: Data<Runtime>) -> Json<Value> {
    let not_ready = runtime.readiness().into_iter().filter(|(_, ready)| ready.is_err());
    let waiting_for: Vec<String> = not_ready.map(|(kind, _)| kind.to_string()).collect();
    Json(json!({ "ready": waiting_for.is_empty(), "waitingFor": waiting_for }))
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(ApiServer::demo_cluster(1));
    let by_node = Options::<Pod>::all()
        .index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    let pods = runtime.reflect(by_node).await?;
    pods.synced().await?;

    let (data, reflector) = (Data::new(runtime.clone()), Data::new(pods));
    let application = move || {
        App::new()
            .app_data(data.clone())
            .app_data(reflector.clone())
            .route("/nodes/{name}/pods", web::get().to(pods_on))
            .route("/readyz", web::get().to(ready))
    };
    let server = HttpServer::new(application).workers(1).bind(("127.0.0.1", 0))?;
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_rt::spawn(server);

    for path in ["/readyz", "/nodes/node-1/pods", "/nodes/node-9/pods"] {
        let mut answer = awc::Client::new().get(format!("http://{address}{path}")).send().await?;
        println!("{path}: {}", String::from_utf8_lossy(&answer.body().await?));
    }
    handle.stop(true).await;
    runtime.stop().await;
    Ok(())
}
