use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};

use actix_web::dev::ServerHandle;
use actix_web::http::{StatusCode, header};
use actix_web::{App, HttpRequest, HttpResponse, HttpResponseBuilder, HttpServer, web};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;

use super::failure::Failure;
use super::faults::Switch;
use super::options::Query;
use super::route::Call;
use super::{ApiServer, lock};
use crate::api::ApiError;
use crate::client::{Method, Response};

/// Larger than any object Kubernetes takes.
const LARGEST_BODY: usize = 16 * 1024 * 1024;

/// An [`ApiServer`] that also listens on a socket, until stopped.
#[derive(Debug)]
pub struct ServingApiServer {
    server: ApiServer,
    address: SocketAddr,
    handle: ServerHandle,
}

impl ApiServer {
    /// Serves HTTP on a free port of the loopback interface.
    ///
    /// # Errors
    /// When the port can not be had.
    pub async fn start(&self) -> io::Result<ServingApiServer> {
        self.start_on(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Serves HTTP on an address. Keep it local: everybody may do everything, unless it
    /// [demands tokens](Self::demand_tokens), and nothing is encrypted.
    ///
    /// On a loopback address it answers only who asks for `localhost`, a loopback address, or a name it was told to
    /// [answer to](Self::answer_to): a web page whose own name somebody points here reads nothing.
    ///
    /// # Errors
    /// When the address can not be had.
    pub async fn start_on(&self, address: SocketAddr) -> io::Result<ServingApiServer> {
        let served = self.clone();
        let http = HttpServer::new(move || {
            App::new()
                .app_data(web::PayloadConfig::new(LARGEST_BODY))
                .app_data(web::Data::new(served.clone()))
                .default_service(web::to(answer))
        })
        .workers(1)
        .disable_signals()
        // A watcher that hangs up is gone, even if nothing is ever written to it.
        .h1_allow_half_closed(false)
        .bind(address)?;
        let address = http.addrs().first().copied().unwrap_or(address);
        let running = http.run();
        let handle = running.handle();
        actix_rt::spawn(running);
        Ok(ServingApiServer { server: self.clone(), address, handle })
    }
}

impl ApiServer {
    /// Names of this machine by which it may be asked on a loopback address too.
    pub fn answer_to<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        lock(&self.model).names = names.into_iter().map(str::to_owned).collect();
    }
}

impl ServingApiServer {
    /// Where it listens: `http://127.0.0.1:41234`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The server behind the socket.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Ends all watches and stops listening. The objects stay.
    pub async fn stop(self) {
        self.server.cut_watches();
        self.handle.stop(false).await;
    }
}

async fn answer(server: web::Data<ApiServer>, request: HttpRequest, body: Bytes) -> HttpResponse {
    if !is_meant(&server, &request) {
        return plain(Failure::misdirected().response());
    }
    let Some(method) = method_of(&request) else {
        return HttpResponse::MethodNotAllowed().finish();
    };
    let header = |name: header::HeaderName| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let call = Call {
        method,
        path: request.path().to_owned(),
        query: form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect(),
        accept: header(header::ACCEPT),
        content_type: header(header::CONTENT_TYPE),
        body,
    };
    let compressed = Query(&call.query).asks_for_a_streaming_list()
        && header(header::ACCEPT_ENCODING).contains("gzip")
        && lock(&server.model).faults.is_on(Switch::StreamingListsCompressed);
    let admitted = lock(&server.model).faults.admits(&header(header::AUTHORIZATION));
    let response = match admitted {
        true => server.answer(call).await,
        false => Failure::unauthorized().response(),
    };
    if compressed && response.status == 200 {
        let mut answer = head_of(&response);
        answer.insert_header((header::CONTENT_ENCODING, "gzip"));
        return answer.streaming(response.body.map(|chunk| Ok::<_, ApiError>(gzip(&chunk?))));
    }
    plain(response)
}

fn plain(response: Response) -> HttpResponse {
    head_of(&response).streaming(response.body)
}

fn head_of(response: &Response) -> HttpResponseBuilder {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut answer = HttpResponse::build(status);
    answer.content_type(response.content_type.as_str());
    if let Some(seconds) = response.retry_after {
        answer.insert_header((header::RETRY_AFTER, seconds));
    }
    answer
}

/// Whether a request that came to this machine's own address was sent for it. A name can be pointed anywhere by whoever
/// has it, an address can not. The port is not looked at: it is another one behind a tunnel.
fn is_meant(server: &ApiServer, request: &HttpRequest) -> bool {
    if !request.app_config().local_addr().ip().to_canonical().is_loopback() {
        return true;
    }
    let mut stated = request.headers().get_all(header::HOST);
    match (stated.next().map(|host| host.to_str()), stated.next()) {
        // No browser is as old as that.
        (None, _) => true,
        (Some(Ok(host)), None) => is_ours(host, &lock(&server.model).names),
        _ => false,
    }
}

fn is_ours(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// A whole gzip file. A reader must go on after its end, with the next.
fn gzip(chunk: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(chunk).and_then(|()| encoder.finish());
    written.expect("a Vec takes whatever is written").into()
}

fn method_of(request: &HttpRequest) -> Option<Method> {
    match request.method().as_str() {
        "GET" => Some(Method::Get),
        "POST" => Some(Method::Post),
        "PUT" => Some(Method::Put),
        "PATCH" => Some(Method::Patch),
        "DELETE" => Some(Method::Delete),
        _ => None,
    }
}
