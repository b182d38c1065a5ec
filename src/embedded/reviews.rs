use serde_json::{Value, json};

use super::failure::{Failure, json_response};
use super::model::Model;
use super::route::Call;
use crate::client::{Method, Response};

const USER: &str = "system:anonymous";
const GROUPS: [&str; 1] = ["system:unauthenticated"];

/// What a `Role` or a `ClusterRole` grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rights(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
}

impl Rights {
    /// Those of a role, as it is written.
    pub(super) fn of_role(role: &Value) -> Self {
        let texts = |value: &Value| -> Vec<String> {
            let values = value.as_array().into_iter().flatten();
            values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let rules = role["rules"].as_array().into_iter().flatten();
        Self(
            rules
                .map(|rule| Rule {
                    groups: texts(&rule["apiGroups"]),
                    resources: texts(&rule["resources"]),
                    verbs: texts(&rule["verbs"]),
                })
                .collect(),
        )
    }

    pub(super) fn allow(&self, group: &str, resource: &str, verb: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|it| it == wanted || it == "*");
        self.0.iter().any(|rule| {
            has(&rule.groups, group) && has(&rule.resources, resource) && has(&rule.verbs, verb)
        })
    }
}

/// Answers who somebody is and what they may; none if that was not asked.
pub(super) fn answer(
    model: &Model,
    call: &Call,
    path: &[String],
) -> Option<Result<Response, Failure>> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let status: fn(&Model, &Value) -> Value = match path.as_slice() {
        ["apis", "authentication.k8s.io", "v1", "selfsubjectreviews"] => {
            |_, _| json!({ "userInfo": { "username": USER, "groups": GROUPS } })
        }
        ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] => access,
        _ => return None,
    };
    if call.method != Method::Post {
        return Some(Err(Failure::method_not_allowed()));
    }
    // Who asks who they are says nothing beside: in whichever format that is.
    let body: &[u8] = match path.last() {
        Some(&"selfsubjectreviews") if call.content_type.contains("protobuf") => {
            br#"{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}"#
        }
        _ => &call.body,
    };
    Some(match serde_json::from_slice::<Value>(body) {
        Ok(mut review) if review.is_object() => {
            review["status"] = status(model, &review);
            Ok(json_response(201, &review))
        }
        _ => Err(Failure::bad_request(
            "a review is an object in JSON: this server does not speak protobuf",
        )),
    })
}

fn access(model: &Model, review: &Value) -> Value {
    let asked = &review["spec"]["resourceAttributes"];
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    if model.faults.is_denied(text("group"), text("resource"), text("verb")) {
        return json!({ "allowed": false });
    }
    json!({ "allowed": true, "reason": "everything is allowed that is not forbidden" })
}
