//! `tests/faults.md` is complete, and names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FAULTS: u32 = 88;
/// What a row says that also waits for the suite that runs against a real cluster.
const LATER: &str = "real cluster suite (tests/cluster): ";
/// The rows that do.
const LATER_ROWS: [u32; 1] = [85];

/// One line of the catalogue.
struct Row {
    number: u32,
    fault: String,
    answer: String,
    tests: String,
}

impl Row {
    /// The tests it names, as file and function.
    fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let quoted = self.tests.split('`').skip(1).step_by(2);
        quoted.filter_map(|name| name.split_once("::"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("tests/faults.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [number, fault, answer, tests] = cells[..] else { return None };
        let [fault, answer, tests] = [fault, answer, tests].map(str::to_owned);
        Some(Row { number: number.parse().ok()?, fault, answer, tests })
    };
    text.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

/// The rows whose tests hold a text.
fn rows_with(text: &str) -> BTreeSet<u32> {
    rows().iter().filter(|row| row.tests.contains(text)).map(|row| row.number).collect()
}

#[test]
fn every_fault_is_in_the_catalogue_once() {
    let numbers: Vec<u32> = rows().iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=FAULTS).collect::<Vec<_>>());
    for row in rows() {
        assert!(!row.fault.is_empty() && !row.answer.is_empty(), "{}", row.number);
    }
}

#[test]
fn every_fault_has_a_test() {
    for row in rows() {
        assert!(row.named().next().is_some(), "{}: {}", row.number, row.fault);
    }
}

#[test]
fn every_test_of_the_catalogue_exists() {
    let mut missing = Vec::new();
    for row in rows() {
        for (file, function) in row.named() {
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            if !has_test(&text, function, file.starts_with("tests/bench/")) {
                missing.push(format!("{}: {file}::{function}", row.number));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Whether a text has a function of this name that is a test; a benchmark is its `main`.
fn has_test(text: &str, function: &str, is_benchmark: bool) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = format!("fn {function}(");
    let Some(at) = lines.iter().position(|line| line.contains(&declared)) else { return false };
    let mut above = lines[..at].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
    is_benchmark || above.any(|line| line.starts_with("#[") && line.contains("test"))
}

#[test]
fn what_is_left_to_a_later_suite_is_counted() {
    assert_eq!(rows_with(LATER), LATER_ROWS.into());
    assert_eq!(rows_with("tests/cluster"), LATER_ROWS.into(), "in these words");
}
