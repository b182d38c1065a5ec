use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;

use super::Dashboard;
use super::status::with_causes;
use crate::reflector::{Freshness, ReflectorStatus};

impl Dashboard {
    /// Whether a new process would help: only when the threads of the reflectors are gone.
    pub(super) fn livez(&self) -> HttpResponse {
        if self.inner.runtime.is_alive() || self.inner.runtime.is_stopped() {
            return text(StatusCode::OK, "ok\n");
        }
        text(StatusCode::SERVICE_UNAVAILABLE, "the threads of the reflectors have ended\n")
    }

    /// Whether every reflector has applied its first list and nothing is pending, one line each. A cache that is stale is still one: when the
    /// API server is down, sending everybody elsewhere helps nobody.
    pub(super) fn readyz(&self) -> HttpResponse {
        if self.inner.runtime.is_stopped() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "[-] stopping\nnot ready\n");
        }
        let statuses = self.inner.runtime.status();
        let pending = self.pending();
        let waiting =
            pending.iter().map(|(name, reason)| one_line(&format!("[-] {name}: {reason}")));
        let lines: String = statuses.iter().map(line).chain(waiting).collect();
        if pending.is_empty() && statuses.iter().all(|status| status.synced) {
            return text(StatusCode::OK, &format!("{lines}ready\n"));
        }
        text(StatusCode::SERVICE_UNAVAILABLE, &format!("{lines}not ready\n"))
    }
}

fn line(status: &ReflectorStatus) -> String {
    let condition = status.condition.as_ref().map(|condition| with_causes(condition));
    let (sign, state) = match (status.synced, &status.freshness, condition) {
        (true, Freshness::Stale { reason, .. }, _) => ("+", format!("ok, but stale: {reason}")),
        (true, Freshness::Fresh | Freshness::Unknown, _) => ("+", "ok".to_owned()),
        (false, _, Some(condition)) => ("-", condition),
        (false, _, None) => ("-", status.phase.to_string()),
    };
    let namespace = status.selection.namespace.iter().map(|name| format!(" in {name}"));
    let name = status.name.as_ref().filter(|name| ***name != *status.kind.to_string());
    let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
    let line = format!("[{sign}] {name}{}{}: {state}", status.kind, namespace.collect::<String>());
    one_line(&line)
}

/// What a server says may hold anything, but here one line is one reflector.
fn one_line(text: &str) -> String {
    format!("{}\n", text.replace(char::is_control, " "))
}

fn text(status: StatusCode, text: &str) -> HttpResponse {
    HttpResponse::build(status).content_type(ContentType::plaintext()).body(text.to_owned())
}
