use std::collections::BTreeMap;
use std::time::Duration;

use super::file::Section;
use super::units::duration;
use super::{FieldPath, SinkSettings};
use crate::object::{FieldSelector, LabelSelector};

/// What is reflected, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflectorSettings {
    /// The name of a kind, as kubectl takes it.
    pub kind: String,
    /// The group of the kind, if its name is to mean that of this group only.
    pub group: Option<String>,
    /// The only namespace, unless all.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
    /// What is kept of each object.
    pub representation: Representation,
    /// How often every object is told again, if ever.
    pub resync: Option<Duration>,
    /// By what objects are found, by name.
    pub indices: BTreeMap<String, FieldPath>,
    /// Who is told, by the names of sinks.
    pub sinks: Vec<String>,
}

/// What is kept of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Representation {
    /// All of it, read when it comes: what can not be read is kept apart.
    #[default]
    Dynamic,
    /// All of it as the server wrote it, read when somebody is told of it: a fraction of the memory.
    Lazy,
    /// Its metadata, which is all the server sends.
    Metadata,
}

const KIND: &str = "write the name of a kind as kubectl takes it, like \"pods\"";
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

impl ReflectorSettings {
    /// All objects of a kind, told to nobody.
    pub fn of(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            group: None,
            namespace: None,
            labels: None,
            fields: None,
            representation: Representation::default(),
            resync: None,
            indices: BTreeMap::new(),
            sinks: Vec::new(),
        }
    }

    /// The kind with its group: `deployments.apps`.
    pub fn full_kind(&self) -> String {
        match &self.group {
            Some(group) => format!("{}.{group}", self.kind),
            None => self.kind.clone(),
        }
    }

    /// Whether another one differs by its sinks at most.
    pub fn reflects_the_same(&self, other: &Self) -> bool {
        let without_sinks = |settings: &Self| Self { sinks: Vec::new(), ..settings.clone() };
        without_sinks(self) == without_sinks(other)
    }

    pub(super) fn read(section: &Section<'_>, sinks: &BTreeMap<String, SinkSettings>) -> Self {
        let name = |text: &str| is_name(text).then(|| text.to_owned());
        let kind = section.required("kind", KIND, |text| is_kind(text).then(|| text.to_owned()));
        let mut settings = Self::of(kind.unwrap_or_default());
        settings.group = section.text("group", "write the name of a group, like \"apps\"", name);
        let namespace = "write the name of one namespace, or \"\" for all";
        settings.namespace = section.text("namespace", namespace, name);
        settings.labels =
            section.text("labels", "write a label selector, like \"app=web,tier!=test\"", |text| {
                text.parse::<LabelSelector>().ok().map(|_| text.to_owned())
            });
        settings.fields = section.text(
            "fields",
            "write a field selector, like \"spec.nodeName=node-1\"",
            |text| text.parse::<FieldSelector>().ok().map(|_| text.to_owned()),
        );
        settings.representation =
            section
                .word("representation", "write \"dynamic\", \"lazy\" or \"metadata\"", |text| {
                    match text {
                        "dynamic" => Some(Representation::Dynamic),
                        "lazy" => Some(Representation::Lazy),
                        "metadata" => Some(Representation::Metadata),
                        _ => None,
                    }
                })
                .unwrap_or_default();
        let resync = "write a duration of at least 1s, like \"10m\", or \"never\"";
        settings.resync = section
            .word("resync", resync, |text| match text {
                "never" => Some(None),
                _ => duration(text).filter(|period| *period >= SHORTEST_RESYNC).map(Some),
            })
            .flatten();
        settings.read_indices(section);
        settings.read_sinks(section, sinks);
        section.finish();
        settings
    }

    fn read_indices(&mut self, section: &Section<'_>) {
        let metadata_only = self.representation == Representation::Metadata;
        let allowed = if metadata_only {
            "write a path below metadata, which is all that is kept, like \"metadata.labels['app']\""
        } else {
            "write a path, like \"spec.nodeName\" or \"metadata.labels['app']\""
        };
        let indices = section.map("indices", allowed, |text| {
            text.parse().ok().filter(|path: &FieldPath| !metadata_only || path.is_metadata())
        });
        self.indices = indices.into_iter().collect();
    }

    fn read_sinks(&mut self, section: &Section<'_>, sinks: &BTreeMap<String, SinkSettings>) {
        let names: Vec<&str> = sinks.keys().map(String::as_str).collect();
        let allowed = match names.as_slice() {
            [] => "there are no sinks: write [], or add one below [sinks]".to_owned(),
            names => format!("write a list with any of \"{}\"", names.join("\", \"")),
        };
        let known = |name: &str| sinks.contains_key(name).then(|| name.to_owned());
        self.sinks = section
            .list("sinks", &allowed, known)
            .unwrap_or_else(|| sinks.keys().cloned().collect());
        self.sinks.sort();
        self.sinks.dedup();
    }
}

fn is_name(text: &str) -> bool {
    !text.starts_with('.') && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}

fn is_kind(text: &str) -> bool {
    is_name(text) && text.starts_with(|c: char| c.is_ascii_alphabetic())
}
