//! What kubectl users are used to see of each kind, taken from the object itself.

use k8s_openapi::jiff::Timestamp;
use kubeflect::Kind;
use kubeflect::object::DynamicObject;
use serde_json::Value;

/// The columns of a kind behind namespace and name.
pub(crate) struct Columns {
    pub(crate) titles: &'static [&'static str],
    cells: fn(&Value) -> Vec<String>,
}

impl Columns {
    pub(crate) fn of(kind: &Kind) -> Self {
        type Known =
            (&'static str, &'static str, &'static [&'static str], fn(&Value) -> Vec<String>);
        const KNOWN: &[Known] = &[
            ("", "Pod", &["READY", "STATUS", "RESTARTS"], pod),
            ("", "Node", &["STATUS", "ROLES", "VERSION"], node),
            ("", "Namespace", &["STATUS"], |it| vec![text(&it["status"]["phase"])]),
            ("", "Service", &["TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)"], service),
            ("", "ConfigMap", &["DATA"], |it| vec![data(it)]),
            ("", "Secret", &["TYPE", "DATA"], |it| vec![text(&it["type"]), data(it)]),
            ("", "Event", &["TYPE", "REASON", "OBJECT", "MESSAGE"], event),
            ("", "PersistentVolumeClaim", &["STATUS", "VOLUME", "CAPACITY", "STORAGECLASS"], claim),
            ("", "PersistentVolume", &["CAPACITY", "STATUS", "CLAIM", "STORAGECLASS"], volume),
            ("apps", "Deployment", &["READY", "UP-TO-DATE", "AVAILABLE"], deployment),
            ("apps", "StatefulSet", &["READY"], |it| vec![ready_of_wanted(it)]),
            ("apps", "ReplicaSet", &["DESIRED", "CURRENT", "READY"], replica_set),
            (
                "apps",
                "DaemonSet",
                &["DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE"],
                daemon_set,
            ),
            ("batch", "Job", &["STATUS", "COMPLETIONS"], job),
            ("batch", "CronJob", &["SCHEDULE", "SUSPEND", "ACTIVE"], cron_job),
            ("networking.k8s.io", "Ingress", &["CLASS", "HOSTS"], ingress),
            ("coordination.k8s.io", "Lease", &["HOLDER"], |it| {
                vec![text(&it["spec"]["holderIdentity"])]
            }),
        ];
        let known = KNOWN.iter().find(|known| known.0 == kind.group && known.1 == kind.kind);
        match known {
            Some((_, _, titles, cells)) => Self { titles, cells: *cells },
            None => Self { titles: &[], cells: |_| Vec::new() },
        }
    }

    /// How many of them stand before the age.
    pub(crate) fn before_age(&self) -> usize {
        let version = self.titles.iter().position(|title| *title == "VERSION");
        version.unwrap_or(self.titles.len())
    }

    /// The cells of an object, without its name and age.
    pub(crate) fn cells(&self, object: &DynamicObject) -> Vec<String> {
        let mut cells = (self.cells)(&object.data);
        let place_of = |title: &str| self.titles.iter().position(|other| *other == title);
        if let Some(at) = place_of("ROLES") {
            // Roles are labels, and those are not among the data.
            cells.insert(at, roles(object));
        } else if let Some(at) = place_of("STATUS")
            && object.metadata.deletion_timestamp.is_some()
        {
            "Terminating".clone_into(&mut cells[at]);
        }
        cells
    }
}

/// How long ago an object was created.
pub(crate) fn age(object: &DynamicObject, now: Timestamp) -> String {
    match &object.metadata.creation_timestamp {
        Some(created) => human(now.as_second().saturating_sub(created.0.as_second()).max(0)),
        None => "<unknown>".to_owned(),
    }
}

