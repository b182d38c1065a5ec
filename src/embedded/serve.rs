use std::io::{self, Write as _};
use std::net::SocketAddr;

use actix_web::dev::ServerHandle;
use actix_web::http::{StatusCode, header};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
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
use crate::client::Method;

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
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut answer = HttpResponse::build(status);
    answer.content_type(response.content_type);
    if let Some(seconds) = response.retry_after {
        answer.insert_header((header::RETRY_AFTER, seconds));
    }
    if compressed && response.status == 200 {
        answer.insert_header((header::CONTENT_ENCODING, "gzip"));
        return answer.streaming(response.body.map(|chunk| Ok::<_, ApiError>(gzip(&chunk?))));
    }
    answer.streaming(response.body)
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
