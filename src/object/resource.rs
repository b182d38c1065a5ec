use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{ClusterResourceScope, DynamicObject, NamespaceResourceScope};
use serde::de::DeserializeOwned;

use super::{Kind, ObjectJson, ObjectKey, Scope, read};

/// An object that can be reflected.
///
/// Every `k8s_openapi` type, every type with `#[derive(CustomResource)]`, [`DynamicObject`] and
/// `PartialObjectMeta<K>` is one already. Implement it for a struct of your own to keep only the fields you need:
///
/// ```
/// use kubeflect::object::{DecodeError, Kind, ObjectKey, Resource, read};
///
/// #[derive(serde::Deserialize)]
/// struct Placement { metadata: Metadata, spec: Spec }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Metadata { namespace: String, name: String, uid: String, resource_version: String }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec { node_name: Option<String> }
///
/// impl Resource for Placement {
///     fn key(&self) -> ObjectKey { ObjectKey::new(&self.metadata.namespace, &self.metadata.name) }
///     fn uid(&self) -> Option<&str> { Some(&self.metadata.uid) }
///     fn resource_version(&self) -> Option<&str> { Some(&self.metadata.resource_version) }
///     fn decode(json: &[u8], _: &Kind) -> Result<Self, DecodeError> { read(json) }
/// }
/// ```
pub trait Resource: Send + Sync + Sized + 'static {
    /// Which object this is.
    fn key(&self) -> ObjectKey;

    /// What tells it from an earlier object of the same name.
    fn uid(&self) -> Option<&str>;

    /// The version of this state.
    fn resource_version(&self) -> Option<&str>;

    /// Reads one object from JSON that the server sent for `kind`.
    ///
    /// # Errors
    /// When the JSON is not such an object.
    fn decode(json: &[u8], kind: &Kind) -> Result<Self, DecodeError>;

    /// Reads one object of which the head has been read. What needs no more than that need not read the rest.
    ///
    /// # Errors
    /// When the JSON is not such an object.
    fn decode_object(object: ObjectJson<'_>) -> Result<Self, DecodeError> {
        Self::decode(object.json(), object.kind())
    }

    /// The labels, for selecting from the cache. None if the type does not keep them.
    fn labels(&self) -> Option<Cow<'_, BTreeMap<String, String>>> {
        None
    }

    /// All metadata, for those who show objects to people. None if the type does not keep it.
    fn object_meta(&self) -> Option<Cow<'_, ObjectMeta>> {
        None
    }

    /// `apiVersion` and `kind` as the object itself states them, where the type does not settle it.
    fn stated_type(&self) -> Option<(&str, &str)> {
        None
    }

    /// Whether the server should send metadata only.
    fn metadata_only() -> bool {
        false
    }
}

/// Whether two states are of one object, not of two that had the same name one after the other.
pub(crate) fn is_same_object<K: Resource>(one: &K, other: &K) -> bool {
    match (one.uid(), other.uid()) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// A [`Resource`] whose [`Kind`] is known when compiling.
pub trait StaticKind: Resource {
    /// Its kind.
    fn static_kind() -> Kind;
}

/// An object could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(describe(&error))
    }
}

impl DecodeError {
    /// With a reason of your own.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl<K> Resource for K
where
    K: kube_core::Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn key(&self) -> ObjectKey {
        let meta = self.meta();
        ObjectKey::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    fn uid(&self) -> Option<&str> {
        self.meta().uid.as_deref()
    }

    fn resource_version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }

    fn decode(json: &[u8], kind: &Kind) -> Result<Self, DecodeError> {
        let mut object: Self = read(json)?;
        // Lists of built-in kinds leave the type of their items out.
        if let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() {
            dynamic.types.get_or_insert_with(|| kube_core::TypeMeta {
                api_version: kind.api_version().into_owned(),
                kind: kind.kind.clone().into_owned(),
            });
        }
        Ok(object)
    }

