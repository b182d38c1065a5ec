use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::options::{Options, Server};

/// What one run of one client cost.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    pub cpu_us_per_object: f64,
    pub cpu_us_per_event: f64,
    pub rss_bytes_per_object: f64,
    pub peak_rss_bytes: f64,
    pub seconds_to_synced: f64,
    pub relist_cpu_us_per_object: f64,
    pub latency_us: Latency,
    pub events_per_second: f64,
    /// Of the changes pushed, how many the handler was told one by one.
    pub events_told: f64,
    pub paced_cpu_us_per_event: f64,
    pub rss_after_sync: f64,
    pub rss_after_events: f64,
    pub relist_peak_rss_bytes: f64,
    pub relist_peak_over_steady: f64,
    pub read_cpu_ns: f64,
    pub object_bytes: f64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
}

/// The medians of one client in one mode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub client: String,
    pub mode: String,
    #[serde(flatten)]
    pub figures: Figures,
    pub client_version: String,
    #[serde(default)]
    pub server: Server,
    pub objects: usize,
    pub events: usize,
    pub rounds: usize,
    pub shape: String,
    pub date: String,
    pub machine: String,
}

impl Outcome {
    pub fn new(client: &Client, objects: usize, rounds: &[Figures], options: &Options) -> Self {
        Self {
            client: client.name.to_owned(),
            mode: client.mode.clone(),
            figures: Figures::median(rounds),
            client_version: client.version.clone(),
            server: options.server,
            objects,
            events: options.events,
            rounds: rounds.len(),
            shape: options.shape.clone(),
            date: options.date.clone(),
            machine: crate::machine::kind(),
        }
    }
}

impl Figures {
    fn median(rounds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            let median = match values.len() % 2 {
                0 => (values[middle - 1] + values[middle]) / 2.0,
                _ => values[middle],
            };
            (median * 1e4).round() / 1e4
        };
        Self {
            cpu_us_per_object: of(|one| one.cpu_us_per_object),
            cpu_us_per_event: of(|one| one.cpu_us_per_event),
            rss_bytes_per_object: of(|one| one.rss_bytes_per_object),
            peak_rss_bytes: of(|one| one.peak_rss_bytes),
            seconds_to_synced: of(|one| one.seconds_to_synced),
            relist_cpu_us_per_object: of(|one| one.relist_cpu_us_per_object),
            latency_us: Latency {
                p50: of(|one| one.latency_us.p50),
                p99: of(|one| one.latency_us.p99),
                p999: of(|one| one.latency_us.p999),
            },
            events_per_second: of(|one| one.events_per_second),
            events_told: of(|one| one.events_told),
            paced_cpu_us_per_event: of(|one| one.paced_cpu_us_per_event),
            rss_after_sync: of(|one| one.rss_after_sync),
            rss_after_events: of(|one| one.rss_after_events),
            relist_peak_rss_bytes: of(|one| one.relist_peak_rss_bytes),
            relist_peak_over_steady: of(|one| one.relist_peak_over_steady),
            read_cpu_ns: of(|one| one.read_cpu_ns),
            object_bytes: of(|one| one.object_bytes),
        }
    }

    pub fn brief(&self) -> String {
        format!(
            "{:.1} µs an object, {:.1} µs an event, {:.1} KB an object, {:.1} µs relisted",
            self.cpu_us_per_object,
            self.cpu_us_per_event,
            self.rss_bytes_per_object / 1e3,
            self.relist_cpu_us_per_object
        )
    }
}
