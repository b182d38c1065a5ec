use futures::stream;

use super::*;

fn response(status: u16, body: &str) -> Response {
    Response {
        status,
        content_type: String::new(),
        retry_after: Some(3),
        fairness: None,
        body: stream::iter([Ok(Bytes::from(body.to_owned()))]).boxed_local(),
    }
}

async fn error(status: u16, body: &str) -> ApiError {
    require_success(response(status, body)).await.unwrap_err()
}

/// The name of the variant, and the wait.
fn sort(error: &ApiError) -> (String, Option<u64>) {
    let name = format!("{error:?}");
    let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
    (name, error.retry_after().map(|wait| wait.as_secs()))
}

fn status(code: u16, reason: &str, message: &str) -> String {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
    .to_string()
}

/// The rows of `protocol-guarantees-faults-security.md` §1.5 that come with an HTTP status of their own.
#[tokio::test]
async fn every_answer_of_the_protocol_is_known_for_what_it_is() {
    let too_large = r#"{"kind":"Status","message":"Timeout: Too large resource version: 999, current: 123","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#;
    let unreachable = r#"{"kind":"Status","reason":"ServerTimeout","details":{"retryAfterSeconds":2},"code":500}"#;
    let rows: &[(u16, &str, &str)] = &[
        (410, &status(410, "Gone", "too old"), "Expired"),
        (410, &status(410, "", "too old"), "Expired"),
        (
            410,
            &status(410, "Expired", "The resourceVersion for the provided list is too old."),
            "Expired",
        ),
        (
            410,
            r#"{"kind":"Status","metadata":{"continue":"t"},"reason":"Expired","code":410}"#,
            "Expired",
        ),
        (504, too_large, "NotYetServed"),
        (
            504,
            &status(504, "Timeout", "Timeout: Too large resource version: 9, current: 5"),
            "NotYetServed",
        ),
        (429, "Too many requests, please try again later.", "TooManyRequests"),
        (429, &status(429, "TooManyRequests", "storage is (re)initializing"), "TooManyRequests"),
        (503, &status(503, "ServiceUnavailable", "apiserver is shutting down"), "Unavailable"),
        (503, &status(503, "", "the request has been made before all known"), "Unavailable"),
        (500, unreachable, "Unavailable"),
        (500, &status(500, "InternalError", "oops"), "Internal"),
        (500, &status(500, "StorageReadError", "corrupt"), "StorageRead"),
        (500, &status(500, "StoreReadError", "corrupt"), "StorageRead"),
        (
            504,
            &status(504, "Timeout", "request did not complete within the allotted timeout"),
            "Unavailable",
        ),
        (401, &status(401, "Unauthorized", "Unauthorized"), "Unauthorized"),
        (403, &status(403, "Forbidden", "pods is forbidden"), "Forbidden"),
        (404, "404 page not found\n", "NotFound"),
        (404, &status(404, "NotFound", "pods \"a\" not found"), "NotFound"),
        (400, &status(400, "BadRequest", "invalid resource version"), "Invalid"),
        (500, &status(500, "", "resourceVersion: Invalid value: \"x\""), "Expired"),
        (422, &status(422, "Invalid", "sendInitialEvents: Forbidden"), "Invalid"),
        (406, &status(406, "NotAcceptable", "only the following media types"), "Invalid"),
        (413, &status(413, "RequestEntityTooLarge", "limit is 3145728"), "Invalid"),
        (415, &status(415, "UnsupportedMediaType", "unknown format"), "Invalid"),
        (405, &status(405, "MethodNotAllowed", "the server does not allow this"), "NotAllowed"),
        (409, &status(409, "AlreadyExists", "pods \"a\" already exists"), "AlreadyExists"),
        (409, &status(409, "Conflict", "the object has been modified"), "Conflict"),
        (409, "", "Conflict"),
        // The reason counts more than the code, the code more than the HTTP status; an unknown reason is none.
        (500, &status(504, "Expired", ""), "Expired"),
        (500, &status(410, "Novel", ""), "Expired"),
        (410, &status(0, "", ""), "Expired"),
        // Proxies and half answers.
        (502, "<html>\n<head><title>502 Bad Gateway</title></head>", "Unavailable"),
        (503, "", "Unavailable"),
        (504, "<html", "Unavailable"),
        (302, "", "Unexpected"),
        (418, "teapot", "Unexpected"),
        (403, r#"{"kind":"Sta"#, "Forbidden"),
        (404, r#"{"kind":"Pod","code":410}"#, "NotFound"),
    ];
    for (code, body, expected) in rows {
        assert_eq!(sort(&error(*code, body).await).0, *expected, "{code} {body}");
    }
}

#[tokio::test]
async fn a_status_may_be_pretty_printed_and_have_nulls() {
    let body = "{\n  \"kind\": \"Status\",\n  \"metadata\": {},\n  \"reason\": \"Expired\",\n  \"details\": null,\n  \
                \"message\": null,\n  \"code\": 410\n}\n";
    assert_eq!(sort(&error(410, body).await).0, "Expired");
}

#[tokio::test]
async fn the_header_counts_more_than_the_details() {
    let body = r#"{"kind":"Status","reason":"TooManyRequests","details":{"retryAfterSeconds":9},"code":429}"#;
    assert_eq!(error(429, body).await.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(error(429, "").await.retry_after(), Some(Duration::from_secs(3)));
    let in_stream = status_in(body.as_bytes()).unwrap().into_error(None);
    assert_eq!(in_stream.retry_after(), Some(Duration::from_secs(9)));
}

/// The rows of §1.5 that come inside a stream, where there is no HTTP status and no header.
#[test]
fn every_error_inside_a_stream_is_known_for_what_it_is() {
    let too_large = r#"{"kind":"Status","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1},"code":504}"#;
    let odd = r#"{"kind":"Status","reason":"InternalError","details":{"retryAfterSeconds":-1},"code":500}"#;
    for (body, expected) in [
        (
            status(410, "Expired", "too old resource version: 100 (2345)").as_str(),
            ("Expired", None),
        ),
        (&status(410, "Gone", ""), ("Expired", None)),
        (too_large, ("NotYetServed", Some(1))),
        (&status(500, "StorageReadError", ""), ("StorageRead", None)),
        (&status(500, "InternalError", ""), ("Internal", None)),
        (odd, ("Internal", None)),
        (r#"{"kind":"Status"}"#, ("Internal", None)),
        (r#"{"kind":"Status","reason":"Timeout"}"#, ("Unavailable", None)),
    ] {
        let error = status_in(body.as_bytes()).unwrap().into_error(None);
        assert_eq!(sort(&error), (expected.0.to_owned(), expected.1), "{body}");
    }
}

#[tokio::test]
async fn plain_text_and_pages_are_cut_to_what_they_say() {
    for (body, expected) in [
        ("\n  404 page not found\nmore", "404 page not found"),
        ("<html>\n<head><TITLE>502 Bad Gateway</TITLE></head>", "502 Bad Gateway"),
        ("<html>\n<body><h1>Nope</h1></body>", "Nope"),
        ("a\u{1b}[31mb", "a[31mb"),
        ("<<<", ""),
        ("", ""),
    ] {
        assert_eq!(readable(body.as_bytes()), expected, "{body}");
    }
}

#[tokio::test]
async fn of_an_error_no_more_than_64_kib_are_read() {
    let endless = stream::repeat_with(|| Ok(Bytes::from(vec![b'x'; 10_000])));
    let response = Response { body: endless.boxed_local(), ..response(500, "") };
    let error = require_success(response).await.unwrap_err();
    assert!(matches!(error, ApiError::Internal { message, .. } if message.len() == LONGEST_LINE));
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_an_error() {
    let body = stream::iter([Ok(Bytes::from_static(b"12345678"))]).boxed_local();
    assert!(read_body(body, 7).await.is_err());
}

#[tokio::test]
async fn of_an_error_that_never_ends_only_the_beginning_is_read() {
    let line = Bytes::from_static(b"the server is on fire and tells at length, ");
    let endless = Response {
        body: stream::repeat_with(move || Ok(line.clone())).boxed_local(),
        ..response(503, "")
    };
    let error = require_success(endless).await.unwrap_err();
    assert!(matches!(error, ApiError::Unavailable { code: 503, .. }), "{error}");
    assert!(error.to_string().len() < 400, "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_body_never_comes_is_told_by_its_status() {
    let silent = Response { body: stream::pending().boxed_local(), ..response(403, "") };
    let error = require_success(silent).await.unwrap_err();
    assert!(matches!(error, ApiError::Forbidden { .. }), "{error}");
}
