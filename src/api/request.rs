use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::object::ResourceVersion;

/// Which objects of a kind. The same for every list and watch of one reflector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Selection {
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// `labelSelector`, as the server takes it.
    pub labels: Option<String>,
    /// `fieldSelector`, as the server takes it.
    pub fields: Option<String>,
}

/// What is asked of a kind, as RBAC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// All objects.
    List,
    /// Changes. A streamed list is one too.
    Watch,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListRequest {
    /// Which objects.
    pub selection: Arc<Selection>,
    /// At most so many objects; none asks for all at once.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub continue_token: Option<String>,
    /// How new the answer must be; none asks for the newest.
    pub version: Option<VersionMatch>,
}

/// How new a list must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionMatch {
    /// At this version or a later one.
    NotOlderThan(ResourceVersion),
    /// At exactly this version.
    Exact(ResourceVersion),
}

/// One watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchRequest {
    /// Which objects.
    pub selection: Arc<Selection>,
    /// Where the stream begins.
    pub start: WatchStart,
    /// When the server is to end the stream.
    pub timeout: Duration,
    /// Whether to be told of versions at which nothing changed.
    pub bookmarks: bool,
}

/// Where a watch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchStart {
    /// With the first change after a version.
    After(ResourceVersion),
    /// With all objects, then a bookmark that says so, then changes.
    #[doc(alias("sendInitialEvents", "WatchList"))]
    InitialEvents {
        /// How new the objects must be; none asks for the newest.
        not_older_than: Option<ResourceVersion>,
    },
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Watch => "watch",
        })
    }
}

impl ListRequest {
    /// The query of the request, unescaped.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = self.selection.query();
        if let Some(limit) = self.limit {
            query.push(("limit", limit.to_string()));
        }
        // The server refuses a version beside a continue token: the token holds one.
        if let Some(token) = &self.continue_token {
            query.push(("continue", token.clone()));
        } else if let Some(version) = &self.version {
            let (version, name) = match version {
                VersionMatch::NotOlderThan(version) => (version, "NotOlderThan"),
                VersionMatch::Exact(version) => (version, "Exact"),
            };
            query.push(("resourceVersion", version.to_string()));
            query.push(("resourceVersionMatch", name.to_owned()));
        }
        query
    }
}

impl WatchRequest {
    /// The query of the request, unescaped.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = self.selection.query();
        query.push(("watch", "true".to_owned()));
        match &self.start {
            WatchStart::After(version) => query.push(("resourceVersion", version.to_string())),
            WatchStart::InitialEvents { not_older_than } => {
                query.push(("sendInitialEvents", "true".to_owned()));
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
                if let Some(version) = not_older_than {
                    query.push(("resourceVersion", version.to_string()));
                }
            }
        }
        if self.bookmarks {
            query.push(("allowWatchBookmarks", "true".to_owned()));
        }
        query.push(("timeoutSeconds", self.timeout.as_secs().to_string()));
        query
    }
}

impl Selection {
    fn query(&self) -> Vec<(&'static str, String)> {
        let labels = self.labels.iter().map(|labels| ("labelSelector", labels.clone()));
        let fields = self.fields.iter().map(|fields| ("fieldSelector", fields.clone()));
        labels.chain(fields).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(query: Vec<(&'static str, String)>) -> String {
        let pairs: Vec<String> =
            query.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join("&")
    }

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text).unwrap()
    }

    #[test]
    fn a_list_says_how_new_it_must_be() {
        let request = ListRequest {
            limit: Some(500),
            version: Some(VersionMatch::NotOlderThan(version("7"))),
            ..ListRequest::default()
        };
        assert_eq!(
            written(request.query()),
            "limit=500&resourceVersion=7&resourceVersionMatch=NotOlderThan"
        );
    }

    #[test]
    fn a_continued_list_sends_no_version_pg_3() {
        let request = ListRequest {
            limit: Some(500),
            continue_token: Some("t".to_owned()),
            version: Some(VersionMatch::Exact(version("7"))),
            ..ListRequest::default()
        };
        assert_eq!(written(request.query()), "limit=500&continue=t");
    }

    #[test]
    fn a_watch_resumes_after_a_version() {
        let request = WatchRequest {
            selection: Arc::new(Selection {
                labels: Some("app=web".to_owned()),
                ..Selection::default()
            }),
            start: WatchStart::After(version("7")),
            timeout: Duration::from_secs(300),
            bookmarks: true,
        };
        assert_eq!(
            written(request.query()),
            "labelSelector=app=web&watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300"
        );
    }

    #[test]
    fn a_streaming_list_asks_for_initial_events() {
        let request = WatchRequest {
            selection: Arc::default(),
            start: WatchStart::InitialEvents { not_older_than: None },
            timeout: Duration::from_secs(300),
            bookmarks: true,
        };
        assert_eq!(
            written(request.query()),
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
             &allowWatchBookmarks=true&timeoutSeconds=300"
        );
    }
}
