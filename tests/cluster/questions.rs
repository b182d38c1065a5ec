//! What is asked of an API server: the requests of the recordings in `tests/transcripts`.

#[path = "asking.rs"]
mod asking;
#[path = "known.rs"]
mod known;
#[path = "normalised.rs"]
mod normalised;

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use kubeflect::client::{Method, Request, Transport};
use serde_json::{Value, json};

pub(crate) use self::asking::read;
use self::asking::{Question, request};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Questions that belong together, and the file their answers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Lists,
    Watches,
    /// Watches from before something happened.
    Changes,
    /// The same objects, less or otherwise told.
    Forms,
    Discovery,
    Refusals,
    Writes,
    /// Of somebody who may do nothing.
    Forbidden,
    /// Of a server that has forgotten its history.
    Forgotten,
}

/// What the questions ask about.
#[derive(Debug, Default)]
pub(crate) struct Page {
    version: String,
    next: String,
}

/// What is read: path and query.
const READS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps?limit=2",
    "/api/v1/namespaces/default/configmaps?limit=3",
    "/api/v1/namespaces/default/configmaps?limit=2&resourceVersion=0",
    "/api/v1/namespaces/default/configmaps?limit=2&labelSelector=tier=front",
    "/api/v1/namespaces/default/configmaps?limit=1&labelSelector=tier",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=a",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name!=a",
    "/api/v1/namespaces/default/configmaps?fieldSelector=spec.nodeName=x",
    "/api/v1/namespaces/default/configmaps?fieldSelector=nonsense",
    "/api/v1/namespaces/default/configmaps?labelSelector=a in (b",
    "/api/v1/namespaces/default/configmaps?resourceVersion=999999999",
    "/api/v1/namespaces/default/configmaps?resourceVersion=999999999&resourceVersionMatch=NotOlderThan",
    "/api/v1/namespaces/default/configmaps?resourceVersion=999999999&resourceVersionMatch=Exact",
    "/api/v1/namespaces/default/configmaps?resourceVersion=abc",
    "/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact",
    "/api/v1/namespaces/default/configmaps?resourceVersionMatch=Nonsense&resourceVersion=1",
    "/api/v1/namespaces/default/configmaps?resourceVersion=0&resourceVersionMatch=Exact",
    "/api/v1/namespaces/default/configmaps?resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "/api/v1/namespaces/default/configmaps?continue=nonsense",
    "/api/v1/namespaces/default/configmaps?continue=nonsense&resourceVersion=7",
    "/api/v1/namespaces/default/configmaps?continue=nonsense&resourceVersionMatch=Exact",
    "/api/v1/namespaces/default/configmaps?limit=-1",
    "/api/v1/namespaces/default/configmaps?limit=many",
    "/api/v1/namespaces/default/configmaps?unknown=parameter",
    "/api/v1/namespaces/default/configmaps?sendInitialEvents=true",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/configmaps/a?resourceVersion=999999999",
    "/api/v1/namespaces/default/configmaps/none",
    "/api/v1/namespaces/none/configmaps",
    "/api/v1/namespaces/none/configmaps/a",
    "/api/v1/nothings",
    "/api/v1/namespaces/default/nothings/a",
    "/apis/none.example.com/v1/things",
    "/apis/apps/v7/deployments",
    "/nothing",
];

/// What is watched: the query. Streams have the time that a busy server takes.
const WATCHES: &[&str] = &[
    "watch=true&timeoutSeconds=3",
    "resourceVersion=0&watch=true&timeoutSeconds=3",
    "resourceVersion=999999999&watch=true&timeoutSeconds=3",
    "resourceVersion=999999999&allowWatchBookmarks=true&watch=true&timeoutSeconds=3",
    "resourceVersion=abc&watch=true&timeoutSeconds=3",
    "resourceVersion=7&resourceVersionMatch=NotOlderThan&watch=true&timeoutSeconds=3",
    "resourceVersion=0&fieldSelector=metadata.name=a&watch=true&timeoutSeconds=3",
    "resourceVersion=0&labelSelector=tier=front&watch=true&timeoutSeconds=3",
    "limit=2&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&allowWatchBookmarks=true&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=999999999&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=abc&watch=true&timeoutSeconds=3",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0&watch=true&timeoutSeconds=3",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=tier=none&watch=true&timeoutSeconds=3",
];

