use std::time::Duration;

use super::continue_token::ContinueToken;
use super::failure::Failure;
use super::stored::{Form, RowObject};
use crate::api::StatusCause;

/// A year is for ever, and can be added to any clock.
const LONGEST_WATCH: Duration = Duration::from_secs(365 * 24 * 3600);

/// The query of a request, unescaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a>(pub(super) &'a [(String, String)]);

/// How a list is to be answered.
#[derive(Debug)]
pub(super) struct ListOptions {
    pub(super) limit: Option<usize>,
    pub(super) continue_token: Option<ContinueToken>,
    pub(super) version: ListVersion,
}

/// How new a list must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListVersion {
    /// As new as the server is.
    Newest,
    /// At least this new; 0 is any.
    NotOlderThan(u64),
    Exact(u64),
}

/// How a watch is to be answered.
#[derive(Debug)]
pub(super) struct WatchOptions {
    pub(super) begin: Begin,
    pub(super) timeout: Option<Duration>,
    pub(super) bookmarks: bool,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the first change after a version.
    After(u64),
    /// With the first change after now.
    Now,
    /// With an `ADDED` for every object.
    InitialEvents {
        version: ListVersion,
        /// Whether a bookmark says that these were all.
        marked_end: bool,
    },
}

impl<'a> Query<'a> {
    /// The value of a parameter; empty if it is not there.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.0.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    /// Kubernetes takes `true`, `1` and the name alone for yes.
    fn flag(self, name: &str) -> Option<bool> {
        let (_, value) = self.0.iter().find(|(other, _)| other == name)?;
        Some(!matches!(value.as_str(), "false" | "0" | "f" | "F" | "FALSE" | "False"))
    }

    fn number(self, name: &str) -> Result<Option<i64>, Failure> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_unreadable| {
                let problem = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
                Failure::bad_request(problem)
            }),
        }
    }

    pub(super) fn asks_to_watch(self) -> bool {
        self.flag("watch") == Some(true)
    }

    /// How much of each object the rows of a table carry.
    fn row_object(self) -> RowObject {
        match self.text("includeObject") {
            "None" => RowObject::None,
            "Object" => RowObject::Whole,
            _ => RowObject::Metadata,
        }
    }

    pub(super) fn asks_for_a_streaming_list(self) -> bool {
        let initial_events = self.flag("sendInitialEvents") == Some(true);
        self.asks_to_watch() && initial_events && self.flag("allowWatchBookmarks") == Some(true)
    }
}

impl ListOptions {
    pub(super) fn parse(query: Query<'_>) -> Result<Self, Failure> {
        let (version, version_match) =
            (query.text("resourceVersion"), query.text("resourceVersionMatch"));
        let token = query.text("continue");
        let problems = list_problems(query, version, version_match, token);
        if !problems.is_empty() {
            return Err(Failure::invalid_options(problems));
        }
        let continue_token =
            (!token.is_empty()).then(|| ContinueToken::decode(token)).transpose()?;
        if continue_token.is_some() && !matches!(version, "" | "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Failure::bad_request(message));
        }
        let revision = parse_version(version).ok_or_else(|| {
            let problem = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
            let problem = format!("resourceVersion: Invalid value: {version:?}: {problem}");
            Failure::bad_request(format!("invalid resource version: {problem}"))
        })?;
        let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.filter(|&limit| limit > 0);
        let exact = version_match == "Exact"
            || (version_match.is_empty() && limit.is_some() && revision > 0);
        Ok(Self {
            // Any state will do, so it comes from the cache, and the cache does not page.
            limit: limit.filter(|_| version != "0" || !token.is_empty()),
            continue_token,
            version: match exact {
                true => ListVersion::Exact(revision),
                false => ListVersion::at_least(version, revision),
            },
        })
    }
}

impl ListVersion {
    fn at_least(version: &str, revision: u64) -> Self {
        if version.is_empty() { Self::Newest } else { Self::NotOlderThan(revision) }
    }
}

