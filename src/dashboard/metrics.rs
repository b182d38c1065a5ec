use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::Dashboard;
use crate::reflector::{Freshness, Phase, ReflectorStatus};
use crate::supervision::MemberState;
use crate::telemetry::{self as names, METRICS, Metric, MetricKind};

const PHASES: [Phase; 9] = [
    Phase::Starting,
    Phase::Listing,
    Phase::StreamingList,
    Phase::OpeningWatch,
    Phase::Watching,
    Phase::Discovering,
    Phase::BackingOff,
    Phase::Failed,
    Phase::Stopped,
];

impl Dashboard {
    /// In the text format of Prometheus.
    pub(super) fn metrics(&self) -> String {
        let mut samples = Samples::default();
        samples.add(names::BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        samples.add(names::STREAMS, &[], self.inner.streams.load(Ordering::Relaxed) as f64);
        let mut seen = BTreeMap::new();
        for status in self.inner.runtime.status() {
            samples.common = labels_of(&status, &mut seen);
            samples.reflector(&status);
        }
        samples.write()
    }
}

/// What tells a reflector from the others.
fn labels_of(
    status: &ReflectorStatus,
    seen: &mut BTreeMap<Vec<(&'static str, String)>, usize>,
) -> Vec<(&'static str, String)> {
    let mut labels = vec![("resource", status.kind.to_string())];
    labels.extend(status.name.iter().map(|name| ("reflector", name.to_string())));
    let selection = &status.selection;
    let parts = [
        ("namespace", &selection.namespace),
        ("labels", &selection.labels),
        ("fields", &selection.fields),
    ];
    for (name, value) in parts {
        labels.extend(value.iter().map(|value| (name, value.clone())));
    }
    let copies = seen.entry(labels.clone()).or_default();
    *copies += 1;
    if *copies > 1 {
        labels.push(("copy", copies.to_string()));
    }
    labels
}

/// The lines of each metric: they have to stand together.
#[derive(Default)]
struct Samples {
    lines: BTreeMap<&'static str, String>,
    common: Vec<(&'static str, String)>,
}

impl Samples {
    fn reflector(&mut self, status: &ReflectorStatus) {
        for phase in PHASES {
            let value = f64::from(u8::from(phase == status.phase));
            self.add(names::PHASE, &[("phase", &phase.to_string())], value);
        }
        let stale = match &status.freshness {
            Freshness::Stale { since, .. } => {
                Instant::now().saturating_duration_since(*since).as_secs_f64()
            }
            Freshness::Fresh | Freshness::Unknown => 0.0,
        };
        self.add(names::SYNCED, &[], f64::from(u8::from(status.synced)));
        self.add(names::FRESH, &[], f64::from(u8::from(status.freshness == Freshness::Fresh)));
        self.add(names::STALE_SECONDS, &[], stale);
        for (help, needed) in [("no", false), ("yes", true)] {
            let is_so = status.condition.as_ref().is_some_and(|it| it.needs_help() == needed);
            self.add(names::CONDITION, &[("help", help)], f64::from(u8::from(is_so)));
        }
        self.add(names::OBJECTS, &[], status.objects as f64);
        self.add(names::QUEUE, &[], status.queue as f64);
        let quarantined = status.quarantined.objects.len() as f64;
        self.add(names::QUARANTINED, &[], quarantined + status.quarantined.others as f64);
        self.add(names::FAILURES, &[], status.requests.failures as f64);
        self.add(names::AUDIT_DIFFERENCES, &[], status.audits.differences as f64);
        for (metric, label, counts) in counters(status) {
            for (value, count) in counts {
                self.add(metric, &[(label, value)], count as f64);
            }
        }
        self.actors_and_subscribers(status);
    }

    fn actors_and_subscribers(&mut self, status: &ReflectorStatus) {
        for actor in &status.actors {
            let labels: &[_] = &[("actor", &*actor.name)];
            let is_up = u8::from(actor.state == MemberState::Running);
            self.add(names::ACTOR_UP, labels, f64::from(is_up));
            self.add(names::ACTOR_RESTARTS, labels, actor.restarts as f64);
        }
        for subscriber in &status.subscribers {
            let id = subscriber.id.to_string();
            let labels: &[_] = &[
                ("subscriber", id.as_str()),
                ("name", subscriber.name.as_deref().unwrap_or_default()),
            ];
            self.add(names::SUBSCRIBER_PENDING, labels, subscriber.pending as f64);
            self.add(names::SUBSCRIBER_DELIVERED, labels, subscriber.delivered as f64);
            self.add(names::SUBSCRIBER_COALESCED, labels, subscriber.coalesced as f64);
        }
    }

    fn add(&mut self, metric: Metric, labels: &[(&str, &str)], value: f64) {
        let common = self.common.iter().map(|(name, value)| (*name, value.as_str()));
        let labels: Vec<String> = common
            .chain(labels.iter().copied())
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let lines = self.lines.entry(metric.name).or_default();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(lines, "{}{labels} {value}", metric.name).expect("a String takes what is written");
    }

    fn write(&self) -> String {
        let mut text = String::new();
        for Metric { name, kind, help } in METRICS {
            let Some(lines) = self.lines.get(name) else { continue };
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            text += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n{lines}", help.trim());
        }
        text
    }
}

/// Metric, label, and what was counted by its values.
type Counter = (Metric, &'static str, Vec<(&'static str, u64)>);

fn counters(status: &ReflectorStatus) -> [Counter; 4] {
    let ReflectorStatus { changes, requests, oddities, audits, .. } = status;
    [
        (
            names::CHANGES,
            "event",
            vec![
                ("added", changes.added),
                ("updated", changes.updated),
                ("deleted", changes.deleted),
                ("resynced", changes.resynced),
            ],
        ),
        (names::REQUESTS, "verb", vec![("list", requests.lists), ("watch", requests.watches)]),
        (
            names::ODDITIES,
            "oddity",
            vec![
                ("late_event", oddities.late_events),
                ("late_bookmark", oddities.late_bookmarks),
                ("resurrection", oddities.resurrections),
                ("older_list", oddities.older_lists),
                ("rewind", oddities.rewinds),
                ("unknown_event", oddities.unknown_events),
            ],
        ),
        (names::AUDITS, "result", vec![("done", audits.done), ("skipped", audits.skipped)]),
    ]
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_can_not_break_out_of_its_quotes() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
