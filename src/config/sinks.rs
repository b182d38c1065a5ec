use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::checked::{HOSTS, host};
use super::file::Section;
use super::units::{duration, size};
use crate::client::ServerAddress;

/// Whom changes are told to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSettings {
    /// How many changes may wait before they are joined, one per object; 0 to join always.
    pub backlog: usize,
    /// What it does with them.
    pub kind: SinkKind,
}

/// What a sink does with changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkKind {
    /// Writes a line for people to stdout.
    Log,
    /// Writes a line of JSON.
    Json(JsonSettings),
    /// Posts lines of JSON.
    Webhook(WebhookSettings),
    /// Streams lines of JSON to whoever asks.
    Events(EventsSettings),
}

/// Lines of JSON, one per change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonSettings {
    /// Where to.
    pub output: Output,
    /// A file as large as this is put aside and begun anew.
    pub rotate_size: u64,
    /// How many files put aside are kept.
    pub keep: usize,
}

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To stdout.
    Stdout,
    /// Into a file, behind what it has.
    File(PathBuf),
}

/// Lines of JSON, posted until they are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Scheme, host, port.
    pub server: ServerAddress,
    /// From the first slash on, with the query.
    pub path: String,
    /// A file with a token to send along.
    pub token_file: Option<PathBuf>,
    /// How long an answer is waited for.
    pub timeout: Duration,
}

/// Server-sent events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsSettings {
    /// Where they are served.
    pub listen: SocketAddr,
    /// By which names they may be asked for, beside this machine's own.
    pub hosts: Vec<String>,
    /// How many may listen at once.
    pub clients: usize,
}

const BACKLOG: usize = 512;
const ROTATE_SIZE: u64 = 64 << 20;
const KEEP: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(10);
const EVENTS_LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 9181);
const CLIENTS: usize = 64;
const TYPE: &str = "write \"log\", \"json\", \"webhook\" or \"events\"";
const URL: &str = "write an address, like \"https://HOST:PORT/PATH\"";

impl SinkSettings {
    /// A line for people for each change.
    pub fn log() -> Self {
        Self { backlog: BACKLOG, kind: SinkKind::Log }
    }

    pub(super) fn read(section: &Section<'_>) -> Self {
        let kind = section.required("type", TYPE, |text| {
            matches!(text, "log" | "json" | "webhook" | "events").then(|| text.to_owned())
        });
        let backlog = section.count("backlog", 0..=1_000_000).unwrap_or(BACKLOG);
        let kind = match kind.as_deref() {
            Some("json") => SinkKind::Json(JsonSettings::read(section)),
            Some("webhook") => SinkKind::Webhook(WebhookSettings::read(section)),
            Some("events") => SinkKind::Events(EventsSettings::read(section)),
            Some(_) => SinkKind::Log,
            // Which settings it has is not known.
            None => return Self::log(),
        };
        section.finish();
        Self { backlog, kind }
    }
}

impl JsonSettings {
    fn read(section: &Section<'_>) -> Self {
        let allowed = "write the path of a file, or \"-\" for stdout";
        let output = section.word("path", allowed, |text| match text {
            "-" => Some(Output::Stdout),
            _ => (!text.ends_with('/')).then(|| Output::File(text.into())),
        });
        let least = 1 << 10;
        let rotate_size =
            section.word("rotate-size", "write a size of at least 1KiB, like \"64MiB\"", |text| {
                size(text).filter(|size| *size >= least)
            });
        Self {
            output: output.unwrap_or(Output::Stdout),
            rotate_size: rotate_size.unwrap_or(ROTATE_SIZE),
            keep: section.count("keep", 1..=1000).unwrap_or(KEEP),
        }
    }
}

impl WebhookSettings {
    fn read(section: &Section<'_>) -> Self {
        let url = section.required("url", URL, split_url);
        let token_file = section
            .text("token-file", "write the path of a file", |text| Some(PathBuf::from(text)));
        let timeout =
            section.word("timeout", "write a duration from 1s to 10m, like \"10s\"", |text| {
                duration(text).filter(|timeout| (1..=600).contains(&timeout.as_secs()))
            });
        // Nobody is given these: what is wrong with the address has been noted.
        let nowhere = || split_url("http://127.0.0.1").expect("it is written right here");
        let (server, path) = url.unwrap_or_else(nowhere);
        Self { server, path, token_file, timeout: timeout.unwrap_or(TIMEOUT) }
    }
}

impl EventsSettings {
    fn read(section: &Section<'_>) -> Self {
        let allowed = "write an address and a port, like \"127.0.0.1:9181\"";
        let listen = section.word("listen", allowed, |text| text.parse().ok());
        Self {
            listen: listen.unwrap_or_else(|| EVENTS_LISTEN.into()),
            hosts: section.list("hosts", HOSTS, host).unwrap_or_default(),
            clients: section.count("clients", 1..=10_000).unwrap_or(CLIENTS),
        }
    }
}

/// The server, and the path with its query.
fn split_url(text: &str) -> Option<(ServerAddress, String)> {
    let authority = text.find("://")? + 3;
    let end = text[authority..].find(['/', '?']).map_or(text.len(), |at| authority + at);
    let (server, path) = text.split_at(end);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#' && byte != b'"';
    let server = ServerAddress::parse(server).ok()?;
    path.bytes().all(is_plain).then_some((server, path))
}