fn list_problems(
    query: Query<'_>,
    version: &str,
    version_match: &str,
    token: &str,
) -> Vec<StatusCause> {
    let mut problems = Vec::new();
    if !version_match.is_empty() {
        let mut forbid = |problem: &str| problems.push(forbidden("resourceVersionMatch", problem));
        if version.is_empty() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !token.is_empty() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if version_match == "Exact" && version == "0" {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            problems.push(unsupported_match(version_match, "\"Exact\", \"NotOlderThan\", \"\""));
        }
    }
    if query.flag("sendInitialEvents").is_some() {
        problems.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    problems
}

impl WatchOptions {
    pub(super) fn parse(query: Query<'_>, streaming_lists: bool) -> Result<Self, Failure> {
        let version = query.text("resourceVersion");
        let initial_events = query.flag("sendInitialEvents");
        let problems = watch_problems(query, initial_events, streaming_lists);
        if !problems.is_empty() {
            return Err(Failure::invalid_options(problems));
        }
        let revision =
            parse_version(version).ok_or_else(|| Failure::watch_version_invalid(version))?;
        let bookmarks = query.flag("allowWatchBookmarks") == Some(true);
        let begin = match (initial_events, revision) {
            (Some(true), revision) => Begin::InitialEvents {
                version: ListVersion::at_least(version, revision),
                marked_end: bookmarks,
            },
            (Some(false), 0) => Begin::Now,
            (None, 0) => Begin::InitialEvents {
                version: ListVersion::at_least(version, 0),
                marked_end: false,
            },
            (_, revision) => Begin::After(revision),
        };
        let timeout = query.text("timeoutSeconds").parse().ok().filter(|&seconds| seconds > 0);
        let timeout = timeout.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WATCH));
        Ok(Self { begin, timeout, bookmarks })
    }
}

fn watch_problems(
    query: Query<'_>,
    initial_events: Option<bool>,
    streaming_lists: bool,
) -> Vec<StatusCause> {
    const MATCH: &str = "resourceVersionMatch";
    let version_match = query.text(MATCH);
    let mut problems = Vec::new();
    if initial_events.is_some() {
        if version_match != "NotOlderThan" {
            let problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            problems.push(forbidden(MATCH, problem));
        }
        if !streaming_lists {
            let problem = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            problems.push(forbidden("sendInitialEvents", problem));
        }
    }
    if !version_match.is_empty() {
        if initial_events.is_none() {
            let problem =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            problems.push(forbidden(MATCH, problem));
        }
        if version_match != "NotOlderThan" {
            problems.push(unsupported_match(version_match, "\"NotOlderThan\""));
        }
        if !query.text("continue").is_empty() {
            let problem = "resourceVersionMatch is forbidden when continue is provided";
            problems.push(forbidden(MATCH, problem));
        }
    }
    problems
}

fn forbidden(field: &str, problem: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!("Forbidden: {problem}"),
        field: field.to_owned(),
    }
}

fn unsupported_match(value: &str, supported: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: {value:?}: supported values: {supported}"),
        field: "resourceVersionMatch".to_owned(),
    }
}

