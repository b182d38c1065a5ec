use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{json_of, require_success};
use super::{Method, Request, Transport};
use crate::api::ApiError;
use crate::object::Kind;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const WHAT: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// No answer may be larger, nor take longer.
const ANSWER_CAP: usize = 1 << 20;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether we may do something, as the server says when it is asked.
#[doc(alias = "SelfSubjectAccessReview")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Whether we may.
    pub allowed: bool,
    /// Why, if the server says.
    pub reason: Option<String>,
}

impl Access {
    /// Asks whether we may use a verb, as RBAC names it, on the objects of a kind; in all namespaces unless in one.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn review(
        transport: &dyn Transport,
        kind: &Kind,
        verb: &str,
        namespace: Option<&str>,
    ) -> Result<Self, ApiError> {
        let attributes = json!({
            "group": kind.group, "version": kind.version, "resource": kind.plural,
            "verb": verb, "namespace": namespace.unwrap_or_default(),
        });
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        });
        let answer = post(transport, WHAT, &review).await?;
        let status = &answer["status"];
        let reason = status["reason"].as_str().filter(|reason| !reason.is_empty());
        Ok(Self { allowed: status["allowed"] == true, reason: reason.map(str::to_owned) })
    }

    /// Asks who we are.
    ///
    /// # Errors
    /// When the server does not say: those before 1.28 can not.
    #[doc(alias("SelfSubjectReview", "whoami"))]
    pub async fn user(transport: &dyn Transport) -> Result<String, ApiError> {
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let answer = post(transport, WHO, &review).await?;
        Ok(answer["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned())
    }
}

async fn post(transport: &dyn Transport, path: &str, body: &Value) -> Result<Value, ApiError> {
    let request = Request {
        method: Method::Post,
        content_type: Some("application/json"),
        body: Bytes::from(body.to_string()),
        ..Request::get(path)
    };
    let answer = async {
        let response = require_success(transport.send(request).await?).await?;
        json_of(response.body, ANSWER_CAP, path).await
    };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    answer.map_err(|_elapsed| ApiError::Timeout { waited: ANSWER_TIMEOUT })?
}
