use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::{App, HttpResponse, HttpServer, guard, web};
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, StreamExt as _};
use kubeflect::config::EventsSettings;
use kubeflect::dashboard::{Audience, DashboardOptions, protect};
use kubeflect::{Reflector, SubscribeOptions, Subscription};
use tokio::sync::mpsc;

use super::teller::Teller;
use super::{Format, Lines, WrongSetting};
use crate::cli::line::Shown;

/// Server-sent events for whoever asks. Each client is a subscriber of its own: it begins with every object there is,
/// and a slow one holds up nobody.
pub(super) struct EventServer {
    address: SocketAddr,
    handle: ServerHandle,
    offers: Arc<Offers>,
}

/// What can be asked for.
#[derive(Default)]
struct Offers {
    by_name: Mutex<BTreeMap<String, Arc<dyn Offered>>>,
    clients: Arc<AtomicUsize>,
    most_clients: usize,
}

/// One reflector, whatever it keeps of its objects.
trait Offered: Send + Sync {
    /// Subscribes a client to every change.
    fn stream(&self, client: Client) -> LocalBoxFuture<'_, Option<LocalBoxStream<'static, Chunk>>>;

    /// The objects, or those an index finds; none if there is no such index.
    fn objects(&self, index: Option<(&str, &str)>) -> Option<Vec<u8>>;
}

type Chunk = Result<Bytes, Infallible>;

struct Offer<K: Shown> {
    reflector: Reflector<K>,
    options: SubscribeOptions,
}

/// A sign of life, so that nobody on the way takes the connection for dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// Whoever connects has this long to say what for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be connected beside those who listen.
const OTHERS: usize = 64;

