//! Every metric there is, once: its name, its type, and what it means. They are part of the interface.
//!
//! All of one reflector have the label `resource` (`pods`, `deployments.apps`), `reflector` if it has a name, and
//! `namespace`, `labels` and `fields` where it reflects only some objects of its kind. Should two reflectors look alike
//! by these, the second has `copy="2"`.

/// One metric, as Prometheus is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name. Ends with `_total` if and only if it is a counter.
    pub name: &'static str,
    /// Whether it only ever goes up.
    pub kind: MetricKind,
    /// What it means.
    pub help: &'static str,
}

/// Whether a metric only ever goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It does, until the process ends.
    Counter,
    /// It goes up and down.
    Gauge,
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $constant:ident = $kind:ident $name:literal;)+) => {
        $(
            $(#[doc = $help])+
            pub const $constant: Metric =
                Metric { name: $name, kind: MetricKind::$kind, help: concat!($($help),+) };
        )+

        /// All of them, in the order they are told.
        pub const METRICS: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    /// Always 1. The label version is that of kubeflect.
    BUILD_INFO = Gauge "kubeflect_build_info";
    /// 1 for the phase a reflector is in, 0 for all others.
    PHASE = Gauge "kubeflect_reflector_phase";
    /// 1 once the first list has been applied.
    SYNCED = Gauge "kubeflect_reflector_synced";
    /// 1 while the server has proved within 150 s that the cache has all it has.
    FRESH = Gauge "kubeflect_reflector_fresh";
    /// For how long changes may have been missed; 0 while none may.
    STALE_SECONDS = Gauge "kubeflect_reflector_stale_seconds";
    /// 1 while something stands in the way. The label help is yes if it will not pass by itself.
    CONDITION = Gauge "kubeflect_reflector_condition";
    /// How many objects are cached.
    OBJECTS = Gauge "kubeflect_reflector_objects";
    /// How many changes wait to be applied.
    QUEUE = Gauge "kubeflect_reflector_queue_depth";
    /// Changes of the cache by event: added, updated, deleted or resynced.
    CHANGES = Counter "kubeflect_reflector_changes_total";
    /// Lists and watches begun, by verb.
    REQUESTS = Counter "kubeflect_reflector_requests_total";
    /// Lists and watches that failed.
    FAILURES = Counter "kubeflect_reflector_failures_total";
    /// Objects the server has but that could not be taken.
    QUARANTINED = Gauge "kubeflect_reflector_quarantined_objects";
    /// What the server told that can not be, or should not, by oddity.
    ODDITIES = Counter "kubeflect_reflector_oddities_total";
    /// Comparisons of the cache with the server, by result: done or skipped.
    AUDITS = Counter "kubeflect_reflector_audits_total";
    /// Objects that a comparison found to differ.
    AUDIT_DIFFERENCES = Counter "kubeflect_reflector_audit_differences_total";
    /// 1 while an actor runs, 0 while it waits to be restarted.
    ACTOR_UP = Gauge "kubeflect_actor_up";
    /// How often an actor was restarted.
    ACTOR_RESTARTS = Counter "kubeflect_actor_restarts_total";
    /// Events a subscriber has not been sent yet.
    SUBSCRIBER_PENDING = Gauge "kubeflect_subscriber_pending_events";
    /// Events a subscriber was sent.
    SUBSCRIBER_DELIVERED = Counter "kubeflect_subscriber_delivered_total";
    /// Events that were joined with an earlier one because their subscriber was slow.
    SUBSCRIBER_COALESCED = Counter "kubeflect_subscriber_coalesced_total";
    /// Browsers that follow the live stream.
    STREAMS = Gauge "kubeflect_dashboard_streams";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_as_prometheus_wants_them() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for Metric { name, kind, help } in METRICS {
            assert!(name.starts_with("kubeflect_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
            assert!(!help.trim().is_empty(), "{name}");
        }
    }
}