fn pod(pod: &Value) -> Vec<String> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let wanted = spec["containers"].as_array().map_or(0, Vec::len);
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    let ready = containers().filter(|container| container["ready"] == true).count();
    let restarts: u64 =
        containers().map(|it| it["restartCount"].as_u64().unwrap_or_default()).sum();
    // Why a container does not run says more than the phase.
    let waiting = containers().find_map(|it| it["state"]["waiting"]["reason"].as_str());
    let ended = containers().find_map(|it| it["state"]["terminated"]["reason"].as_str());
    let reason = waiting.or(ended).or(status["reason"].as_str()).or(status["phase"].as_str());
    vec![
        format!("{ready}/{wanted}"),
        reason.unwrap_or("<unknown>").to_owned(),
        restarts.to_string(),
    ]
}

fn node(node: &Value) -> Vec<String> {
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
    vec![status, text(&node["status"]["nodeInfo"]["kubeletVersion"])]
}

fn roles(node: &DynamicObject) -> String {
    let labels = node.metadata.labels.iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/")).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn service(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let ingress = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    let outside: Vec<String> = ingress
        .filter_map(|it| it["ip"].as_str().or(it["hostname"].as_str()))
        .map(str::to_owned)
        .collect();
    let ports = spec["ports"].as_array().into_iter().flatten();
    let ports: Vec<String> = ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_u64() {
                Some(node) => format!("{}:{node}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    vec![text(&spec["type"]), text(&spec["clusterIP"]), joined(&outside), joined(&ports)]
}

fn event(event: &Value) -> Vec<String> {
    let about = &event["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let object = format!("{kind}/{}", about["name"].as_str().unwrap_or_default());
    let message = text(&event["message"]).replace('\n', " ");
    vec![text(&event["type"]), text(&event["reason"]), object, message]
}

fn claim(claim: &Value) -> Vec<String> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let capacity = text(&status["capacity"]["storage"]);
    vec![
        text(&status["phase"]),
        text(&spec["volumeName"]),
        capacity,
        text(&spec["storageClassName"]),
    ]
}

fn volume(volume: &Value) -> Vec<String> {
    let spec = &volume["spec"];
    let name = |field: &str| spec["claimRef"][field].as_str().unwrap_or_default();
    let claim = match name("name") {
        "" => String::new(),
        claim => format!("{}/{claim}", name("namespace")),
    };
    let capacity = text(&spec["capacity"]["storage"]);
    vec![capacity, text(&volume["status"]["phase"]), claim, text(&spec["storageClassName"])]
}

fn deployment(deployment: &Value) -> Vec<String> {
    let status = &deployment["status"];
    vec![
        ready_of_wanted(deployment),
        number(&status["updatedReplicas"]),
        number(&status["availableReplicas"]),
    ]
}

fn replica_set(set: &Value) -> Vec<String> {
    let status = &set["status"];
    vec![
        number(&set["spec"]["replicas"]),
        number(&status["replicas"]),
        number(&status["readyReplicas"]),
    ]
}

fn daemon_set(set: &Value) -> Vec<String> {
    let status = |field: &str| number(&set["status"][field]);
    vec![
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
    ]
}

fn job(job: &Value) -> Vec<String> {
    let (spec, status) = (&job["spec"], &job["status"]);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_over = |kind: &str| kind == "Complete" || kind == "Failed";
    let over = conditions
        .find_map(|it| it["type"].as_str().filter(|kind| is_over(kind) && it["status"] == "True"));
    let wanted = spec["completions"].as_u64().unwrap_or(1);
    vec![over.unwrap_or("Running").to_owned(), format!("{}/{wanted}", number(&status["succeeded"]))]
}

fn cron_job(job: &Value) -> Vec<String> {
    let active = job["status"]["active"].as_array().map_or(0, Vec::len);
    let suspended = job["spec"]["suspend"] == true;
    let suspended = if suspended { "True" } else { "False" };
    vec![text(&job["spec"]["schedule"]), suspended.to_owned(), active.to_string()]
}

fn ingress(ingress: &Value) -> Vec<String> {
    let rules = ingress["spec"]["rules"].as_array().into_iter().flatten();
    let hosts: Vec<String> =
        rules.map(|rule| rule["host"].as_str().unwrap_or("*").to_owned()).collect();
    vec![text(&ingress["spec"]["ingressClassName"]), joined(&hosts)]
}

fn ready_of_wanted(set: &Value) -> String {
    let wanted = set["spec"]["replicas"].as_u64().unwrap_or(1);
    format!("{}/{wanted}", number(&set["status"]["readyReplicas"]))
}

fn data(object: &Value) -> String {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    (count("data") + count("binaryData")).to_string()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> String {
    value.as_u64().unwrap_or_default().to_string()
}

fn joined(texts: &[String]) -> String {
    texts.join(",")
}

/// Two units where one would be too rough.
fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, smaller: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{smaller}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use kubeflect::object::{Resource as _, Scope};
    use serde_json::json;

    use super::*;

    fn cells(group: &str, kind: &str, mut object: Value) -> Vec<String> {
        let kind = Kind::new(group.to_owned(), "v1", kind.to_owned(), "x", Scope::Unknown);
        if object["metadata"].is_null() {
            object["metadata"] = json!({ "name": "a" });
        }
        let object = DynamicObject::decode(object.to_string().as_bytes(), &kind).unwrap();
        let columns = Columns::of(&kind);
        let cells = columns.cells(&object);
        assert_eq!(cells.len(), columns.titles.len(), "{kind}");
        cells
    }

    #[test]
    fn objects_are_shown_as_kubectl_shows_them() {
        let pod = json!({
            "spec": { "containers": [{}, {}] },
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    { "ready": true, "restartCount": 2 },
                    { "restartCount": 1, "state": { "waiting": { "reason": "CrashLoopBackOff" } } },
                ],
            },
        });
        assert_eq!(cells("", "Pod", pod), ["1/2", "CrashLoopBackOff", "3"]);
        let ending = json!({
            "metadata": { "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "status": { "phase": "Running" },
        });
        assert_eq!(cells("", "Pod", ending), ["0/0", "Terminating", "0"]);
        let node = json!({
            "metadata": { "name": "a", "labels": { "node-role.kubernetes.io/control-plane": "" } },
            "spec": { "unschedulable": true },
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }], "nodeInfo": { "kubeletVersion": "v1.34.0" },
            },
        });
        assert_eq!(
            cells("", "Node", node),
            ["Ready,SchedulingDisabled", "control-plane", "v1.34.0"]
        );
        let deployment = json!({
            "spec": { "replicas": 3 }, "status": { "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2 },
        });
        assert_eq!(cells("apps", "Deployment", deployment), ["2/3", "3", "2"]);
        let service = json!({
            "spec": { "type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{ "port": 80, "nodePort": 30080 }] },
        });
        assert_eq!(cells("", "Service", service), ["NodePort", "10.0.0.1", "", "80:30080/TCP"]);
    }

    #[test]
    fn an_object_with_nothing_in_it_has_all_its_cells() {
        for (group, kind) in [
            ("", "Pod"),
            ("", "Node"),
            ("", "Namespace"),
            ("", "Service"),
            ("", "ConfigMap"),
            ("", "Secret"),
            ("", "Event"),
            ("", "PersistentVolumeClaim"),
            ("", "PersistentVolume"),
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("apps", "ReplicaSet"),
            ("apps", "DaemonSet"),
            ("batch", "Job"),
            ("batch", "CronJob"),
            ("networking.k8s.io", "Ingress"),
            ("coordination.k8s.io", "Lease"),
            ("example.com", "Widget"),
        ] {
            cells(group, kind, json!({}));
        }
    }

    #[test]
    fn an_age_has_two_units_while_the_second_matters() {
        for (seconds, age) in
            [(119, "119s"), (125, "2m5s"), (10_799, "179m"), (11_000, "3h3m"), (700_000, "8d")]
        {
            assert_eq!(human(seconds), age);
        }
    }
}
