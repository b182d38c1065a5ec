use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A `metadata.resourceVersion`: a position in the history of one resource of one cluster.
///
/// Two well-formed versions (decimal, no leading zero, not `0`) are ordered by length, then by bytes. Any other pair
/// is equal or not comparable: aggregated servers may count in ways of their own.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Arc<str>);

impl ResourceVersion {
    /// Takes a version as the server wrote it; an empty one is none.
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// As the server wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether order between this and another well-formed version means anything.
    pub fn is_well_formed(&self) -> bool {
        is_well_formed(&self.0)
    }

    /// How two versions as the server wrote them compare.
    pub fn compare(one: &str, other: &str) -> Option<Ordering> {
        if one == other {
            return Some(Ordering::Equal);
        }
        (is_well_formed(one) && is_well_formed(other))
            .then(|| one.len().cmp(&other.len()).then_with(|| one.cmp(other)))
    }
}

fn is_well_formed(version: &str) -> bool {
    // 39 digits hold any 128-bit number, the widest Kubernetes allows.
    let digits = version.as_bytes();
    matches!(digits.first(), Some(b'1'..=b'9'))
        && digits.len() <= 39
        && digits.iter().all(u8::is_ascii_digit)
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Self::compare(&self.0, &other.0)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text).unwrap()
    }

    #[test]
    fn an_empty_text_is_no_version() {
        assert_eq!(ResourceVersion::new(""), None);
    }

    #[test]
    fn well_formed_versions_compare_as_numbers() {
        assert!(version("9") < version("10"));
        assert!(version("100") > version("99"));
        assert!(
            version("18446744073709551616") > version("18446744073709551615"),
            "beyond 64 bits"
        );
        assert_eq!(version("7").partial_cmp(&version("7")), Some(Ordering::Equal));
    }

    #[test]
    fn other_versions_are_only_equal_or_not() {
        for odd in ["0", "007", "abc", "1a", "-1", "1.5"] {
            assert_eq!(version(odd).partial_cmp(&version("5")), None, "{odd}");
            assert_eq!(version(odd).partial_cmp(&version(odd)), Some(Ordering::Equal), "{odd}");
        }
    }
}
