use std::fmt::Write as _;

use crate::client::Absent;
use crate::figures::{Figures, Outcome};

/// A column: its head, and what it shows of a run.
type Column = (&'static str, fn(&Figures) -> f64, usize);

const COLUMNS: [Column; 12] = [
    ("CPU µs/object", |one| one.cpu_us_per_object, 1),
    ("CPU µs/event", |one| one.cpu_us_per_event, 1),
    ("RSS KB/object", |one| one.rss_bytes_per_object / 1e3, 2),
    ("peak MB", |one| one.peak_rss_bytes / 1e6, 0),
    ("synced s", |one| one.seconds_to_synced, 2),
    ("relist µs/object", |one| one.relist_cpu_us_per_object, 1),
    ("relist peak/steady", |one| one.relist_peak_over_steady, 2),
    ("events/s", |one| one.events_per_second, 0),
    ("told", |one| one.events_told, 2),
    ("p50 µs", |one| one.latency_us.p50, 0),
    ("p99 µs", |one| one.latency_us.p99, 0),
    ("p99.9 µs", |one| one.latency_us.p999, 0),
];

/// What is known of a client that a real server serves.
const REAL: [Column; 8] = [
    ("CPU µs/object", |one| one.cpu_us_per_object, 1),
    ("CPU µs/event", |one| one.cpu_us_per_event, 1),
    ("RSS KB/object", |one| one.rss_bytes_per_object / 1e3, 2),
    ("peak MB", |one| one.peak_rss_bytes / 1e6, 0),
    ("synced s", |one| one.seconds_to_synced, 2),
    ("events/s", |one| one.events_per_second, 0),
    ("told", |one| one.events_told, 2),
    ("CPU ns/read", |one| one.read_cpu_ns, 0),
];

const GROWTH: [Column; 6] = [
    ("CPU µs/object", |one| one.cpu_us_per_object, 1),
    ("CPU µs/event", |one| one.cpu_us_per_event, 1),
    ("told", |one| one.events_told, 2),
    ("paced CPU µs/event", |one| one.paced_cpu_us_per_event, 1),
    ("RSS KB/object", |one| one.rss_bytes_per_object / 1e3, 2),
    ("CPU ns/read", |one| one.read_cpu_ns, 0),
];

/// What is compared: the first and the last of the main costs.
pub const RATIOS: [Column; 4] = [
    ("CPU/event", |one| one.cpu_us_per_event, 2),
    ("CPU/object", |one| one.cpu_us_per_object, 2),
    ("RSS/object", |one| one.rss_bytes_per_object, 2),
    ("relist CPU", |one| one.relist_cpu_us_per_object, 2),
];

/// To whom we compare.
pub const YARDSTICKS: [(&str, &str); 2] = [("kube-rs", "list"), ("client-go", "list")];

/// All figures, then all ratios, as GitHub's tables, which read well as they are.
pub fn costs(outcomes: &[Outcome], absent: &[Absent]) -> String {
    let mut rows = vec![head(&COLUMNS)];
    rows.extend(outcomes.iter().map(|outcome| row(outcome, |figures| cells(&COLUMNS, figures))));
    let mut text = format!("\n{}", aligned(&rows));
    for (client, mode) in YARDSTICKS {
        let yardstick = outcomes.iter().find(|one| one.client == client && one.mode == mode);
        let Some(yardstick) = yardstick else { continue };
        let mut rows = vec![head(&RATIOS)];
        rows.extend(outcomes.iter().map(|outcome| {
            row(outcome, |figures| {
                let ratio = |(_, figure, _): &Column| {
                    format!("{:.3}", figure(figures) / figure(&yardstick.figures))
                };
                RATIOS.iter().map(ratio).collect()
            })
        }));
        write!(text, "\nAs parts of {client} {mode}:\n\n{}", aligned(&rows))
            .expect("it is a String");
    }
    text + &told(absent)
}

/// What may grow with the number of objects.
pub fn growth(outcomes: &[Outcome], absent: &[Absent]) -> String {
    let mut rows = vec![head(&GROWTH)];
    rows[0].insert(2, "objects".to_owned());
    rows.extend(outcomes.iter().map(|outcome| {
        let mut row = row(outcome, |figures| cells(&GROWTH, figures));
        row.insert(2, outcome.objects.to_string());
        row
    }));
    format!("\n{}", aligned(&rows)) + &told(absent)
}

/// All that a real server shows.
pub fn real(outcomes: &[Outcome], absent: &[Absent]) -> String {
    let mut rows = vec![head(&REAL)];
    rows.extend(outcomes.iter().map(|outcome| row(outcome, |figures| cells(&REAL, figures))));
    format!("\n{}", aligned(&rows)) + &told(absent)
}

fn told(absent: &[Absent]) -> String {
    absent.iter().map(|absent| format!("\n{absent}.\n")).collect()
}

fn head(columns: &[Column]) -> Vec<String> {
    let first = ["client".to_owned(), "mode".to_owned()];
    first.into_iter().chain(columns.iter().map(|(name, ..)| (*name).to_owned())).collect()
}

fn row(outcome: &Outcome, cells: impl Fn(&Figures) -> Vec<String>) -> Vec<String> {
    let first = [outcome.client.clone(), outcome.mode.clone()];
    first.into_iter().chain(cells(&outcome.figures)).collect()
}

fn cells(columns: &[Column], figures: &Figures) -> Vec<String> {
    columns.iter().map(|(_, figure, places)| format!("{:.*}", places, figure(figures))).collect()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default().max(3)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let space = " ".repeat(widths[column] - cell.chars().count());
            // Words to the left, numbers to the right.
            let cell = if column < 2 { format!("{cell}{space}") } else { format!("{space}{cell}") };
            write!(text, "| {cell} ").expect("it is a String");
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let line = "-".repeat(*width);
                let line =
                    if column < 2 { format!("| {line} ") } else { format!("| {}: ", &line[1..]) };
                text.push_str(&line);
            }
            text.push_str("|\n");
        }
    }
    text
}
