use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::ObjectKey;
use kubeflect::embedded::ApiServer;
use kubeflect::object::StaticKind as _;

use crate::support::{Folder, Running, Served, eventually, fold, pod, truth};

fn config(more: &str, url: &str, out: &str) -> String {
    format!(
        "[cluster]\nserver = '{url}'\n[page]\nlisten = 'off'\n[sinks.out]\ntype = 'json'\npath = '{out}'\n\
         [reflectors.pods]\nkind = 'pods'\nsinks = ['out']\n{more}"
    )
}

/// Changes pods until it is told to stop.
struct Load {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Load {
    fn start(api: &ApiServer) -> Self {
        let (over, api) = (Arc::new(AtomicBool::new(false)), api.clone());
        let is_over = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut round = 0usize;
            while !is_over.load(Ordering::Relaxed) {
                round += 1;
                let name = format!("pod-{}", round % 50);
                if round.is_multiple_of(7) {
                    api.delete(&Pod::static_kind(), &ObjectKey::new("default", &name)).ok();
                } else {
                    api.apply(pod(&name, round)).unwrap();
                }
                thread::park_timeout(Duration::from_millis(2));
            }
        });
        Self { over, thread: Some(thread) }
    }

    fn stop(mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn what_a_new_configuration_does_not_change_loses_nothing_under_load() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let folder = Folder::new();
    let out = folder.path("pods.jsonl");
    let file = folder.write("kubeflect.toml", &config("", &served.url, &out));
    let load = Load::start(&api);
    let program = Running::start(&["run", "--config", &file]);
    eventually("the first list", || folder.read("pods.jsonl").contains("SYNCED"));
    let nodes = "[reflectors.nodes]\nkind = 'nodes'\nsinks = []\n";
    for (round, more) in [
        nodes,
        "",
        "[sinks.other]\ntype = 'log'\n[reflectors.deploy]\nkind = 'deploy'\nsinks = ['other']\n",
        "",
    ]
    .iter()
    .enumerate()
    {
        folder.write("kubeflect.toml", &config(more, &served.url, &out));
        program.signal("-HUP");
        program.stderr.wait_until("the configuration to be read again", |lines| {
            lines.iter().filter(|line| line.contains("read again")).count() > round
        });
        let told = folder.read("pods.jsonl").lines().count();
        eventually("more changes", || folder.read("pods.jsonl").lines().count() > told + 50);
    }
    load.stop();
    let lines =
        || -> Vec<String> { folder.read("pods.jsonl").lines().map(str::to_owned).collect() };
    eventually("the lines to come to what the server has", || {
        fold(&lines()) == truth(&api, &Pod::static_kind())
    });
    // One list, and then changes only: it was never started again.
    let synced = lines().iter().filter(|line| line.contains("\"event\":\"SYNCED\"")).count();
    let told_otherwise =
        lines().iter().filter(|line| line.contains("\"cause\":\"Relist\"")).count();
    assert_eq!((synced, told_otherwise), (1, 0));
    let said = program.stderr.lines();
    for part in
        ["started nodes; kept pods", "stopped nodes; kept pods", "started deploy; kept pods"]
    {
        assert!(said.iter().any(|line| line.contains(part)), "{said:#?}");
    }
}

#[test]
fn a_file_that_changes_is_read_and_a_broken_one_is_refused() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    let folder = Folder::new();
    let out = folder.path("pods.jsonl");
    let file = folder.write("kubeflect.toml", &config("", &served.url, &out));
    let program = Running::start(&["run", "--config", &file]);
    eventually("the first list", || folder.read("pods.jsonl").contains("SYNCED"));
    let good = |more: &str| config(more, &served.url, &out);
    folder.write("kubeflect.toml", &good("[reflectors.nodes]\nkind = 7\n"));
    program.stderr.wait_for("is refused, the configuration before stays in force");
    program.stderr.wait_for("reflectors.nodes.kind: found 7, write the name of a kind");
    folder.write("kubeflect.toml", &good("").replace("'off'", "'127.0.0.1:0'"));
    program.stderr.wait_for("another page needs a restart");
    folder.write("kubeflect.toml", &good("[reflectors.nodes]\nkind = 'nodes'\nsinks = ['out']\n"));
    program.stderr.wait_for("started nodes; kept pods");
    eventually("the nodes", || folder.read("pods.jsonl").contains("node-3"));
}

#[test]
fn what_ends_leaves_another_of_the_same_kind_running() {
    let api = ApiServer::seeded(1);
    let served = Served::start(&api);
    let folder = Folder::new();
    let out = folder.path("pods.jsonl");
    let twice = "[reflectors.again]\nkind = 'po'\nsinks = ['out']\n";
    let file = folder.write("kubeflect.toml", &config(twice, &served.url, &out));
    let program = Running::start(&["run", "--config", &file]);
    eventually("both", || folder.read("pods.jsonl").matches("SYNCED").count() == 2);
    folder.write("kubeflect.toml", &config("", &served.url, &out));
    program.stderr.wait_for("stopped again; kept pods");
    api.apply(pod("a", 1)).unwrap();
    eventually("the change", || folder.read("pods.jsonl").contains("\"name\":\"a\""));
}

#[test]
fn a_file_that_is_refused_changes_nothing() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let with = |clients: usize, more: &str| {
        format!(
            "[cluster]\nserver = '{}'\n[page]\nlisten = 'off'\n\
             [sinks.events]\ntype = 'events'\nlisten = '{address}'\nclients = {clients}\n\
             [reflectors.pods]\nkind = 'pods'\nsinks = ['events']\n{more}",
            served.url,
        )
    };
    let file = folder.write("kubeflect.toml", &with(7, ""));
    let program = Running::start(&["run", "--config", &file]);
    let pods_are_offered = || {
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let request =
            format!("GET /objects/pods HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes());
        asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.contains("web-")
    };
    eventually("the events", pods_are_offered);
    // `zebra` comes behind `events`, and can not be.
    let zebra = "[sinks.zebra]\ntype = 'json'\npath = '/does/not/exist'\n";
    for round in 1..3 {
        folder.write("kubeflect.toml", &with(7 + round, zebra));
        program.signal("-HUP");
        program.stderr.wait_until("the refusal", |lines| {
            let place = "kubeflect.toml:14: sinks.zebra.path: found \"/does/not/exist\", can not be written";
            lines.iter().filter(|line| line.contains(place)).count() == round
        });
        eventually("the events, as before", pods_are_offered);
    }
    folder.write("kubeflect.toml", &with(9, ""));
    program.stderr.wait_for("kept pods");
    eventually("the events of the new file", pods_are_offered);
}