/// What is asked about changes: the query, and the form.
const CHANGES: &[(&str, &str)] = &[
    ("", JSON),
    ("labelSelector=tier=front", JSON),
    ("labelSelector=tier!=front", JSON),
    ("labelSelector=tier=none", JSON),
    ("fieldSelector=metadata.name=c", JSON),
    ("fieldSelector=metadata.name!=c", JSON),
    ("fieldSelector=metadata.name=a&labelSelector=tier=front", JSON),
    ("allowWatchBookmarks=true", JSON),
    ("labelSelector=tier=front", METADATA),
    ("labelSelector=tier=front", TABLE),
    ("includeObject=None", TABLE),
];

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const ALL_GROUPS: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What is read in another form: path and query, and the form.
const FORMS: &[(&str, &str)] = &[
    ("/api/v1/namespaces/default/configmaps", METADATA_LIST),
    ("/api/v1/namespaces/default/configmaps?limit=2", METADATA_LIST),
    ("/api/v1/namespaces/default/configmaps?labelSelector=tier=none", METADATA_LIST),
    ("/api/v1/namespaces/default/configmaps/a", METADATA),
    ("/api/v1/namespaces/default/configmaps/none", METADATA),
    ("/api/v1/namespaces/default/configmaps", TABLE),
    ("/api/v1/namespaces/default/configmaps?limit=2", TABLE),
    ("/api/v1/namespaces/default/configmaps?includeObject=None", TABLE),
    ("/api/v1/namespaces/default/configmaps?includeObject=Object", TABLE),
    ("/api/v1/namespaces/default/configmaps/a", TABLE),
    ("/api/v1/namespaces/none/pods", TABLE),
    ("/apis/apps/v1/namespaces/none/deployments", TABLE),
    ("/apis/batch/v1/namespaces/none/jobs", TABLE),
    (MAPS, "application/json;as=Nothing;g=meta.k8s.io;v=v1"),
    (MAPS, "application/json;as=Nothing;g=meta.k8s.io;v=v1,application/json"),
    (MAPS, "text/plain"),
];

/// What there is: the path, and the form.
const DISCOVERY: &[(&str, &str)] = &[
    ("/api", JSON),
    ("/api/v1", JSON),
    ("/apis", JSON),
    ("/apis/apps", JSON),
    ("/apis/apps/v1", JSON),
    ("/apis/batch/v1", JSON),
    ("/apis/coordination.k8s.io/v1", JSON),
    ("/apis/apiextensions.k8s.io/v1", JSON),
    ("/apis/none.example.com", JSON),
    ("/apis/apps/v7", JSON),
    ("/api", ALL_GROUPS),
    ("/apis", ALL_GROUPS),
];