    fn labels(&self) -> Option<Cow<'_, BTreeMap<String, String>>> {
        let labels = self.meta().labels.as_ref();
        Some(labels.map_or_else(|| Cow::Owned(BTreeMap::new()), Cow::Borrowed))
    }

    fn object_meta(&self) -> Option<Cow<'_, ObjectMeta>> {
        Some(Cow::Borrowed(self.meta()))
    }

    fn stated_type(&self) -> Option<(&str, &str)> {
        let dynamic = (self as &dyn Any).downcast_ref::<DynamicObject>()?;
        dynamic.types.as_ref().map(|types| (types.api_version.as_str(), types.kind.as_str()))
    }

    fn metadata_only() -> bool {
        <K as kube_core::Resource>::metadata_api()
    }
}

impl<K> StaticKind for K
where
    K: kube_core::Resource<DynamicType = ()> + Resource,
{
    fn static_kind() -> Kind {
        let scope = TypeId::of::<K::Scope>();
        let scope = if scope == TypeId::of::<NamespaceResourceScope>() {
            Scope::Namespaced
        } else if scope == TypeId::of::<ClusterResourceScope>() {
            Scope::Cluster
        } else {
            Scope::Unknown
        };
        Kind::new(
            K::group(&()).into_owned(),
            K::version(&()).into_owned(),
            K::kind(&()).into_owned(),
            K::plural(&()).into_owned(),
            scope,
        )
    }
}

/// What is wrong with some JSON, without what serde would quote of it: that may be part of a Secret.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Of these, the text names what is in our types or nothing at all.
    let names_no_input =
        message.starts_with("missing field") || message.starts_with("duplicate field");
    if names_no_input || !error.is_data() {
        return message;
    }
    let place = format!("at line {} column {}", error.line(), error.column());
    match message.split_once(", expected ") {
        Some((_, expected)) => {
            let expected =
                expected.rsplit_once(" at line ").map_or(expected, |(expected, _)| expected);
            format!("expected {expected} {place}")
        }
        None => format!("not as expected {place}"),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};
    use kube_core::PartialObjectMeta;

    use super::*;

    const POD: &[u8] =
        br#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7","labels":{"app":"web"}}}"#;

    #[test]
    fn kubernetes_types_are_resources_as_they_are() {
        let pod = Pod::decode(POD, &Pod::static_kind()).unwrap();
        assert_eq!(pod.key(), ObjectKey::new("b", "a"));
        assert_eq!((Resource::uid(&pod), Resource::resource_version(&pod)), (Some("u"), Some("7")));
        assert_eq!(Resource::labels(&pod).unwrap()["app"], "web");
    }

    #[test]
    fn a_type_knows_its_kind_and_scope() {
        assert_eq!(Pod::static_kind(), Kind::new("", "v1", "Pod", "pods", Scope::Namespaced));
        assert_eq!(Node::static_kind().scope, Scope::Cluster);
        assert!(PartialObjectMeta::<Pod>::metadata_only() && !Pod::metadata_only());
        assert_eq!(PartialObjectMeta::<Pod>::static_kind().plural, "pods");
    }

    #[test]
    fn a_dynamic_object_from_a_list_learns_its_type() {
        let kind = Pod::static_kind();
        let pod = DynamicObject::decode(POD, &kind).unwrap();
        assert_eq!(pod.stated_type(), Some(("v1", "Pod")));
    }

    #[test]
    fn a_derived_custom_resource_is_a_resource_as_it_is() {
        #[derive(
            kube::CustomResource,
            Clone,
            Debug,
            serde::Deserialize,
            serde::Serialize,
            schemars::JsonSchema,
        )]
        #[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
        struct WidgetSpec {
            size: u32,
        }
        let widget = Widget::decode(
            br#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":3}}"#,
            &Widget::static_kind(),
        )
        .unwrap();
        assert_eq!((widget.key().to_string(), widget.spec.size), ("w".to_owned(), 3));
        assert_eq!(Widget::static_kind().resource_name(), "widgets.example.com");
    }

    #[test]
    fn a_decode_error_does_not_quote_the_object() {
        for secret in [
            r#"{"metadata":{"name":["hunter2"]}}"#,
            r#"{"metadata":{"generation":"hunter2"}}"#,
            r#"{"metadata":{"generation":"x\"hunter2\"y, expected"}}"#,
            r#"{"metadata":{"name":77312}}"#,
        ] {
            let error =
                Pod::decode(secret.as_bytes(), &Pod::static_kind()).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains("77312"), "{error}");
            assert!(
                error.starts_with("expected ") && error.contains("at line 1 column "),
                "{error}"
            );
        }
    }
}