impl EventServer {
    pub(super) async fn start(settings: &EventsSettings) -> Result<Self, WrongSetting> {
        let offers = Arc::new(Offers { most_clients: settings.clients, ..Offers::default() });
        let shared = web::Data::from(Arc::clone(&offers));
        // Who has it listen for others wants others to be told.
        let audience = match settings.listen.ip().is_loopback() {
            true => Audience::ThisMachine,
            false => Audience::Everybody,
        };
        let hosts = settings.hosts.clone();
        let protections =
            web::Data::new(DashboardOptions { audience, hosts, ..DashboardOptions::default() });
        let http = HttpServer::new(move || {
            let read = || web::route().guard(guard::Any(guard::Get()).or(guard::Head()));
            let guarded = |path: &str| web::resource(path.to_owned()).wrap(from_fn(protect));
            App::new()
                .app_data(shared.clone())
                .app_data(protections.clone())
                .service(guarded("/events/{reflector}").get(events))
                .service(guarded("/objects/{reflector}").route(read().to(objects)))
        });
        let http = http.workers(1).disable_signals().h1_allow_half_closed(false);
        let http = http
            .client_request_timeout(PATIENCE)
            .max_connections(settings.clients.saturating_add(OTHERS));
        let http = http.bind(settings.listen).map_err(|error| {
            let problem = format!("can not be listened on ({error}): choose another address");
            WrongSetting { key: "listen", problem }
        })?;
        let address = http.addrs().first().copied().unwrap_or(settings.listen);
        let running = http.run();
        let handle = running.handle();
        actix_rt::spawn(running);
        Ok(Self { address, handle, offers })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn offer<K: Shown>(
        &self,
        name: &str,
        reflector: Reflector<K>,
        options: SubscribeOptions,
    ) {
        let offer = Arc::new(Offer { reflector, options });
        self.offers.lock().insert(name.to_owned(), offer);
    }

    pub(super) fn withdraw(&self, name: &str) {
        self.offers.lock().remove(name);
    }

    pub(super) async fn stop(&self) {
        self.handle.stop(false).await;
    }
}

async fn events(offers: web::Data<Offers>, name: web::Path<String>) -> HttpResponse {
    let offer = match offers.find(&name) {
        Ok(offer) => offer,
        Err(refusal) => return *refusal,
    };
    let Some(client) = Client::admit(&offers) else {
        return HttpResponse::TooManyRequests()
            .body("too many clients: raise `clients` of the sink\n");
    };
    match offer.stream(client).await {
        Some(stream) => HttpResponse::Ok().content_type("text/event-stream").streaming(stream),
        None => HttpResponse::ServiceUnavailable().body("the reflector has been stopped\n"),
    }
}

async fn objects(
    offers: web::Data<Offers>,
    name: web::Path<String>,
    query: web::Query<BTreeMap<String, String>>,
) -> HttpResponse {
    let offer = match offers.find(&name) {
        Ok(offer) => offer,
        Err(refusal) => return *refusal,
    };
    let index = query.iter().next().map(|(index, value)| (index.as_str(), value.as_str()));
    match offer.objects(index) {
        Some(objects) => HttpResponse::Ok().content_type("application/json").body(objects),
        None => HttpResponse::NotFound()
            .body("there is no such index: add it to `indices` of the reflector\n"),
    }
}

impl Offers {
    fn find(&self, name: &str) -> Result<Arc<dyn Offered>, Box<HttpResponse>> {
        let offers = self.lock();
        offers.get(name).map(Arc::clone).ok_or_else(|| {
            let names: Vec<&str> = offers.keys().map(String::as_str).collect();
            Box::new(HttpResponse::NotFound().body(format!("there are: {}\n", names.join(", "))))
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn Offered>>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the clients, free again when it is dropped.
struct Client(Arc<AtomicUsize>);

impl Client {
    fn admit(offers: &Offers) -> Option<Self> {
        let most = offers.most_clients;
        let taken = offers.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |clients| {
            (clients < most).then_some(clients + 1)
        });
        taken.ok().map(|_| Self(Arc::clone(&offers.clients)))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<K: Shown> Offered for Offer<K> {
    fn stream(&self, client: Client) -> LocalBoxFuture<'_, Option<LocalBoxStream<'static, Chunk>>> {
        Box::pin(async move {
            let (sender, receiver) = mpsc::channel(1);
            let writer = ToClient(sender).start().recipient();
            let teller = Teller::new(self.reflector.kind().clone(), Format::Json, writer).start();
            let subscribed =
                self.reflector.subscribe_batches(teller, self.options.clone()).await.ok()?;
            let listening = Listening { receiver, _client: client, _ends: Ends(Some(subscribed)) };
            Some(stream::unfold(listening, Listening::next).boxed_local())
        })
    }

    fn objects(&self, index: Option<(&str, &str)>) -> Option<Vec<u8>> {
        let snapshot = self.reflector.store().snapshot();
        let objects = match index {
            Some((index, value)) => snapshot.by_index(index, value).ok()?,
            None => snapshot.iter().map(|(_, object)| Arc::clone(object)).collect(),
        };
        let objects: Vec<&K> = objects.iter().map(AsRef::as_ref).collect();
        serde_json::to_vec(&objects).ok()
    }
}

/// Hands lines to one client, and waits until it has read those before.
struct ToClient(mpsc::Sender<Bytes>);

impl Actor for ToClient {
    type Context = Context<Self>;
}

impl Handler<Lines> for ToClient {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, lines: Lines, _: &mut Context<Self>) -> ResponseFuture<()> {
        let sender = self.0.clone();
        Box::pin(async move {
            // A client that is gone ends its subscription itself.
            sender.send(lines.0).await.ok();
        })
    }
}

struct Listening<K: Shown> {
    receiver: mpsc::Receiver<Bytes>,
    _client: Client,
    _ends: Ends<K>,
}

impl<K: Shown> Listening<K> {
    async fn next(mut self) -> Option<(Chunk, Self)> {
        let chunk = match tokio::time::timeout(SIGN_OF_LIFE, self.receiver.recv()).await {
            Ok(lines) => framed(&lines?),
            Err(_elapsed) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(chunk), self))
    }
}

/// Ends a subscription when its client hangs up.
struct Ends<K: Shown>(Option<Subscription<K>>);

impl<K: Shown> Drop for Ends<K> {
    fn drop(&mut self) {
        if let Some(subscription) = self.0.take() {
            actix_rt::spawn(subscription.unsubscribe());
        }
    }
}

/// Each line as an event.
fn framed(lines: &[u8]) -> Bytes {
    let mut framed = Vec::with_capacity(lines.len() + 64);
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        framed.extend_from_slice(b"data: ");
        framed.extend_from_slice(line);
        framed.extend_from_slice(b"\n\n");
    }
    framed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_event() {
        assert_eq!(framed(b"{}\n[]\n").as_ref(), b"data: {}\n\ndata: []\n\n");
    }
}
