use std::net::IpAddr;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, Uri};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, web};

use super::{Audience, Dashboard, DashboardOptions};

/// On every answer. The page needs nothing but its own files, and nobody needs the page but its reader.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
    (header::CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
];

/// Refuses who should not be here, before any route sees the request: for the page and all it asks for, and for routes
/// of your own that serve objects. The application needs a `web::Data<Dashboard>` or a `web::Data<DashboardOptions>`.
///
/// ```
/// use actix_web::middleware::from_fn;
/// use actix_web::{App, test, web};
/// use kubeflect::dashboard::{DashboardOptions, protect};
///
/// # actix_rt::System::new().block_on(async {
/// let app = App::new()
///     .app_data(web::Data::new(DashboardOptions::default()))
///     .route("/secrets", web::get().to(async || "none of yours").wrap(from_fn(protect)));
/// let app = test::init_service(app).await;
/// let request = test::TestRequest::get().uri("/secrets").insert_header(("host", "evil.example"));
/// assert_eq!(test::call_service(&app, request.to_request()).await.status(), 421);
/// # });
/// ```
///
/// # Errors
/// Those of the routes behind it.
pub async fn protect(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let refusal = refuse(&request, Holds::Objects);
    answer(request, next, refusal).await
}

/// As [`protect`], for what holds no objects.
pub(super) async fn probe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let refusal = refuse(&request, Holds::NoObjects);
    answer(request, next, refusal).await
}

async fn answer<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
    refusal: Option<Refusal>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let mut response = match refusal {
        None => next.call(request).await?.map_into_left_body(),
        Some(Refusal(status, why)) => {
            let mut refused = HttpResponse::build(status);
            if status == StatusCode::METHOD_NOT_ALLOWED {
                refused.insert_header((header::ALLOW, "GET, HEAD"));
            }
            let refused = refused.content_type(header::ContentType::plaintext()).body(why);
            request.into_response(refused).map_into_right_body()
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Objects,
    NoObjects,
}

struct Refusal(StatusCode, &'static str);

fn refuse(request: &ServiceRequest, holds: Holds) -> Option<Refusal> {
    let dashboard = request.app_data::<web::Data<Dashboard>>().map(|it| &it.inner.options);
    let alone = || request.app_data::<web::Data<DashboardOptions>>().map(|it| &***it);
    let Some(options) = dashboard.or_else(alone) else {
        return Some(Refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the application has no web::Data<Dashboard>\n",
        ));
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some(Refusal(StatusCode::METHOD_NOT_ALLOWED, "read-only: only GET and HEAD\n"));
    }
    let listens_on = request.app_config().local_addr().ip();
    let Some(host) = host(request).filter(|host| is_ours(host, listens_on, &options.hosts)) else {
        return Some(Refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "not addressed by a name of this machine: add it to hosts if it is one\n",
        ));
    };
    if is_foreign(request, &host) {
        return Some(Refusal(StatusCode::FORBIDDEN, "asked for by a page from elsewhere\n"));
    }
    let is_local = request.peer_addr().is_none_or(|peer| peer.ip().to_canonical().is_loopback());
    if holds == Holds::Objects && options.audience == Audience::ThisMachine && !is_local {
        return Some(Refusal(
            StatusCode::FORBIDDEN,
            "the page is for this machine only: use kubectl port-forward, or ssh -L\n",
        ));
    }
    None
}

/// As the client wrote it, port included.
fn host(request: &ServiceRequest) -> Option<String> {
    let mut stated = request.headers().get_all(header::HOST);
    let value = match (stated.next(), stated.next()) {
        (Some(host), None) => host.to_str().ok()?.to_owned(),
        (None, None) => request.uri().authority()?.to_string(),
        _ => return None,
    };
    (!value.contains('@')).then(|| value.to_ascii_lowercase())
}

/// A name that somebody points here by DNS is none of ours. An address can not be pointed anywhere. The port is not
/// looked at: it is another one behind `kubectl port-forward`.
fn is_ours(host: &str, listens_on: IpAddr, hosts: &[String]) -> bool {
    let name = name_of(host);
    if name == "localhost" || hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
        return true;
    }
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
    address.is_ok_and(|address| {
        address.is_loopback() || listens_on.is_unspecified() || address == listens_on.to_canonical()
    })
}

fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a page of another origin asks. Following a link from elsewhere is fine: that page learns nothing.
fn is_foreign(request: &ServiceRequest, host: &str) -> bool {
    let stated = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    let origin = stated("origin").is_some_and(|origin| {
        let origin = std::str::from_utf8(origin).ok().and_then(|text| text.parse::<Uri>().ok());
        origin.and_then(|origin| origin.authority().map(|it| it.as_str() == host)) != Some(true)
    });
    let is_visit = stated("sec-fetch-mode") == Some(b"navigate")
        && stated("sec-fetch-dest") == Some(b"document");
    let site = stated("sec-fetch-site")
        .is_some_and(|site| !matches!(site, b"same-origin" | b"none") && !is_visit);
    origin || site
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(host: &str, listens_on: &str, hosts: &[&str]) -> bool {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        is_ours(host, listens_on.parse().unwrap(), &hosts)
    }

    #[test]
    fn this_machine_is_known_by_its_names_and_addresses_on_any_port() {
        for host in
            ["localhost", "localhost:8080", "127.0.0.1:9", "127.0.0.1", "[::1]:8080", "[::1]"]
        {
            assert!(ours(host, "127.0.0.1", &[]), "{host}");
        }
        assert!(ours("10.0.0.7:8080", "0.0.0.0", &[]), "as the kubelet asks");
        assert!(ours("10.0.0.7:8080", "10.0.0.7", &[]));
        assert!(ours("status.example.com:443", "127.0.0.1", &["Status.example.com"]));
    }

    #[test]
    fn a_name_pointed_here_is_not_ours() {
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:8080:8080",
            "localhost:x",
            "",
            ":8080",
            "[::1].evil.example",
            "10.0.0.7:8080",
        ] {
            assert!(!ours(host, "127.0.0.1", &[]), "{host}");
        }
        assert!(!ours("evil.example", "0.0.0.0", &["good.example"]));
    }
}
