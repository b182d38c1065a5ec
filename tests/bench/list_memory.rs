//! How much memory a list of 100 000 pods of 6 KB takes beside its objects, and that it is at most 64 MiB.
//!
//! Run with `cargo bench --bench list_memory`. The list is written while it is read: it is never in memory as a whole.
//! Linux only: the figures come from `/proc`.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kubeflect::api::{ApiError, Item, ListRequest, ListerWatcher as _};
use kubeflect::client::{BodyStream, KubernetesSource, Request, Response, Transport};
use kubeflect::object::{DecodeError, Kind, ObjectKey, Resource, Scope, read};
use serde::Deserialize;
use tokio::time::Instant;

const PODS: usize = 100_000;
const POD_BYTES: usize = 6 << 10;
const CHUNK: usize = 16 << 10;
const BUDGET_MIB: u64 = 64;

/// What a scheduler would keep of a pod.
#[derive(Deserialize)]
struct Placement {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

impl Resource for Placement {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }
    fn uid(&self) -> Option<&str> {
        Some(&self.metadata.uid)
    }
    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
    fn decode(json: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        read(json)
    }
}

/// Read like a placement, and dropped at once.
struct Dropped;

impl Resource for Dropped {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped("dropped")
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> Option<&str> {
        None
    }
    fn decode(json: &[u8], kind: &Kind) -> Result<Self, DecodeError> {
        Placement::decode(json, kind).map(|placement| {
            assert!(placement.spec.node_name.is_some());
            Self
        })
    }
}

/// Writes the list in chunks that end anywhere.
struct Generator {
    sent: Rc<Cell<u64>>,
}

impl Transport for Generator {
    fn send(&self, _: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let body = list(Rc::clone(&self.sent));
        async move {
            let content_type = "application/json".to_owned();
            Ok(Response { status: 200, content_type, retry_after: None, fairness: None, body })
        }
        .boxed_local()
    }
}

fn list(sent: Rc<Cell<u64>>) -> BodyStream {
    let filler = filler();
    let start =
        r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":["#;
    let state = (start.as_bytes().to_vec(), 0_usize);
    stream::unfold(state, move |(mut pending, mut next)| {
        while pending.len() < CHUNK && next <= PODS {
            pending.extend_from_slice(
                if next == PODS { b"]}".to_vec() } else { pod(next, &filler) }.as_slice(),
            );
            next += 1;
        }
        let rest = pending.split_off(pending.len().min(CHUNK));
        sent.set(sent.get() + pending.len() as u64);
        let chunk = (!pending.is_empty()).then(|| (Ok(Bytes::from(pending)), (rest, next)));
        async { chunk }
    })
    .boxed_local()
}

fn pod(number: usize, filler: &str) -> Vec<u8> {
    let comma = if number == 0 { "" } else { "," };
    format!(
        r#"{comma}{{"metadata":{{"namespace":"ns-{}","name":"pod-{number}","uid":"00000000-{number:012}","resourceVersion":"{number}1"}},"spec":{{"nodeName":"node-{}",{filler}}}}}"#,
        number % 100,
        number % 5000,
    )
    .into_bytes()
}

/// Containers with environments, until a pod has its size.
fn filler() -> String {
    let mut variables = String::new();
    for number in 0.. {
        if variables.len() > POD_BYTES - 250 {
            break;
        }
        let comma = if number == 0 { "" } else { "," };
        variables.push_str(&format!(
            r#"{comma}{{"name":"VARIABLE_{number}","value":"some \"value\" of it"}}"#
        ));
    }
    format!(
        r#""containers":[{{"name":"main","image":"registry.example/app:1.2.3","env":[{variables}]}}]"#
    )
}

/// A figure of `/proc/self/status`, in MiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with(name)).expect("the figure exists");
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("it is a number") >> 10
}

/// Gives the peak beside the objects, in MiB.
async fn measure<K: Resource>(what: &str) -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = memory("VmRSS:");
    let sent = Rc::new(Cell::new(0));
    let kind = Kind::new("", "v1", "Pod", "pods", Scope::Namespaced);
    let source = KubernetesSource::<K>::new(Rc::new(Generator { sent: Rc::clone(&sent) }), kind);
    let began = Instant::now();
    let page = source.list(ListRequest::default()).await.expect("the list is good");
    let (took, peak, after) = (began.elapsed(), memory("VmHWM:"), memory("VmRSS:"));
    assert_eq!(page.items.len(), PODS);
    assert!(page.items.iter().all(|item| matches!(item, Item::Object(_))));
    println!(
        "{what:<10} {PODS} pods, {} MiB of JSON in {took:.2?}: {before} MiB before, {peak} at the peak, {after} with \
         the objects, {} beside them",
        sent.get() >> 20,
        peak - after,
    );
    peak - after
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dropped_base = memory("VmRSS:");
    let dropped = measure::<Dropped>("dropped").await;
    let dropped_peak = memory("VmHWM:") - dropped_base;
    let kept = measure::<Placement>("projected").await;
    println!("all of it  {dropped_peak} MiB when every object is dropped");
    assert!(
        dropped <= BUDGET_MIB && kept <= BUDGET_MIB && dropped_peak <= BUDGET_MIB,
        "more than {BUDGET_MIB} MiB beside the objects"
    );
}
