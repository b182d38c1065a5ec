use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::mutation::now;
use super::stored::RowObject;
use crate::object::Kind;

/// The columns kubectl prints for a kind: of most only name and age are known.
pub(super) fn columns(kind: &Kind) -> Value {
    columns_of(&kind.kind, &kind.api_version())
}

/// An object as a table of its own, as in an event.
pub(super) fn of_one(object: &Value, row_object: RowObject) -> Value {
    let columns = columns_of(text(&object["kind"]), text(&object["apiVersion"]));
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": object["metadata"]["resourceVersion"] },
        "columnDefinitions": columns, "rows": [row(object, row_object)],
    })
}

/// An object as one line of a table.
pub(super) fn row(object: &Value, row_object: RowObject) -> Value {
    let mut row = json!({ "cells": cells(object) });
    match row_object {
        RowObject::None => {}
        RowObject::Metadata => {
            row["object"] = json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
            });
        }
        RowObject::Whole => row["object"] = object.clone(),
    }
    row
}

fn columns_of(kind: &str, api_version: &str) -> Value {
    let column = |name: &str, kind: &str, format: &str, priority: u8| json!({ "name": name, "type": kind, "format": format, "description": "", "priority": priority });
    let plain = |name: &str, kind: &str| column(name, kind, "", 0);
    let wide = |name: &str| column(name, "string", "", 1);
    let (name, age) = (column("Name", "string", "name", 0), plain("Age", "string"));
    match (api_version, kind) {
        ("v1", "Pod") => json!([
            name,
            plain("Ready", "string"),
            plain("Status", "string"),
            plain("Restarts", "string"),
            age,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ]),
        ("v1", "ConfigMap") => json!([name, plain("Data", "string"), age]),
        ("v1", "Node") => json!([
            name,
            plain("Status", "string"),
            plain("Roles", "string"),
            age,
            plain("Version", "string"),
        ]),
        ("apps/v1", "Deployment") => json!([
            name,
            plain("Ready", "string"),
            plain("Up-to-date", "string"),
            plain("Available", "string"),
            age,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ]),
        _ => json!([name, age]),
    }
}

fn cells(object: &Value) -> Value {
    let (name, age) = (text(&object["metadata"]["name"]), age(&object["metadata"]));
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    match (text(&object["apiVersion"]), text(&object["kind"])) {
        ("v1", "Pod") => {
            let containers = spec["containers"].as_array().map_or(0, Vec::len);
            let statuses =
                status["containerStatuses"].as_array().map(Vec::as_slice).unwrap_or_default();
            let ready = statuses.iter().filter(|container| container["ready"] == true).count();
            let restarts: u64 =
                statuses.iter().map(|container| number(&container["restartCount"])).sum();
            json!([
                name,
                format!("{ready}/{containers}"),
                pod_status(object),
                restarts.to_string(),
                age,
                or_none(&status["podIP"]),
                or_none(&spec["nodeName"]),
                or_none(&status["nominatedNodeName"]),
                readiness_gates(object),
            ])
        }
        ("v1", "ConfigMap") => {
            let entries = |name: &str| object[name].as_object().map_or(0, serde_json::Map::len);
            json!([name, entries("data") + entries("binaryData"), age])
        }
        ("v1", "Node") => {
            let version = text(&status["nodeInfo"]["kubeletVersion"]);
            json!([name, node_status(object), node_roles(object), age, version])
        }
        ("apps/v1", "Deployment") => {
            let wanted = spec["replicas"].as_u64().unwrap_or(1);
            json!([
                name,
                format!("{}/{wanted}", number(&status["readyReplicas"])),
                number(&status["updatedReplicas"]),
                number(&status["availableReplicas"]),
                age,
                of_containers(spec, "name"),
                of_containers(spec, "image"),
                labels(&spec["selector"]["matchLabels"]),
            ])
        }
        _ => json!([name, age]),
    }
}

/// One field of each container of a template.
fn of_containers(spec: &Value, field: &str) -> String {
    let containers = spec["template"]["spec"]["containers"].as_array();
    let texts: Vec<&str> = containers.into_iter().flatten().map(|it| text(&it[field])).collect();
    texts.join(",")
}

