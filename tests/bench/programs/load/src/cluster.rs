use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use crate::pods::{self, PodText, Shape};

/// All pods, and everybody who watches them.
pub struct Cluster {
    pods: Vec<PodText>,
    version: u64,
    /// How many changes there were.
    changes: usize,
    watchers: Vec<Watcher>,
}

struct Watcher {
    stream: TcpStream,
    view: View,
}

/// What a client asked to see of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Whole,
    Metadata,
}

/// So much is written at once.
pub const PIECE: usize = 64 << 10;

/// Changes jump about: a prime, so that all pods get theirs.
const STRIDE: usize = 7919;

impl Cluster {
    pub fn new(objects: usize, shape: Shape, seed: u64) -> Self {
        let pods = (0..objects).map(|number| pods::pod(seed, number, shape)).collect();
        Self { pods, version: pods::FIRST_VERSION, changes: 0, watchers: Vec::new() }
    }

    /// How many bytes, how many objects.
    pub fn size(&self) -> (usize, usize) {
        (self.pods.iter().map(|pod| pod.bytes.len()).sum(), self.pods.len())
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// An object as an item of a list.
    pub fn write_item(&self, number: usize, view: View, out: &mut Vec<u8>) {
        let pod = &self.pods[number];
        match view {
            View::Whole => out.extend_from_slice(&pod.bytes),
            View::Metadata => {
                out.extend_from_slice(br#"{"metadata":"#);
                out.extend_from_slice(&pod.bytes[pod.metadata.clone()]);
                out.push(b'}');
            }
        }
    }

    /// An event of a watch, as a chunk of its own.
    pub fn write_event(&self, kind: &str, number: usize, view: View, out: &mut Vec<u8>) {
        let pod = &self.pods[number];
        let (types, rest) = match view {
            View::Whole => (r#""kind":"Pod","apiVersion":"v1","#, &pod.bytes[1..]),
            View::Metadata => (
                r#""kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#,
                &pod.bytes[pod.metadata.clone()],
            ),
        };
        let end = if view == View::Whole { "}\n" } else { "}}\n" };
        let start = format!(r#"{{"type":"{kind}","object":{{{types}"#);
        let length = start.len() + rest.len() + end.len();
        out.extend_from_slice(format!("{length:x}\r\n{start}").as_bytes());
        out.extend_from_slice(rest);
        out.extend_from_slice(format!("{end}\r\n").as_bytes());
    }

    pub fn watch(&mut self, stream: TcpStream, view: View) {
        self.watchers.push(Watcher { stream, view });
        probe::tell(&format!(r#"{{"event":"watching","version":{}}}"#, self.version));
    }

    pub fn push(&mut self, count: usize) {
        let mut out = Vec::with_capacity(2 * PIECE);
        for _ in 0..count {
            let changed = self.change();
            // One client is measured at a time: all see what the first asked to see.
            let view = self.watchers.first().map_or(View::Whole, |watcher| watcher.view);
            self.write_event("MODIFIED", changed, view, &mut out);
            if out.len() >= PIECE {
                self.send(&mut out);
            }
        }
        self.send(&mut out);
        self.tell_pushed();
    }

    pub fn pace(&mut self, count: usize, rate: u64) {
        let interval = 1_000_000_000 / rate;
        let begin = probe::version_now();
        let mut out = Vec::with_capacity(PIECE);
        for turn in 0..count as u64 {
            let due = begin + turn * interval;
            let early = due.saturating_sub(probe::version_now());
            thread::sleep(Duration::from_nanos(early));
            let changed = self.change();
            let view = self.watchers.first().map_or(View::Whole, |watcher| watcher.view);
            self.write_event("MODIFIED", changed, view, &mut out);
            self.send(&mut out);
        }
        self.tell_pushed();
    }

    pub fn expire(&mut self) {
        // The list to come is newer than anything told.
        self.version = self.next_version();
        let status = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;
        let mut out = chunk(status);
        out.extend_from_slice(b"0\r\n\r\n");
        self.send(&mut out);
        for watcher in self.watchers.drain(..) {
            // It may have gone by itself.
            watcher.stream.shutdown(Shutdown::Both).ok();
        }
    }

    /// Changes the next pod; gives its number.
    fn change(&mut self) -> usize {
        let number = self.changes.wrapping_mul(STRIDE) % self.pods.len();
        self.changes += 1;
        self.version = self.next_version();
        self.pods[number].set_version(self.version);
        number
    }

    /// The time, but always later than the last.
    fn next_version(&self) -> u64 {
        probe::version_now().max(self.version + 1)
    }

    fn send(&mut self, out: &mut Vec<u8>) {
        self.watchers.retain_mut(|watcher| watcher.stream.write_all(out).is_ok());
        out.clear();
    }

    fn tell_pushed(&mut self) {
        let mut out = chunk(&bookmark(self.version, false));
        self.send(&mut out);
        probe::tell(&format!(r#"{{"event":"pushed","last":{}}}"#, self.version));
    }
}

pub fn bookmark(version: u64, ends_initial_events: bool) -> String {
    let annotations = match ends_initial_events {
        true => r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
        false => "",
    };
    format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","creationTimestamp":null{annotations}}},"spec":{{"containers":null}},"status":{{}}}}}}"#
    )
}

/// A line as a chunk of its own.
pub fn chunk(line: &str) -> Vec<u8> {
    format!("{:x}\r\n{line}\n\r\n", line.len() + 1).into_bytes()
}
