use super::failure::Failure;
use super::resources::{Origin, Served};
use super::stored::Stored;
use crate::object::{LabelSelector, ObjectKey};

/// Which objects of a resource a request is about.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) namespace: Option<String>,
    labels: LabelSelector,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: Field,
    value: String,
    must_equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// The position in [`Served::field_labels`].
    Other(usize),
}

impl Selection {
    pub(super) fn parse(
        served: &Served,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Self, Failure> {
        let labels = labels.parse().map_err(|error| {
            Failure::bad_request(format!("unable to parse requirement: {error}"))
        })?;
        let fields = fields.split(',').filter(|part| !part.is_empty());
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels,
            fields: fields.map(|part| requirement(served, part)).collect::<Result<_, _>>()?,
        })
    }

    /// Whether all objects of the namespace, or of the cluster, are meant.
    pub(super) fn selects_all(&self) -> bool {
        self.labels.selects_all() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, key: &ObjectKey, object: &Stored) -> bool {
        let here = self.namespace.is_none() || self.namespace.as_deref() == key.namespace();
        here && self.labels.matches(Some(&object.labels))
            && self.fields.iter().all(|requirement| requirement.holds(key, object))
    }
}

impl FieldRequirement {
    fn holds(&self, key: &ObjectKey, object: &Stored) -> bool {
        let value = match self.field {
            Field::Name => key.name(),
            Field::Namespace => key.namespace().unwrap_or_default(),
            Field::Other(position) => {
                object.fields.get(position).map(String::as_str).unwrap_or_default()
            }
        };
        (value == self.value) == self.must_equal
    }
}

fn requirement(served: &Served, text: &str) -> Result<FieldRequirement, Failure> {
    let unequal = text.split_once("!=").map(|parts| (parts, false));
    let equal =
        || text.split_once("==").or_else(|| text.split_once('=')).map(|parts| (parts, true));
    let Some(((label, value), must_equal)) = unequal.or_else(equal) else {
        let message = format!("invalid selector: '{text}'; can't understand '{text}'");
        return Err(Failure::bad_request(message));
    };
    Ok(FieldRequirement { field: field(served, label)?, value: value.to_owned(), must_equal })
}

fn field(served: &Served, label: &str) -> Result<Field, Failure> {
    let others = served.field_labels();
    match (label, others.iter().position(|&other| other == label)) {
        ("metadata.name", _) => Ok(Field::Name),
        ("metadata.namespace", _) => Ok(Field::Namespace),
        (_, Some(position)) => Ok(Field::Other(position)),
        // Kinds with labels of their own say it in other words than those without.
        _ if !others.is_empty() || served.origin == Origin::Custom => {
            Err(Failure::bad_request(format!("field label not supported: {label}")))
        }
        _ => Err(Failure::bad_request(format!(
            "\"{label}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ))),
    }
}