/// Labels as a selector is written.
fn labels(labels: &Value) -> String {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", text(value))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// How many of the conditions that a pod wants for readiness hold.
fn readiness_gates(pod: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list(&pod["status"]["conditions"]);
    let holds = |gate: &&Value| {
        let of_gate = |it: &&Value| it["type"] == gate["conditionType"];
        conditions.iter().find(of_gate).is_some_and(|it| it["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}

fn pod_status(pod: &Value) -> &str {
    let status = &pod["status"];
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating";
    }
    [&status["reason"], &status["phase"]].into_iter().find_map(Value::as_str).unwrap_or_default()
}

fn node_status(node: &Value) -> String {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|condition| text(&condition["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node["spec"]["unschedulable"] == true {
        true => format!("{status},SchedulingDisabled"),
        false => status.to_owned(),
    }
}

fn node_roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles = labels.filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/"));
    let roles: Vec<&str> = roles.filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn or_none(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>")
}

fn age(metadata: &Value) -> String {
    let time = |text: &str| text.parse::<Timestamp>().map(Timestamp::as_second);
    match (time(text(&metadata["creationTimestamp"])), time(&now())) {
        (Ok(created), Ok(now)) => human(now.saturating_sub(created).max(0)),
        _ => "<unknown>".to_owned(),
    }
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
    use super::*;

    #[test]
    fn a_pod_is_shown_as_kubectl_shows_it() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a" },
            "spec": {
                "containers": [{}, {}], "nodeName": "node-1",
                "readinessGates": [{ "conditionType": "warm" }, { "conditionType": "fed" }],
            },
            "status": {
                "phase": "Running", "conditions": [{ "type": "warm", "status": "True" }],
                "containerStatuses": [{ "ready": true, "restartCount": 2 }, { "ready": false, "restartCount": 1 }],
            },
        });
        let table = of_one(&pod, RowObject::None);
        let columns = table["columnDefinitions"].as_array().unwrap();
        let names: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
        let wide = ["IP", "Node", "Nominated Node", "Readiness Gates"];
        assert_eq!(names[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
        assert_eq!(names[5..], wide);
        let cells =
            json!(["a", "1/2", "Running", "3", "<unknown>", "<none>", "node-1", "<none>", "1/2"]);
        assert_eq!(table["rows"], json!([{ "cells": cells }]));
    }

    #[test]
    fn a_node_is_shown_as_kubectl_shows_it() {
        let node = json!({
            "kind": "Node", "apiVersion": "v1",
            "metadata": {
                "name": "a",
                "labels": { "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": "", "x": "" },
            },
            "spec": { "unschedulable": true },
            "status": {
                "conditions": [
                    { "type": "DiskPressure", "status": "False" }, { "type": "Ready", "status": "True" },
                ],
                "nodeInfo": { "kubeletVersion": "v1.37.0" },
            },
        });
        let table = of_one(&node, RowObject::None);
        let columns = table["columnDefinitions"].as_array().unwrap();
        let names: Vec<&Value> = columns.iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "Status", "Roles", "Age", "Version"]);
        let cells = json!(["a", "Ready,SchedulingDisabled", "edge,worker", "<unknown>", "v1.37.0"]);
        assert_eq!(table["rows"][0]["cells"], cells);
        let unheard = json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": "b" } });
        let row = row(&unheard, RowObject::None);
        assert_eq!(row["cells"], json!(["b", "Unknown", "<none>", "<unknown>", ""]));
    }

    #[test]
    fn a_row_carries_as_much_of_its_object_as_was_asked_for() {
        let map = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "name": "a" }, "data": {} });
        let carried = row(&map, RowObject::Metadata);
        assert_eq!(carried["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(carried["object"]["metadata"]["name"], "a");
        assert_eq!(row(&map, RowObject::Whole)["object"], map);
    }

    #[test]
    fn an_age_has_two_units_while_the_second_matters() {
        for (seconds, age) in [
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (11_000, "3h3m"),
            (86_400, "24h"),
            (180_000, "2d2h"),
            (700_000, "8d"),
        ] {
            assert_eq!(human(seconds), age);
        }
    }
}