/// Absent is 0: any version will do.
pub(super) fn parse_version(text: &str) -> Option<u64> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// The first form of the `Accept` header that this server can give. It gives no protobuf.
pub(super) fn negotiate(accept: &str, query: Query<'_>) -> Result<Form, Failure> {
    if accept.trim().is_empty() {
        return Ok(Form::Whole);
    }
    let forms = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let json = matches!(parts.next(), Some("application/json" | "application/*" | "*/*"));
        let (mut transformed, mut version) = (None, "v1");
        for part in parts {
            match part.split_once('=') {
                Some(("as", form)) => transformed = Some(form),
                Some(("v", given)) => version = given,
                _ => {}
            }
        }
        match transformed.filter(|_| json && version == "v1") {
            Some("Table") => Some(Form::Table(query.row_object())),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Form::MetadataOnly),
            Some(_) => None,
            None => (json && transformed.is_none()).then_some(Form::Whole),
        }
    });
    let refused = || match accept.contains("application/json") {
        true => Failure::form_not_acceptable(),
        false => Failure::not_acceptable(),
    };
    { forms }.next().ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Vec<(String, String)> {
        form_urlencoded::parse(text.as_bytes()).into_owned().collect()
    }

    fn list_version(text: &str) -> Result<ListVersion, u16> {
        let parsed = ListOptions::parse(Query(&query(text)));
        parsed.map(|options| options.version).map_err(|failure| failure.status.code)
    }

    #[test]
    fn a_list_is_as_new_as_its_version_and_match_say() {
        use ListVersion::{Exact, Newest, NotOlderThan};
        for (text, expected) in [
            ("", Ok(Newest)),
            ("resourceVersion=0", Ok(NotOlderThan(0))),
            ("resourceVersion=5", Ok(NotOlderThan(5))),
            ("resourceVersion=5&resourceVersionMatch=NotOlderThan", Ok(NotOlderThan(5))),
            ("resourceVersion=5&resourceVersionMatch=NotOlderThan&limit=2", Ok(NotOlderThan(5))),
            ("resourceVersion=5&resourceVersionMatch=Exact", Ok(Exact(5))),
            ("resourceVersion=5&limit=2", Ok(Exact(5))),
            ("resourceVersion=0&resourceVersionMatch=Exact", Err(422)),
            ("resourceVersionMatch=Exact", Err(422)),
            ("resourceVersion=5&resourceVersionMatch=Novel", Err(422)),
            ("resourceVersion=abc", Err(400)),
            ("resourceVersion=5&continue=x", Err(400)),
            ("sendInitialEvents=true", Err(422)),
        ] {
            assert_eq!(list_version(text), expected, "{text}");
        }
    }

    #[test]
    fn a_watch_begins_where_its_parameters_say() {
        let begin = |text: &str| {
            let parsed = WatchOptions::parse(Query(&query(text)), true);
            parsed.map(|options| options.begin).map_err(|failure| failure.status.code)
        };
        use ListVersion::{Newest, NotOlderThan};
        let initial = |version, marked_end| Ok(Begin::InitialEvents { version, marked_end });
        let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(begin("resourceVersion=5"), Ok(Begin::After(5)));
        assert_eq!(begin(""), initial(Newest, false));
        assert_eq!(
            begin("resourceVersion=0&allowWatchBookmarks=true"),
            initial(NotOlderThan(0), false)
        );
        assert_eq!(begin(&format!("{streaming}&allowWatchBookmarks=1")), initial(Newest, true));
        assert_eq!(
            begin(&format!("{streaming}&resourceVersion=5")),
            initial(NotOlderThan(5), false)
        );
        let without = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
        assert_eq!(begin(without), Ok(Begin::Now));
        assert_eq!(begin("sendInitialEvents=true"), Err(422));
        assert_eq!(begin("resourceVersionMatch=NotOlderThan"), Err(422));
        assert_eq!(begin("resourceVersion=abc"), Err(500));
    }

    #[test]
    fn the_first_form_that_can_be_given_is_given() {
        let negotiated = |accept: &str| negotiate(accept, Query(&[]));
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let old_table = "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let partial =
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(negotiated(table).unwrap(), Form::Table(RowObject::Metadata));
        assert_eq!(negotiated(old_table).unwrap(), Form::Whole);
        assert_eq!(negotiated(partial).unwrap(), Form::MetadataOnly);
        assert_eq!(negotiated("").unwrap(), Form::Whole);
        let protobuf = negotiated("application/vnd.kubernetes.protobuf").unwrap_err();
        assert_eq!(protobuf.status.code, 406);
    }
}
