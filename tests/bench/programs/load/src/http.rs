use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;

use crate::cluster::{Cluster, PIECE, View, bookmark, chunk};

/// What is asked for.
struct Question {
    path: String,
    query: Vec<(String, String)>,
    view: View,
}

/// The head of an answer whose length nobody knows yet.
const STREAMED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Answers one connection until it is closed or becomes a watch.
pub fn serve(stream: TcpStream, cluster: &Mutex<Cluster>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(question) = read(&mut reader)? {
        if question.path != "/api/v1/pods" {
            respond(&mut stream, "404 Not Found", not_found().as_bytes())?;
        } else if question.says("watch") {
            return watch(&question, stream, &mut cluster.lock().expect("nobody panics with it"));
        } else {
            list(&question, &mut stream, &cluster.lock().expect("nobody panics with it"))?;
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Question>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    let query = query.split('&').map(pair).collect();
    let mut question = Question { path: path.to_owned(), query, view: View::Whole };
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim_end();
        if header.is_empty() {
            return Ok(Some(question));
        }
        if header.to_ascii_lowercase().starts_with("accept:") && header.contains("as=Partial") {
            question.view = View::Metadata;
        }
    }
}

impl Question {
    fn value(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.value(name).and_then(|value| value.parse().ok())
    }

    fn says(&self, name: &str) -> bool {
        matches!(self.value(name), Some("true" | "1"))
    }
}

fn list(question: &Question, stream: &mut TcpStream, cluster: &Cluster) -> io::Result<()> {
    let start = question.number("continue").unwrap_or(0).min(cluster.len());
    let most = question.number("limit").filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let end = start.saturating_add(most).min(cluster.len());
    let rest = cluster.len() - end;
    let more = match rest {
        0 => String::new(),
        rest => format!(r#","continue":"{end}","remainingItemCount":{rest}"#),
    };
    let types = match question.view {
        View::Whole => r#""kind":"PodList","apiVersion":"v1""#,
        View::Metadata => r#""kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#,
    };
    let version = cluster.version();
    stream.write_all(STREAMED.as_bytes())?;
    let mut out = Vec::with_capacity(2 * PIECE);
    out.extend_from_slice(
        format!(r#"{{{types},"metadata":{{"resourceVersion":"{version}"{more}}},"items":["#)
            .as_bytes(),
    );
    for number in start..end {
        if number > start {
            out.push(b',');
        }
        cluster.write_item(number, question.view, &mut out);
        if out.len() >= PIECE {
            write_chunk(stream, &mut out)?;
        }
    }
    out.extend_from_slice(b"]}\n");
    write_chunk(stream, &mut out)?;
    stream.write_all(b"0\r\n\r\n")
}

fn write_chunk(stream: &mut TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    let head = format!("{:x}\r\n", out.len());
    out.splice(0..0, head.into_bytes());
    out.extend_from_slice(b"\r\n");
    stream.write_all(out)?;
    out.clear();
    Ok(())
}

fn watch(question: &Question, mut stream: TcpStream, cluster: &mut Cluster) -> io::Result<()> {
    let from = question.value("resourceVersion").and_then(|version| version.parse::<u64>().ok());
    let initial = question.says("sendInitialEvents");
    if !initial && from.is_some_and(|from| from != 0 && from < cluster.version()) {
        return respond(&mut stream, "410 Gone", expired().as_bytes());
    }
    stream.write_all(STREAMED.as_bytes())?;
    if initial {
        let mut out = Vec::with_capacity(2 * PIECE);
        for number in 0..cluster.len() {
            cluster.write_event("ADDED", number, question.view, &mut out);
            if out.len() >= PIECE {
                stream.write_all(&out)?;
                out.clear();
            }
        }
        out.extend_from_slice(&chunk(&bookmark(cluster.version(), true)));
        stream.write_all(&out)?;
    }
    cluster.watch(stream, question.view);
    Ok(())
}

fn respond(stream: &mut TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn not_found() -> &'static str {
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only pods are served","reason":"NotFound","code":404}"#
}

fn expired() -> &'static str {
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#
}
