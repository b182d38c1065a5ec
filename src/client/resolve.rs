use super::{Discovery, ServedKind};

/// No kind has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server has no kind {name:?}{}{}", suggested(.suggestion), unasked(.unknown_groups))]
pub struct UnknownKind {
    /// The name that was asked for.
    pub name: String,
    /// The name most like it.
    pub suggestion: Option<String>,
    /// Groups that could not be asked about: it may be in one of these.
    pub unknown_groups: Vec<String>,
}

impl Discovery {
    /// The kind that kubectl means by a name: `pods`, `po`, `Pod`, `deployments.apps`, `deployments.v1.apps`.
    ///
    /// Where several groups have it, the first of [`kinds`](Self::kinds) is meant.
    ///
    /// # Errors
    /// When there is none, with the name most like it.
    pub fn resolve(&self, name: &str) -> Result<&ServedKind, UnknownKind> {
        let asked = name.trim();
        // A name in full counts more than a short one, and both count more than that of the kind.
        let ways = [ServedKind::is_called, ServedKind::is_called_for_short, ServedKind::is_of_kind];
        for candidate in Reading::of(asked) {
            for way in ways {
                let mut here = self.kinds().iter().filter(|served| candidate.allows(served));
                if let Some(served) = here.find(|served| way(served, candidate.resource)) {
                    return Ok(served);
                }
            }
        }
        let mut unknown_groups: Vec<String> =
            self.problems().iter().map(|problem| problem.group.clone()).collect();
        unknown_groups.dedup();
        let suggestion = self.nearest(asked);
        Err(UnknownKind { name: asked.chars().take(100).collect(), suggestion, unknown_groups })
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let name = name.to_lowercase();
        // Further away it is another word.
        let furthest = (name.chars().count() / 3).clamp(1, 4);
        let names = self.kinds().iter().flat_map(|served| {
            let kind = &served.kind;
            let short = served.short_names.iter().cloned();
            [
                kind.resource_name().into_owned(),
                kind.plural.clone().into_owned(),
                served.singular.clone(),
            ]
            .into_iter()
            .chain(short.filter(|short| short.len() > 2))
        });
        let distances =
            names.filter(|known| !known.is_empty()).map(|known| (distance(&name, &known), known));
        let nearest = distances.filter(|(distance, _)| *distance <= furthest).min();
        nearest.map(|(_, known)| known)
    }
}

impl ServedKind {
    fn is_called(&self, name: &str) -> bool {
        self.kind.plural.eq_ignore_ascii_case(name)
            || (!self.singular.is_empty() && self.singular.eq_ignore_ascii_case(name))
    }

    fn is_called_for_short(&self, name: &str) -> bool {
        self.short_names.iter().any(|short| short.eq_ignore_ascii_case(name))
    }

    fn is_of_kind(&self, name: &str) -> bool {
        self.kind.kind.eq_ignore_ascii_case(name)
    }
}

/// One way to read `a.b.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading<'a> {
    resource: &'a str,
    version: Option<&'a str>,
    group: Option<&'a str>,
}

impl<'a> Reading<'a> {
    /// `resource.version.group` before `resource.group`.
    fn of(name: &'a str) -> Vec<Self> {
        let Some((resource, rest)) = name.split_once('.') else {
            return vec![Self { resource: name, version: None, group: None }];
        };
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        vec![
            Self { resource, version: Some(version), group: Some(group) },
            Self { resource, version: None, group: Some(rest) },
        ]
    }

    fn allows(&self, served: &ServedKind) -> bool {
        self.version.is_none_or(|version| served.kind.version == version)
            && self.group.is_none_or(|group| served.kind.group == group)
    }
}

/// How many letters to add, drop, change or swap with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = usize::from(one[i - 1] != other[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + changed);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

fn suggested(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!(": did you mean {name}?")).unwrap_or_default()
}

fn unasked(groups: &[String]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    format!(" (could not be asked about: {})", groups.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_letters() {
        for (one, other, expected) in [
            ("pods", "pods", 0),
            ("pod", "pods", 1),
            ("pdos", "pods", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
