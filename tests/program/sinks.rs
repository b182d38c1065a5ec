use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::ObjectKey;
use kubeflect::embedded::ApiServer;
use kubeflect::object::StaticKind as _;

use crate::support::{Folder, Running, Served, eventually, fold, pod, truth};

/// Reads one request and gives its head and its body.
fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

type Heard = Arc<Mutex<Vec<String>>>;

/// A receiver that refuses the first posts, and then accepts all: its address, the lines it accepted, and the heads it saw.
fn receiver(refusals: usize) -> (String, Heard, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/changes?key=1", listener.local_addr().unwrap());
    let (lines, heads) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (accepted, seen) = (Arc::clone(&lines), Arc::clone(&heads));
    let left = Arc::new(Mutex::new(refusals));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (accepted, seen, left) =
                (Arc::clone(&accepted), Arc::clone(&seen), Arc::clone(&left));
            thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some((head, body)) = read_request(&mut stream) {
                    seen.lock().unwrap().push(head);
                    let mut left = left.lock().unwrap();
                    let answer =
                        if *left > 0 { "503 Service Unavailable" } else { "204 No Content" };
                    if *left == 0 {
                        accepted.lock().unwrap().extend(body.lines().map(str::to_owned));
                    }
                    *left = left.saturating_sub(1);
                    let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                    if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, lines, heads)
}

#[test]
fn a_webhook_is_told_everything_in_order_however_often_it_refuses() {
    let api = ApiServer::seeded(1);
    (0..40).for_each(|number| drop(api.apply(pod(&format!("pod-{number}"), 0)).unwrap()));
    let served = Served::start(&api);
    let (hook, lines, heads) = receiver(2);
    let folder = Folder::new();
    let token = folder.write("token", "hunter2");
    let file = folder.write(
        "kubeflect.toml",
        &format!(
            "[cluster]\nserver = '{}'\n[page]\nlisten = 'off'\n\
         [sinks.hook]\ntype = 'webhook'\nurl = '{hook}'\ntoken-file = '{token}'\nbacklog = 10\n\
         [sinks.log]\ntype = 'log'\n\
         [reflectors.pods]\nkind = 'pods'\nsinks = ['hook', 'log']\n",
            served.url,
        ),
    );
    let program = Running::start(&["run", "--config", &file]);
    program.stderr.wait_for("a webhook does not take changes; trying again");
    // While it refuses, everybody else goes on.
    for round in 1..30 {
        (0..40).for_each(|number| drop(api.apply(pod(&format!("pod-{number}"), round)).unwrap()));
        api.delete(&Pod::static_kind(), &ObjectKey::new("default", &format!("pod-{round}")))
            .unwrap();
    }
    program.stdout.wait_for("deleted    pods              default/pod-29");
    eventually("the lines to come to what the server has", || {
        fold(&lines.lock().unwrap()) == truth(&api, &Pod::static_kind())
    });
    let heads = heads.lock().unwrap();
    assert!(heads[0].starts_with("POST /changes?key=1 HTTP/1.1"), "{}", heads[0]);
    let head = heads[0].to_lowercase();
    assert!(head.contains("content-type: application/x-ndjson"), "{head}");
    assert!(head.contains("authorization: bearer hunter2"), "{head}");
}

fn get(url: &str, path: &str, header: &str) -> BufReader<TcpStream> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let host =
        if header.starts_with("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\n{host}{header}\r\n\r\n").unwrap();
    BufReader::new(stream)
}

fn status(url: &str, path: &str, header: &str) -> String {
    let mut line = String::new();
    get(url, path, header).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn whoever_asks_is_told_everything_and_every_change() {
    let api = ApiServer::seeded(1);
    for name in ["a", "bb", "ccc", "dddd"] {
        api.apply(pod(name, 1)).unwrap();
    }
    let served = Served::start(&api);
    let folder = Folder::new();
    let file = folder.write("kubeflect.toml", &format!(
        "[cluster]\nserver = '{}'\n[page]\nlisten = 'off'\n\
         [sinks.stream]\ntype = 'events'\nlisten = '127.0.0.1:0'\nclients = 1\nhosts = ['pods.example']\n\
         [reflectors.pods]\nkind = 'pods'\nindices = {{ node = 'spec.nodeName' }}\nsinks = ['stream']\n",
        served.url,
    ));
    let program = Running::start(&["run", "--config", &file]);
    let line = program.stderr.wait_for("/events/NAME");
    let url = line.split_whitespace().nth(1).unwrap().trim_end_matches("/events/NAME").to_owned();
    eventually("the reflector to be offered", || status(&url, "/objects/pods", "A: b") == "200");

    let stream = get(&url, "/events/pods", "Accept: text/event-stream");
    let mut data = stream
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let first: Vec<String> = data.by_ref().take(5).collect();
    assert_eq!(fold(&first), truth(&api, &Pod::static_kind()));
    assert!(first[4].contains("SYNCED"));
    assert_eq!(status(&url, "/events/pods", "A: b"), "429", "one client is all there may be");
    api.apply(pod("eeeee", 2)).unwrap();
    assert!(data.next().unwrap().contains("\"name\":\"eeeee\""));

    let mut answer = String::new();
    get(&url, "/objects/pods?node=node-1", "Connection: close")
        .read_to_string(&mut answer)
        .unwrap();
    assert!(answer.contains("\"name\":\"a\"") && answer.contains("\"name\":\"dddd\""), "{answer}");
    assert!(!answer.contains("\"name\":\"bb\""), "{answer}");
    assert_eq!(status(&url, "/objects/pods?colour=blue", "A: b"), "404");
    assert_eq!(status(&url, "/objects/nodes", "A: b"), "404");
    assert_eq!(status(&url, "/objects/pods", "Host: evil.example"), "421");
    assert_eq!(status(&url, "/objects/pods", "Host: pods.example"), "200", "one of its hosts");
    assert_eq!(status(&url, "/objects/pods", "Origin: http://evil.example"), "403");
    assert_eq!(status(&url, "/objects/pods", "Sec-Fetch-Site: cross-site"), "403");
    assert!(answer.to_lowercase().contains("\r\nx-content-type-options: nosniff\r\n"), "{answer}");
    assert!(answer.to_lowercase().contains("\r\ncache-control: no-store\r\n"), "{answer}");
}
