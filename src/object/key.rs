use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Separates namespace and name inside a key. Sorts before every character a name may hold, so that keys sort by
/// namespace first, and one namespace is one contiguous range.
const SEPARATOR: char = '\0';

/// Which object of a kind: its namespace, if it has one, and its name.
///
/// Ordered by namespace, then name. Cloning costs a reference count: keys travel through queue, cache and indices.
#[doc(alias = "MetaNamespaceKeyFunc")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

/// A text that is not `name` or `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an object key: write name or namespace/name")]
pub struct ParseObjectKeyError(String);

impl ObjectKey {
    /// The key of an object in a namespace; an empty namespace is none.
    pub fn new(namespace: &str, name: &str) -> Self {
        let length = namespace.len() + SEPARATOR.len_utf8() + name.len();
        // Put together aside, so that the key itself is the only allocation. Kubernetes has none that is longer.
        let mut aside = [0; 320];
        if let Some(bytes) = aside.get_mut(..length) {
            bytes[..namespace.len()].copy_from_slice(namespace.as_bytes());
            bytes[length - name.len()..].copy_from_slice(name.as_bytes());
            // Made of two texts and a zero, it is one.
            if let Ok(text) = std::str::from_utf8(bytes) {
                return Self(text.into());
            }
        }
        Self(format!("{namespace}{SEPARATOR}{name}").into())
    }

    /// The key of an object without a namespace.
    pub fn cluster_scoped(name: &str) -> Self {
        Self::new("", name)
    }

    /// The namespace, or none for an object of the cluster.
    pub fn namespace(&self) -> Option<&str> {
        let (namespace, _) = self.parts();
        (!namespace.is_empty()).then_some(namespace)
    }

    /// The name. Empty only for an object the server should not have sent.
    pub fn name(&self) -> &str {
        self.parts().1
    }

    /// The bounds of all keys of one namespace: from the first, up to but without the second.
    pub(crate) fn bounds_of(namespace: &str) -> (Self, Self) {
        (Self::new(namespace, ""), Self(format!("{namespace}\u{1}").into()))
    }

    /// They sort as the keys do.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once(SEPARATOR).unwrap_or(("", &self.0))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl FromStr for ObjectKey {
    type Err = ParseObjectKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        if name.is_empty()
            || name.contains('/')
            || text.starts_with('/')
            || text.contains(SEPARATOR)
        {
            return Err(ParseObjectKeyError(text.to_owned()));
        }
        Ok(Self::new(namespace, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_kubectl_writes_it() {
        assert_eq!(ObjectKey::new("default", "web-0").to_string(), "default/web-0");
        assert_eq!(ObjectKey::cluster_scoped("node-1").to_string(), "node-1");
    }

    #[test]
    fn a_key_reads_back_what_it_wrote() {
        for text in ["default/web-0", "node-1"] {
            assert_eq!(text.parse::<ObjectKey>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_with_too_many_or_empty_parts_is_no_key() {
        for text in ["", "/", "a/", "/a", "a/b/c"] {
            assert!(text.parse::<ObjectKey>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_key_may_be_of_any_length() {
        for length in [1, 254, 318, 319, 320, 5000] {
            let name = "é".repeat(length);
            let key = ObjectKey::new("space", &name);
            assert_eq!((key.namespace(), key.name()), (Some("space"), name.as_str()));
        }
    }

    #[test]
    fn keys_sort_by_namespace_before_name() {
        let mut keys =
            [("a-b", "x"), ("a", "z"), ("a", "y"), ("", "n")].map(|(ns, n)| ObjectKey::new(ns, n));
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["n", "a/y", "a/z", "a-b/x"]);
    }

    #[test]
    fn the_bounds_of_a_namespace_hold_its_keys_and_no_others() {
        let (from, to) = ObjectKey::bounds_of("a");
        let within = |ns, name| (from.clone()..to.clone()).contains(&ObjectKey::new(ns, name));
        assert!(within("a", "x") && within("a", "zzz"));
        assert!(!within("a-b", "x") && !within("", "x") && !within("b", "x"));
    }
}
