use bytes::Bytes;
use futures::stream;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::resources::Served;
use crate::api::{Status, StatusCause, StatusDetails};
use crate::client::Response;
use crate::object::ObjectKey;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// An answer other than the one asked for.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) status: Status,
    /// `metadata.continue`: how to go on after an expired token.
    continue_token: Option<String>,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, continue_token: None }
    }
}

impl Failure {
    fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self::from(Status {
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.to_owned(),
            details: None,
            code,
        })
    }

    fn about(mut self, served: &Served, name: &str) -> Self {
        self.status.details = Some(StatusDetails {
            name: name.to_owned(),
            group: served.kind.group.clone().into_owned(),
            kind: served.kind.plural.clone().into_owned(),
            ..StatusDetails::default()
        });
        self
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn not_found(served: &Served, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", served.kind);
        Self::new(404, "NotFound", message).about(served, name)
    }

    /// A resource that its group does not have.
    pub(super) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(StatusDetails::default())
    }

    /// What Kubernetes forgot to map: no reason, and 500.
    pub(super) fn unmapped(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(super) fn no_such_kind(api_version: &str, kind: &str) -> Self {
        let message = format!("no matches for kind \"{kind}\" in version \"{api_version}\"");
        Self::new(404, "NotFound", message)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(StatusDetails::default())
    }

    /// JSON, but not of that form.
    pub(super) fn form_not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    /// Not JSON at all.
    pub(super) fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json";
        Self::new(406, "NotAcceptable", message).with_details(StatusDetails::default())
    }

    pub(super) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message).with_details(StatusDetails::default())
    }

    /// A patch in a format that nobody reads.
    pub(super) fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(StatusDetails::default())
    }

    /// For a name that is none of this server's.
    pub(super) fn misdirected() -> Self {
        let message = "not addressed by a name of this machine: ask for 127.0.0.1 or localhost";
        Self::new(421, "MisdirectedRequest", message)
    }

    pub(super) fn already_exists(served: &Served, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", served.kind);
        Self::new(409, "AlreadyExists", message).about(served, name)
    }

    pub(super) fn conflict(served: &Served, name: &str, problem: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {problem}", served.kind);
        Self::new(409, "Conflict", message).about(served, name)
    }

    /// A write to an object that is not the one that was meant, as the storage of Kubernetes says it.
    pub(super) fn replaces_another(
        served: &Served,
        key: &ObjectKey,
        wanted: &str,
        found: &str,
    ) -> Self {
        let problem = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
            served.kind.plural
        );
        Self::conflict(served, key.name(), &problem)
    }

    /// A deletion of an object that is not the one that was meant: what differs, what was wanted, what was found. Here
    /// Kubernetes says the kind where else it says the resource.
    pub(super) fn removes_another(
        served: &Served,
        key: &ObjectKey,
        (what, wanted, found): (&str, &str, &str),
    ) -> Self {
        let fate = if what == "UID" { "deleted and then recreated" } else { "modified" };
        let (kind, name) = (&served.kind.kind, key.name());
        let message = format!(
            "Operation cannot be fulfilled on {kind} \"{name}\": the {what} in the precondition ({wanted}) does not match \
             the {what} in record ({found}). The object might have been {fate}"
        );
        let mut failure = Self::new(409, "Conflict", message).about(served, name);
        if let Some(details) = &mut failure.status.details {
            details.kind = kind.clone().into_owned();
        }
        failure
    }

    pub(super) fn modified_meanwhile(served: &Served, name: &str) -> Self {
        let problem = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(served, name, problem)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(super) fn forbidden(
        served: &Served,
        verb: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Self {
        let kind = &served.kind;
        let subject = match name {
            "" => kind.to_string(),
            name => format!("{kind} \"{name}\""),
        };
        let place = match namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let message = format!(
            "{subject} is forbidden: User \"system:anonymous\" cannot {verb} resource \"{}\" in API group \"{}\" {place}",
            kind.plural, kind.group
        );
        Self::new(403, "Forbidden", message).about(served, name)
    }

    /// The fields of an object that are not as they must be.
    pub(super) fn invalid_object(served: &Served, name: &str, cause: StatusCause) -> Self {
        let subject = match served.kind.group.as_ref() {
            "" => served.kind.kind.clone().into_owned(),
            group => format!("{}.{group}", served.kind.kind),
        };
        let details = StatusDetails {
            name: name.to_owned(),
            group: served.kind.group.clone().into_owned(),
            kind: served.kind.kind.clone().into_owned(),
            ..StatusDetails::default()
        };
        Self::invalid(&subject, details, vec![cause])
    }

    /// The query parameters that do not go together.
    pub(super) fn invalid_options(causes: Vec<StatusCause>) -> Self {
        let details = StatusDetails {
            group: "meta.k8s.io".to_owned(),
            kind: "ListOptions".to_owned(),
            ..StatusDetails::default()
        };
        Self::invalid("ListOptions.meta.k8s.io", details, causes)
    }

    fn invalid(subject: &str, mut details: StatusDetails, causes: Vec<StatusCause>) -> Self {
        let problems: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let problems = match problems.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{subject} \"{}\" is invalid: {problems}", details.name);
        details.causes = causes;
        Self::new(422, "Invalid", message).with_details(details)
    }

    /// A JSON patch that does not fit. Kubernetes does not say what of.
    pub(super) fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).with_details(StatusDetails::default())
    }

    /// A watch from a version that is forgotten.
    pub(super) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(super) fn list_too_old() -> Self {
        Self::new(410, "Expired", "The resourceVersion for the provided list is too old.")
    }

    pub(super) fn continue_too_old(token: String) -> Self {
        let mut failure = Self::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You can start a new \
             list without the continue parameter, or use the continue token in this response to retrieve the \
             remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
             that were created, modified, or deleted between the time the first chunk was returned and now may show \
             up in the list.",
        );
        failure.continue_token = Some(token);
        failure
    }

    /// A version the server did not reach in time.
    pub(super) fn too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with_details(StatusDetails {
            causes: vec![StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after_seconds: Some(1),
            ..StatusDetails::default()
        })
    }

    /// A watch from something that is no version.
    pub(super) fn watch_version_invalid(text: &str) -> Self {
        let message = format!(
            "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        );
        Self::unmapped(message)
    }

    fn with_details(mut self, details: StatusDetails) -> Self {
        self.status.details = Some(details);
        self
    }

    /// The `Status` object as it is sent.
    pub(super) fn body(&self) -> Value {
        let status = &self.status;
        let metadata = match &self.continue_token {
            Some(token) => json!({ "continue": token }),
            None => json!({}),
        };
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": if status.status.is_empty() { "Failure" } else { &status.status },
            "code": status.code,
        });
        if !status.message.is_empty() {
            body["message"] = json!(status.message);
        }
        if !status.reason.is_empty() {
            body["reason"] = json!(status.reason);
        }
        if let Some(details) = &status.details {
            body["details"] = json!(details);
        }
        body
    }

    pub(super) fn response(&self) -> Response {
        let details = self.status.details.as_ref();
        let mut response = json_response(self.status.code, &self.body());
        response.retry_after = details.and_then(|details| details.retry_after_seconds);
        response
    }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response {
    whole_response(status, JSON, Bytes::from(body.to_string()))
}

pub(super) fn whole_response(status: u16, content_type: &str, body: Bytes) -> Response {
    let body = stream::once(async move { Ok(body) }.boxed_local()).boxed_local();
    Response {
        status,
        content_type: content_type.to_owned(),
        retry_after: None,
        fairness: None,
        body,
    }
}
