use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::pod::pod;
use super::{Seen, human};

type Known = (&'static str, &'static str, &'static [&'static str], fn(&Seen<'_>) -> Vec<String>);

/// Group, kind, titles, and the cells below all but NAME and AGE.
pub(super) const KNOWN: &[Known] = &[
    ("", "Pod", &["NAME", "READY", "STATUS", "RESTARTS", "AGE"], pod),
    ("", "Node", &["NAME", "STATUS", "ROLES", "AGE", "VERSION"], node),
    ("", "Namespace", &["NAME", "STATUS", "AGE"], |it| vec![text(&it.data["status"]["phase"])]),
    ("", "Service", &["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"], service),
    ("", "ConfigMap", &["NAME", "DATA", "AGE"], |it| vec![data(it.data)]),
    ("", "Secret", &["NAME", "TYPE", "DATA", "AGE"], |it| {
        vec![text(&it.data["type"]), data(it.data)]
    }),
    ("", "Event", &["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], event),
    ("events.k8s.io", "Event", &["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], event),
    (
        "",
        "PersistentVolumeClaim",
        &["NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "AGE"],
        claim,
    ),
    (
        "",
        "PersistentVolume",
        &[
            "NAME",
            "CAPACITY",
            "ACCESS MODES",
            "RECLAIM POLICY",
            "STATUS",
            "CLAIM",
            "STORAGECLASS",
            "REASON",
            "AGE",
        ],
        volume,
    ),
    ("apps", "Deployment", &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], deployment),
    ("apps", "StatefulSet", &["NAME", "READY", "AGE"], |it| vec![ready_of_wanted(it.data)]),
    ("apps", "ReplicaSet", &["NAME", "DESIRED", "CURRENT", "READY", "AGE"], replica_set),
    (
        "apps",
        "DaemonSet",
        &["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE"],
        daemon_set,
    ),
    ("batch", "Job", &["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"], job),
    (
        "batch",
        "CronJob",
        &["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE"],
        cron_job,
    ),
    (
        "networking.k8s.io",
        "Ingress",
        &["NAME", "CLASS", "HOSTS", "ADDRESS", "PORTS", "AGE"],
        ingress,
    ),
    ("coordination.k8s.io", "Lease", &["NAME", "HOLDER", "AGE"], |it| {
        vec![text(&it.data["spec"]["holderIdentity"])]
    }),
];

fn node(seen: &Seen<'_>) -> Vec<String> {
    let node = seen.data;
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let mut status = match ready.and_then(|condition| condition["status"].as_str()) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = seen.metadata.labels.iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/")).collect();
    vec![status, roles.join(","), text(&node["status"]["nodeInfo"]["kubeletVersion"])]
}

fn service(seen: &Seen<'_>) -> Vec<String> {
    let service = seen.data;
    let spec = &service["spec"];
    let ports = list(&spec["ports"]).map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_u64() {
            Some(node) => format!("{}:{node}/{protocol}", port["port"]),
            None => format!("{}/{protocol}", port["port"]),
        }
    });
    let ports: Vec<String> = ports.collect();
    vec![text(&spec["type"]), text(&spec["clusterIP"]), addresses(service), ports.join(",")]
}

/// Where a load balancer answers.
fn addresses(object: &Value) -> String {
    let ingress = list(&object["status"]["loadBalancer"]["ingress"]);
    let addresses: Vec<&str> =
        ingress.filter_map(|it| it["ip"].as_str().or(it["hostname"].as_str())).collect();
    addresses.join(",")
}

fn event(seen: &Seen<'_>) -> Vec<String> {
    let event = seen.data;
    // Those of the newer group say the same in other places.
    let either = |one: &str, other: &str| match &event[one] {
        Value::Null => event[other].clone(),
        value => value.clone(),
    };
    let about = either("involvedObject", "regarding");
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let object = format!("{kind}/{}", about["name"].as_str().unwrap_or_default());
    let message = text(&either("message", "note")).trim().replace('\n', " ");
    let times = [
        &event["series"]["lastObservedTime"],
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
    ];
    let last = times.into_iter().find_map(|time| seen.ago(time)).unwrap_or_else(|| seen.age());
    vec![last, text(&event["type"]), text(&event["reason"]), object, message]
}

fn claim(seen: &Seen<'_>) -> Vec<String> {
    let (spec, status) = (&seen.data["spec"], &seen.data["status"]);
    let phase = if seen.is_going() { "Terminating".to_owned() } else { text(&status["phase"]) };
    vec![
        phase,
        text(&spec["volumeName"]),
        text(&status["capacity"]["storage"]),
        access_modes(&status["accessModes"]),
        text(&spec["storageClassName"]),
    ]
}

fn volume(seen: &Seen<'_>) -> Vec<String> {
    let (spec, status) = (&seen.data["spec"], &seen.data["status"]);
    let name = |field: &str| spec["claimRef"][field].as_str().unwrap_or_default();
    let claim = match name("name") {
        "" => String::new(),
        claim => format!("{}/{claim}", name("namespace")),
    };
    let phase = if seen.is_going() { "Terminating".to_owned() } else { text(&status["phase"]) };
    vec![
        text(&spec["capacity"]["storage"]),
        access_modes(&spec["accessModes"]),
        text(&spec["persistentVolumeReclaimPolicy"]),
        phase,
        claim,
        text(&spec["storageClassName"]),
        text(&status["reason"]),
    ]
}

/// `ReadWriteOnce` as `RWO`, and so on.
fn access_modes(modes: &Value) -> String {
    let short = |mode: &Value| match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        other => other.to_owned(),
    };
    list(modes).map(short).collect::<Vec<_>>().join(",")
}

fn deployment(seen: &Seen<'_>) -> Vec<String> {
    let status = &seen.data["status"];
    vec![
        ready_of_wanted(seen.data),
        number(&status["updatedReplicas"]),
        number(&status["availableReplicas"]),
    ]
}

fn replica_set(seen: &Seen<'_>) -> Vec<String> {
    let status = &seen.data["status"];
    vec![
        number(&seen.data["spec"]["replicas"]),
        number(&status["replicas"]),
        number(&status["readyReplicas"]),
    ]
}

fn daemon_set(seen: &Seen<'_>) -> Vec<String> {
    let status = |field: &str| number(&seen.data["status"][field]);
    let selector = seen.data["spec"]["template"]["spec"]["nodeSelector"].as_object();
    let selector = selector.into_iter().flatten();
    let selector: Vec<String> =
        selector.map(|(label, value)| format!("{label}={}", text(value))).collect();
    vec![
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        selector.join(","),
    ]
}

fn job(seen: &Seen<'_>) -> Vec<String> {
    let (spec, status) = (&seen.data["spec"], &seen.data["status"]);
    let has = |condition: &str| {
        list(&status["conditions"]).any(|it| it["type"] == condition && it["status"] == "True")
    };
    let ends = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let state = ends.into_iter().find(|(condition, _)| has(condition)).map(|(_, state)| state);
    let state = match state {
        Some(state @ ("Complete" | "Failed")) => state,
        _ if seen.is_going() => "Terminating",
        state => state.unwrap_or("Running"),
    };
    let succeeded = number(&status["succeeded"]);
    let completions = match (spec["completions"].as_u64(), spec["parallelism"].as_u64()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(parallel)) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    vec![state.to_owned(), completions, duration(seen, status)]
}

/// How long a job took, or has taken so far.
fn duration(seen: &Seen<'_>, status: &Value) -> String {
    let time = |field: &str| status[field].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    match (time("startTime"), time("completionTime")) {
        (Some(start), Some(end)) => human((end.as_second() - start.as_second()).max(0)),
        (Some(start), None) => seen.since(start),
        (None, _) => String::new(),
    }
}

fn cron_job(seen: &Seen<'_>) -> Vec<String> {
    let (spec, status) = (&seen.data["spec"], &seen.data["status"]);
    let suspended = if spec["suspend"] == true { "True" } else { "False" };
    vec![
        text(&spec["schedule"]),
        text(&spec["timeZone"]),
        suspended.to_owned(),
        list(&status["active"]).count().to_string(),
        seen.ago(&status["lastScheduleTime"]).unwrap_or_default(),
    ]
}

fn ingress(seen: &Seen<'_>) -> Vec<String> {
    let spec = &seen.data["spec"];
    let hosts: BTreeSet<&str> =
        list(&spec["rules"]).map(|rule| rule["host"].as_str().unwrap_or("*")).collect();
    let hosts = if hosts.is_empty() { "*".to_owned() } else { Vec::from_iter(hosts).join(",") };
    let ports = if list(&spec["tls"]).next().is_some() { "80, 443" } else { "80" };
    vec![text(&spec["ingressClassName"]), hosts, addresses(seen.data), ports.to_owned()]
}

fn ready_of_wanted(set: &Value) -> String {
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    format!("{}/{wanted}", number(&set["status"]["readyReplicas"]))
}

fn data(object: &Value) -> String {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).to_string()
}

pub(super) fn list(value: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> String {
    value.as_u64().unwrap_or_default().to_string()
}
