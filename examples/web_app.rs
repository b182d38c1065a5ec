//! Inside an actix-web application: handlers read the cache, a probe tells whether it is ready, and every browser is a
//! subscriber with a backlog of its own, told by server-sent events.
//!
//! Run with `cargo run --example web_app` and open the address it prints. It needs no cluster; Ctrl-C ends it.

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AtomicResponse, Context, Handler,
    WrapFuture as _,
};
use actix_web::web::{Bytes, Data, Html, Path};
use actix_web::{App, HttpResponse, HttpServer, Responder, error, web};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::reflector::Delivery;
use kubeflect::{Options, Reflector, ResourceEvent, Runtime, SubscribeOptions};
use tokio::sync::mpsc;

const PAGE: &str = "<!doctype html><meta charset=utf-8><title>pods</title>
<p><a href=/nodes/node-1/pods>pods of node-1</a>, <a href=/readyz>ready?</a></p><ul></ul>
<script>new EventSource('/events').onmessage = event => {
  const line = document.createElement('li');
  line.textContent = event.data;
  document.querySelector('ul').prepend(line);
}</script>";

async fn pods_of(node: Path<String>, pods: Data<Reflector<Pod>>) -> actix_web::Result<String> {
    let found = pods.store().by_index("node", &node).map_err(error::ErrorInternalServerError)?;
    let names = found.iter().filter_map(|pod| pod.metadata.name.as_deref());
    Ok(names.map(|name| format!("{name}\n")).collect())
}

async fn ready(runtime: Data<Runtime>) -> impl Responder {
    match runtime.readiness().into_iter().find(|(_, ready)| ready.is_err()) {
        None => HttpResponse::Ok().body("ready\n"),
        Some((kind, _)) => {
            HttpResponse::ServiceUnavailable().body(format!("waits for {}\n", kind.plural))
        }
    }
}

/// Sends what it is told to one browser, at the pace of that browser.
struct Browser(mpsc::Sender<Bytes>);

impl Actor for Browser {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Browser {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) -> Self::Result {
        let sender = self.0.clone();
        let send = async move { sender.send(format!("data: {event}\n\n").into()).await };
        AtomicResponse::new(Box::pin(send.into_actor(self).map(|sent, _, context| {
            if sent.is_err() {
                context.stop(); // The browser went away; its subscription ends with its actor.
            }
        })))
    }
}

async fn events(pods: Data<Reflector<Pod>>) -> actix_web::Result<impl Responder> {
    let (sender, lines) = mpsc::channel(16);
    let options = SubscribeOptions::default().name("browser").delivery(Delivery::Latest);
    let subscribed = pods.subscribe_with(Browser(sender).start(), options).await;
    subscribed.map_err(error::ErrorServiceUnavailable)?;
    let lines =
        futures::stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
    let body = lines.map(Ok::<_, actix_web::Error>);
    Ok(HttpResponse::Ok().content_type("text/event-stream").streaming(body))
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = ApiServer::demo_cluster(1);
    actix_rt::spawn(cluster.clone().run_demo(2.0));
    let runtime = Runtime::new(cluster);
    let by_node = Options::<Pod>::all()
        .index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    let (pods, data) = (Data::new(runtime.reflect(by_node).await?), Data::new(runtime.clone()));

    let server = HttpServer::new(move || {
        App::new()
            .app_data(pods.clone())
            .app_data(data.clone())
            .route("/", web::get().to(async || Html::new(PAGE)))
            .route("/events", web::get().to(events))
            .route("/nodes/{name}/pods", web::get().to(pods_of))
            .route("/readyz", web::get().to(ready))
    });
    let server = server.workers(1).shutdown_timeout(1).bind(("127.0.0.1", 0))?;
    println!("open http://{}/", server.addrs()[0]);
    server.run().await?; // Until Ctrl-C.
    runtime.stop().await;
    println!("stopped");
    Ok(())
}
