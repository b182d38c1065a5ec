//! Words the tests are written in.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use kubeflect::embedded::{ApiServer, ServingApiServer};
use kubeflect::object::Kind;
use serde_json::{Value, json};

/// Nothing takes longer, on whatever machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program, with nobody's kubeconfig.
pub(crate) fn kubeflect(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubeflect"));
    command.args(arguments).env_remove("KUBECONFIG").env("HOME", "/does/not/exist");
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn output(arguments: &[&str]) -> Output {
    kubeflect(arguments).output().unwrap()
}

/// A program that runs, and all it has said. Killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) stdout: Said,
    pub(crate) stderr: Said,
}

/// Lines, as they come.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<(Mutex<Heard>, Condvar)>);

#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    is_over: bool,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(&mut kubeflect(arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = Said::listen(child.stdout.take().unwrap());
        let stderr = Said::listen(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// All it is ever told.
    pub(crate) fn tell(&mut self, text: &str) {
        self.child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.stdout.wait_for_end();
        self.child.wait().unwrap()
    }

    /// Ends it without a word, as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Said {
    pub(crate) fn listen(source: impl Read + Send + 'static) -> Self {
        let said = Self::default();
        let heard = said.clone();
        thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                heard.0.0.lock().unwrap().lines.push(line);
                heard.0.1.notify_all();
            }
            heard.0.0.lock().unwrap().is_over = true;
            heard.0.1.notify_all();
        });
        said
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.0.lock().unwrap().lines.clone()
    }

    /// Waits until what was said satisfies the condition.
    pub(crate) fn wait_until(&self, what: &str, is_enough: impl Fn(&[String]) -> bool) {
        let heard = self.0.0.lock().unwrap();
        let waiting = |heard: &mut Heard| !heard.is_over && !is_enough(&heard.lines);
        let (heard, _) = self.0.1.wait_timeout_while(heard, PATIENCE, waiting).unwrap();
        assert!(is_enough(&heard.lines), "waited for {what} after {:#?}", heard.lines);
    }

    /// Waits for a line, and gives it.
    pub(crate) fn wait_for(&self, part: &str) -> String {
        self.wait_until(part, |lines| lines.iter().any(|line| line.contains(part)));
        self.lines().into_iter().find(|line| line.contains(part)).unwrap()
    }

    fn wait_for_end(&self) {
        let heard = self.0.0.lock().unwrap();
        let waiting = |heard: &mut Heard| !heard.is_over;
        let (heard, _) = self.0.1.wait_timeout_while(heard, PATIENCE, waiting).unwrap();
        assert!(heard.is_over, "waited for the end after {:#?}", heard.lines);
    }
}

/// Asks for something by HTTP, and gives the whole answer.
pub(crate) fn get(url: &str, path: &str) -> String {
    get_as(url, url.trim_start_matches("http://").trim_end_matches('/'), path)
}

/// The same, by another name for who is asked.
pub(crate) fn get_as(url: &str, host: &str, path: &str) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let pause = || thread::park_timeout(Duration::from_millis(20));
    for _ in 0..PATIENCE.as_millis() / 20 {
        if is_so() {
            return;
        }
        pause();
    }
    panic!("waited for {what}");
}

/// An API server on a thread of its own, which stands still only when it is told to.
pub(crate) struct Served {
    pub(crate) url: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(api: &ApiServer) -> Self {
        Self::start_on(api, "127.0.0.1:0")
    }

    /// Serves on the port of one that was stopped.
    pub(crate) fn start_on(api: &ApiServer, address: &str) -> Self {
        let (tell, url) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (served, address) = (api.clone(), address.to_owned());
        let thread = thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let address = address.parse().unwrap();
                let serving: ServingApiServer = served.start_on(address).await.unwrap();
                tell.send(serving.url()).unwrap();
                stopped.await.ok();
                serving.stop().await;
            });
        });
        let url = url.recv().unwrap();
        Self { url, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the lines of `-o json` come to: name, and uid and version.
pub(crate) fn fold(lines: &[String]) -> BTreeMap<String, (String, String)> {
    let mut objects = BTreeMap::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let key = format!("{}/{}", text("namespace"), text("name"));
        match text("event").as_str() {
            "ADDED" => {
                let state = (text("uid"), text("resourceVersion"));
                assert_eq!(objects.insert(key.clone(), state), None, "{key} was there already");
            }
            "UPDATED" => {
                let state = (text("uid"), text("resourceVersion"));
                assert!(objects.insert(key.clone(), state).is_some(), "{key} was not there");
            }
            "DELETED" => assert!(objects.remove(&key).is_some(), "{key} was not there"),
            "SYNCED" => {}
            other => panic!("{other}"),
        }
    }
    objects
}

/// What a server has, in the same words.
pub(crate) fn truth(server: &ApiServer, kind: &Kind) -> BTreeMap<String, (String, String)> {
    let objects = server.objects(kind).into_iter();
    objects
        .map(|(key, state)| {
            (format!("{}/{}", key.namespace().unwrap_or_default(), key.name()), state)
        })
        .collect()
}

pub(crate) fn pod(name: &str, round: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": name, "annotations": { "round": round.to_string() } },
        "spec": { "nodeName": format!("node-{}", name.len() % 3), "containers": [{ "name": "main" }] },
    })
}

/// A folder that is gone with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kubeflect-program-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