/// What nobody can be given: method and path, with a body where one belongs.
const REFUSALS: &[(Method, &str, &str)] = &[
    (Method::Get, "/api/v1/namespaces/default/nodes", ""),
    (Method::Get, "/api/v1/configmaps/a", ""),
    (Method::Get, "/apis/apps/v1/nothings", ""),
    (Method::Get, "/apis/apps/v1/namespaces/default/nothings", ""),
    (Method::Get, "/apis/apps/v1/namespaces/default/deployments/none", ""),
    (Method::Get, "/api/v1/nodes/none", ""),
    (Method::Get, "/api/v1/namespaces/none", ""),
    (Method::Get, "/api/v1/namespaces/default/configmaps/a/nothing", ""),
    (Method::Get, "/apis/none.example.com/v1/namespaces/default/things/a", ""),
    (Method::Post, "/api/v1/configmaps", r#"{"metadata":{"name":"x","namespace":"default"}}"#),
    (Method::Post, "/api/v1/namespaces/default/configmaps/a", "{}"),
    (Method::Put, "/api/v1/namespaces/default/configmaps", "{}"),
    (Method::Patch, "/api/v1/namespaces/default/configmaps", "{}"),
    (Method::Delete, "/api/v1/configmaps", ""),
    (Method::Delete, "/api/v1/namespaces", ""),
    (Method::Get, "/api/v1/namespaces/default/configmaps/a/status", ""),
    (Method::Delete, "/apis/apps/v1/namespaces/default/deployments/none", ""),
    (Method::Post, MAPS, r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#),
    (Method::Post, MAPS, r#"{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}"#),
    (Method::Post, MAPS, r#"{"metadata":{"name":"a"}}"#),
    (Method::Post, MAPS, r#"{"metadata":{"name":"-"}}"#),
    (
        Method::Put,
        "/api/v1/namespaces/default/configmaps/a",
        r#"{"metadata":{"name":"a","uid":"00000000-0000-0000-0000-000000000000"}}"#,
    ),
    (
        Method::Delete,
        "/api/v1/namespaces/default/configmaps/a",
        r#"{"preconditions":{"resourceVersion":"1"}}"#,
    ),
];

/// What only somebody may ask: method and path.
const FORBIDDEN: &[(Method, &str)] = &[
    (Method::Get, "/api/v1/configmaps"),
    (Method::Get, MAPS),
    (Method::Get, "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3"),
    (Method::Get, "/api/v1/namespaces/default/configmaps/a"),
    (Method::Get, "/api/v1/nodes"),
    (Method::Get, "/apis/apps/v1/namespaces/default/deployments"),
    (Method::Get, "/apis/apps/v1/namespaces/default/deployments/none"),
    (Method::Post, MAPS),
    (Method::Put, "/api/v1/namespaces/default/configmaps/a"),
    (Method::Patch, "/api/v1/namespaces/default/configmaps/a"),
    (Method::Delete, "/api/v1/namespaces/default/configmaps/a"),
    (Method::Delete, MAPS),
];

/// What is asked of a server that has forgotten: the query.
const FORGOTTEN: &[&str] = &[
    "limit=1&continue={next}",
    "resourceVersion={version}&resourceVersionMatch=Exact",
    "watch=true&timeoutSeconds=3&resourceVersion={version}",
    "watch=true&timeoutSeconds=3&resourceVersion=1",
];

/// What is written: method, path, content type, body.
fn writes() -> Vec<(Method, String, &'static str, Value)> {
    let json = "application/json";
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    let one = |name: &str| format!("{MAPS}/{name}");
    let mut elsewhere = map("d");
    elsewhere["metadata"]["namespace"] = json!("other");
    let mut stale = map("a");
    stale["metadata"]["resourceVersion"] = json!("1");
    let mut unreadable = map("a");
    unreadable["metadata"]["resourceVersion"] = json!("abc");
    let mut unlabelled = map("e");
    unlabelled["metadata"]["labels"] = json!({});
    let other_uid = json!({ "preconditions": { "uid": "other" } });
    vec![
        (Method::Post, MAPS.to_owned(), json, map("a")),
        (Method::Post, MAPS.to_owned(), json, map("d")),
        (Method::Post, MAPS.to_owned(), json, unlabelled),
        (Method::Post, MAPS.to_owned(), json, map("")),
        (Method::Post, MAPS.to_owned(), json, map("Not A Name")),
        (Method::Post, MAPS.to_owned(), json, elsewhere),
        (Method::Post, MAPS.to_owned(), json, stale.clone()),
        (Method::Post, MAPS.to_owned(), json, json!([])),
        (Method::Post, "/api/v1/namespaces/none/configmaps".to_owned(), json, map("a")),
        (Method::Put, one("a"), json, stale),
        (Method::Put, one("a"), json, unreadable),
        (Method::Put, one("a"), json, map("b")),
        (Method::Put, one("none"), json, map("none")),
        (Method::Patch, one("a"), "application/merge-patch+json", json!({ "data": { "k": "v" } })),
        (Method::Patch, one("none"), "application/merge-patch+json", json!({})),
        (Method::Patch, one("a"), "text/plain", json!({})),
        (
            Method::Patch,
            one("a"),
            "application/merge-patch+json",
            json!({ "metadata": { "resourceVersion": "1" } }),
        ),
        (
            Method::Patch,
            one("a"),
            "application/json-patch+json",
            json!([{ "op": "test", "path": "/data/k", "value": "other" }]),
        ),
        (Method::Delete, one("none"), json, json!({})),
        (Method::Delete, one("a"), json, other_uid),
        (Method::Delete, one("a"), json, json!({})),
        (Method::Delete, one("a"), json, json!({})),
    ]
}

impl Group {
    /// The name of its file.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(crate) fn file(self) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
        folder.join(self.name()).with_extension("json")
    }

    /// What the real server answered when it was recorded.
    pub(crate) fn recorded(self) -> Value {
        let file = self.file();
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        serde_json::from_str(&text).unwrap()
    }

    fn questions(self) -> Vec<Question> {
        match self {
            Self::Lists => READS.iter().map(|read| Question::get(read, JSON)).collect(),
            Self::Watches => WATCHES.iter().map(|query| of_maps(query, JSON)).collect(),
            Self::Changes => CHANGES
                .iter()
                .map(|(query, form)| {
                    let mark = if query.is_empty() { "" } else { "&" };
                    let from = "watch=true&timeoutSeconds=3&resourceVersion={version}";
                    of_maps(&format!("{from}{mark}{query}"), form)
                })
                .collect(),
            Self::Forms => FORMS.iter().map(|(place, form)| Question::get(place, form)).collect(),
            Self::Discovery => {
                DISCOVERY.iter().map(|(place, form)| Question::get(place, form)).collect()
            }
            Self::Refusals => REFUSALS
                .iter()
                .map(|(method, path, body)| {
                    let body = serde_json::from_str(body).ok();
                    let format = match method {
                        Method::Patch => "application/merge-patch+json",
                        _ => JSON,
                    };
                    Question::with_body(*method, path, format, body)
                })
                .collect(),
            Self::Writes => writes()
                .into_iter()
                .map(|(method, path, format, body)| {
                    Question::with_body(method, &path, format, Some(body))
                })
                .collect(),
            Self::Forbidden => FORBIDDEN
                .iter()
                .map(|(method, place)| match method {
                    Method::Get | Method::Delete => Question::with_body(*method, place, JSON, None),
                    Method::Patch => {
                        let format = "application/merge-patch+json";
                        Question::with_body(*method, place, format, Some(json!({})))
                    }
                    _ => {
                        let map = json!({ "metadata": { "name": "a" } });
                        Question::with_body(*method, place, JSON, Some(map))
                    }
                })
                .collect(),
            Self::Forgotten => FORGOTTEN.iter().map(|query| of_maps(query, JSON)).collect(),
        }
    }
}

fn of_maps(query: &str, form: &'static str) -> Question {
    Question::get(&format!("{MAPS}?{query}"), form)
}

/// What most groups are about.
pub(crate) async fn set_up(transport: &Rc<dyn Transport>) {
    create(transport, json!({ "name": "a", "labels": { "tier": "front" } })).await;
    create(transport, json!({ "name": "b", "labels": { "tier": "back" } })).await;
    create(transport, json!({ "name": "c" })).await;
}

/// Changes objects, so that some leave a selection and some enter it, and makes one again. Says what came before.
pub(crate) async fn change(transport: &Rc<dyn Transport>) -> Page {
    let list = read(transport, Request::get(MAPS)).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let label = |tier: &str| json!({ "metadata": { "labels": { "tier": tier } } });
    for (name, change) in [
        ("a", json!({ "data": { "k": "v" } })),
        ("a", label("back")),
        ("b", label("front")),
        ("c", json!({ "data": { "k": "v" } })),
    ] {
        let path = format!("{MAPS}/{name}");
        read(transport, request(Method::Patch, &path, "application/merge-patch+json", &change))
            .await;
    }
    let path = format!("{MAPS}/c");
    read(transport, request(Method::Delete, &path, JSON, &json!({}))).await;
    create(transport, json!({ "name": "c", "labels": { "tier": "front" } })).await;
    read(transport, request(Method::Delete, &path, JSON, &json!({}))).await;
    create(transport, json!({ "name": "c" })).await;
    Page { version, ..Page::default() }
}

/// The first page of a list, and changes since: two, as the last one is what etcd remembers even then. Whoever asks on
/// makes the server forget.
pub(crate) async fn set_up_to_forget(transport: &Rc<dyn Transport>) -> Page {
    for name in ["a", "b", "c"] {
        create(transport, json!({ "name": name })).await;
    }
    let query = vec![("limit", "1".to_owned())];
    let page = read(transport, Request { query, ..Request::get(MAPS) }).await;
    let text = |field: &str| page["metadata"][field].as_str().unwrap().to_owned();
    let page = Page { version: text("resourceVersion"), next: text("continue") };
    create(transport, json!({ "name": "d" })).await;
    create(transport, json!({ "name": "e" })).await;
    page
}

async fn create(transport: &Rc<dyn Transport>, metadata: Value) {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    read(transport, request(Method::Post, MAPS, JSON, &map)).await;
}
