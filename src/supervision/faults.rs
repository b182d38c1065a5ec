use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Makes actors panic where a test wants it.
///
/// Actors call [`hit`](Self::hit) where a panic would hurt: at the start of a handler and at its end. Without a plan,
/// the default, that costs the test of one pointer.
///
/// ```
/// use kubeflect::supervision::Faults;
///
/// let faults = Faults::panic_at("publisher", "Publish", 2);
/// faults.hit("publisher", "Publish");
/// assert_eq!(faults.fired(), 0);
/// let second = std::panic::catch_unwind({ let faults = faults.clone(); move || faults.hit("publisher", "Publish") });
/// assert!(second.is_err());
/// assert_eq!(faults.fired(), 1);
/// assert_eq!(faults.seen(), [("publisher", "Publish", 2)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Faults(Option<Arc<Mutex<Points>>>);

/// The points by actor and message.
type Points = BTreeMap<(&'static str, &'static str), Point>;

#[derive(Debug, Default)]
struct Point {
    hits: usize,
    /// The hits to panic at, counted from 1.
    planned: Vec<usize>,
    fired: usize,
}

impl Faults {
    /// Never panics and counts nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Never panics, but counts: so a test can find all points there are.
    pub fn recording() -> Self {
        Self(Some(Arc::default()))
    }

    /// Panics at the `nth` time, counted from 1, that `actor` is at the point `message`.
    pub fn panic_at(actor: &'static str, message: &'static str, nth: usize) -> Self {
        Self::recording().and_panic_at(actor, message, nth)
    }

    /// Panics there too.
    #[must_use]
    pub fn and_panic_at(self, actor: &'static str, message: &'static str, nth: usize) -> Self {
        let points = self.0.unwrap_or_default();
        lock(&points).entry((actor, message)).or_default().planned.push(nth);
        Self(Some(points))
    }

    /// `actor` is at the point `message`.
    ///
    /// # Panics
    ///
    /// If that was planned.
    #[inline]
    pub fn hit(&self, actor: &'static str, message: &'static str) {
        if let Some(points) = &self.0 {
            hit(points, actor, message);
        }
    }

    /// How many planned panics have happened.
    pub fn fired(&self) -> usize {
        self.0.as_ref().map_or(0, |points| lock(points).values().map(|point| point.fired).sum())
    }

    /// Every point that was hit, as actor, message and how often, in order of their names.
    pub fn seen(&self) -> Vec<(&'static str, &'static str, usize)> {
        let Some(points) = &self.0 else { return Vec::new() };
        let points = lock(points);
        let hit = points.iter().filter(|(_, point)| point.hits > 0);
        hit.map(|((actor, message), point)| (*actor, *message, point.hits)).collect()
    }
}

#[cold]
#[expect(clippy::panic, reason = "a panic is what was asked for")]
fn hit(points: &Mutex<Points>, actor: &'static str, message: &'static str) {
    let mut points = lock(points);
    let point = points.entry((actor, message)).or_default();
    point.hits += 1;
    let nth = point.hits;
    if point.planned.contains(&nth) {
        point.fired += 1;
        drop(points);
        panic!("planned fault: {actor} at {message}, time {nth}");
    }
}

/// The counts stay right whatever panics: each is written in one step.
fn lock(points: &Mutex<Points>) -> MutexGuard<'_, Points> {
    points.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::exit::caught;
    use crate::supervision::tests::silence_expected_panics;

    #[test]
    fn without_a_plan_nothing_is_kept() {
        let faults = Faults::none();
        faults.hit("store", "Apply");
        assert_eq!((faults.fired(), faults.seen()), (0, vec![]));
    }

    #[test]
    fn only_the_planned_hits_panic() {
        silence_expected_panics();
        let faults = Faults::panic_at("store", "Apply", 2).and_panic_at("store", "Apply/end", 1);
        let clone = faults.clone();
        let panics = |message| caught(|| clone.hit("store", message)).is_err();
        assert_eq!([panics("Apply"), panics("Apply"), panics("Apply")], [false, true, false]);
        assert!(panics("Apply/end") && !panics("Apply/end") && !panics("Resync"));
        assert_eq!(faults.fired(), 2, "clones share one plan");
        assert_eq!(
            faults.seen(),
            [("store", "Apply", 3), ("store", "Apply/end", 2), ("store", "Resync", 1)]
        );
    }

    #[test]
    fn a_planned_panic_says_where() {
        silence_expected_panics();
        let faults = Faults::panic_at("store", "Apply", 1);
        let text = caught(|| faults.hit("store", "Apply")).unwrap_err();
        assert_eq!(text, "planned fault: store at Apply, time 1");
    }
}
