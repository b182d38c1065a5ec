//! `/metrics`: the text format of Prometheus, and exactly the metrics that are documented.

use std::collections::BTreeSet;

use kubeflect::Options;
use kubeflect::telemetry::{METRICS, MetricKind};

use crate::support::{World, on_a_paused_clock};

#[test]
fn every_documented_metric_is_told_and_no_other() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a", "b"]).await;
        let answer = world.get("/metrics").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");

        let told: BTreeSet<&str> = samples(&answer.body).map(|sample| sample.0).collect();
        let documented: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(told, documented);
        for metric in METRICS {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            let head =
                format!("# HELP {0} {1}\n# TYPE {0} {kind}\n{0}", metric.name, metric.help.trim());
            assert!(answer.body.contains(&head), "{head}");
        }
    });
}

#[test]
fn metrics_tell_what_the_status_says() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a", "b"]).await;
        let body = world.get("/metrics").await.body;
        for line in [
            r#"kubeflect_reflector_objects{resource="pods"} 2"#,
            r#"kubeflect_reflector_synced{resource="pods"} 1"#,
            r#"kubeflect_reflector_phase{resource="pods",phase="watching"} 1"#,
            r#"kubeflect_reflector_phase{resource="pods",phase="backing off"} 0"#,
            r#"kubeflect_reflector_changes_total{resource="pods",event="added"} 2"#,
            r#"kubeflect_actor_up{resource="pods",actor="supervisor"} 1"#,
            r#"kubeflect_subscriber_pending_events{resource="pods",subscriber="1",name="dashboard"} 0"#,
        ] {
            assert!(body.lines().any(|told| told == line), "{line}\n{body}");
        }
    });
}

#[test]
fn no_two_samples_are_of_the_same_series() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        // Alike by all that is shown of them, but not the same.
        world.pods_with(&[], Options::all().page_size(7)).await;
        world.pods_with(&[], Options::all().labels("app in (web)").namespace("shop")).await;
        let body = world.get("/metrics").await.body;
        let series: Vec<&str> = body
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len());
        assert!(
            body.contains(r#"kubeflect_reflector_objects{resource="pods",copy="2"} 1"#),
            "{body}"
        );
        assert!(body.contains(r#"namespace="shop",labels="app in (web)""#), "{body}");
    });
}

/// Name and value of each sample; panics at whatever is not one.
fn samples(body: &str) -> impl Iterator<Item = (&str, f64)> {
    assert!(body.ends_with('\n'));
    body.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(labels.ends_with('}'), "{line}");
        (name, value.parse().unwrap())
    })
}
