//! Answers in all that does not change from server to server and from time to time.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::known::Difference;

/// Events with the ranks of their versions in place of these: what counts is which of them are the same, and which is
/// later. How far the server has come since is what a bookmark tells: that is no rank.
pub(super) fn ranked(mut events: Vec<Value>) -> Vec<Value> {
    let version =
        |event: &Value| event["object"]["metadata"]["resourceVersion"].as_str()?.parse().ok();
    let counts = |event: &&mut Value| event["type"] != "BOOKMARK";
    let versions: BTreeSet<u64> =
        { events.iter_mut() }.filter(counts).filter_map(|it| version(it)).collect();
    for event in events.iter_mut().filter(counts) {
        rank(event, &versions);
    }
    events
}

fn rank(value: &mut Value, versions: &BTreeSet<u64>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let version: Option<u64> = value.as_str().and_then(|text| text.parse().ok());
                match version.filter(|_| name == "resourceVersion") {
                    Some(version) => *value = json!(versions.range(..=version).count()),
                    None => rank(value, versions),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rank(value, versions)),
        _ => {}
    }
}

/// Without what differs from server to server and from time to time.
pub(super) fn normalised(value: &Value) -> Value {
    let field = |(name, value): (&String, &Value)| {
        let value = match name.as_str() {
            "uid" | "resourceVersion" | "creationTimestamp" | "continue" if is_set(value) => {
                json!("…")
            }
            "message" if value.is_string() => {
                json!(without_variables(value.as_str().unwrap_or_default()))
            }
            "cells" => value.as_array().into_iter().flatten().map(without_age).collect(),
            "groups" | "items" | "resources" if is_discovery(value) => of_common_kinds(value),
            // Who set which field and when; sentences that explain a column; for the storage alone; where else to ask.
            "managedFields"
            | "description"
            | "storageVersionHash"
            | "serverAddressByClientCIDRs" => {
                return None;
            }
            // A field that is null is one that is not there.
            _ if value.is_null() => return None,
            _ => normalised(value),
        };
        Some((name.clone(), value))
    };
    match value {
        Value::Object(fields) => fields.iter().filter_map(field).collect::<Map<_, _>>().into(),
        Value::Array(values) => values.iter().map(normalised).collect(),
        value => value.clone(),
    }
}

fn is_set(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// How long ago something was made, as kubectl prints it.
fn without_age(cell: &Value) -> Value {
    let is_age = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c))
            && text.ends_with(|c: char| c.is_ascii_alphabetic())
    };
    if cell.as_str().is_some_and(is_age) { json!("…") } else { cell.clone() }
}

/// The kinds that are in both servers. The embedded one has no others.
const COMMON: &[&str] = &[
    "configmaps",
    "endpoints",
    "events",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "persistentvolumeclaims",
    "pods",
    "secrets",
    "services",
    "serviceaccounts",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "cronjobs",
    "jobs",
    "leases",
    "ingresses",
    "customresourcedefinitions",
];

/// Their groups.
const COMMON_GROUPS: &[&str] =
    &["", "apps", "batch", "coordination.k8s.io", "networking.k8s.io", "apiextensions.k8s.io"];

/// Whether these are groups, or resources of a group.
fn is_discovery(values: &Value) -> bool {
    let first = &values[0];
    ["versions", "singularName", "singularResource"].iter().any(|field| !first[field].is_null())
}

/// What is in both servers, and of what is below an object only its status.
fn of_common_kinds(values: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_common = |value: &&Value| {
        if !value["versions"].is_null() {
            let name = text(&value["name"]) + &text(&value["metadata"]["name"]);
            return COMMON_GROUPS.contains(&name.as_str());
        }
        let name = text(&value["name"]) + &text(&value["resource"]);
        match name.split_once('/') {
            Some((plural, below)) => COMMON.contains(&plural) && below == "status",
            None => COMMON.contains(&name.as_str()),
        }
    };
    let without_others_below = |value: &Value| {
        let mut value = normalised(value);
        if let Some(below) = value.get_mut("subresources").and_then(Value::as_array_mut) {
            below.retain(|it| it["subresource"] == "status");
        }
        if value["subresources"].as_array().is_some_and(Vec::is_empty)
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("subresources");
        }
        value
    };
    values.as_array().into_iter().flatten().filter(is_common).map(without_others_below).collect()
}

pub(super) fn difference(truth: &Value, imitation: &Value) -> Option<Difference> {
    if truth == imitation {
        None
    } else if without_words(truth) == without_words(imitation) {
        Some(Difference::Words)
    } else {
        Some(Difference::Meaning)
    }
}

fn without_words(exchange: &Value) -> Value {
    match exchange {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| name.as_str() != "message")
            .map(|(name, value)| (name.clone(), without_words(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(without_words).collect(),
        value => value.clone(),
    }
}

/// A message without the version the server is at, without uids, and without who asks.
fn without_variables(message: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut result = String::new();
    let (before, user) = message.split_once("User \"").unwrap_or(("", message));
    let (_, mut rest) = user.split_once('"').filter(|_| !before.is_empty()).unwrap_or(("", user));
    if !before.is_empty() {
        result = format!("{before}User \"…\"");
    }
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        let is_version = ["current: ", "in record ("].iter().any(|it| result.ends_with(it))
            && part.bytes().all(|b| b.is_ascii_digit());
        let is_uid = part.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        result += if is_version || is_uid { "…" } else { part };
        rest = behind;
    }
    result
}
