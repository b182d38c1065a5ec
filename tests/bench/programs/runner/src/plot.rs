use std::fmt::Write as _;

use crate::figures::Outcome;
use crate::table::{RATIOS, YARDSTICKS};

/// Who is shown, in this order, and in which colour: neither is lost on white or on black.
const SHOWN: [(&str, &str, &str); 6] = [
    ("client-go", "list", "#8b949e"),
    ("kube-rs", "list", "#b08040"),
    ("kubeflect", "typed", "#6e7fd0"),
    ("kubeflect", "typed-pruned", "#5b93d6"),
    ("kubeflect", "lazy-pruned", "#3fa0a8"),
    ("kubeflect", "projection", "#3fa66a"),
];

const WIDTH: f64 = 760.0;
const LABELS: f64 = 190.0;
const VALUES: f64 = 60.0;
const BAR: f64 = 14.0;
const STEP: f64 = 19.0;
const HEAD: f64 = 34.0;

/// The main costs as parts of what kube-rs needs.
pub fn svg(outcomes: &[Outcome]) -> Result<String, String> {
    let (client, mode) = YARDSTICKS[0];
    let yardstick = outcomes.iter().find(|one| one.client == client && one.mode == mode);
    let yardstick = yardstick.ok_or_else(|| format!("there are no figures of {client} {mode}"))?;
    let shown: Vec<(&Outcome, &str)> = SHOWN
        .iter()
        .filter_map(|(client, mode, colour)| {
            let known = outcomes.iter().find(|one| one.client == *client && one.mode == *mode)?;
            Some((known, *colour))
        })
        .collect();
    let group = HEAD + STEP * shown.len() as f64;
    let height = group * RATIOS.len() as f64 + 16.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#7d8590\">\n\
         <title>What kubeflect and client-go need, as parts of what kube-rs needs: shorter is better</title>\n"
    );
    for (number, (name, figure, _)) in RATIOS.iter().enumerate() {
        let ratio = |one: &Outcome| figure(&one.figures) / figure(&yardstick.figures);
        let longest = shown.iter().map(|(one, _)| ratio(one)).fold(1.0, f64::max);
        let top = number as f64 * group;
        put(
            &mut text,
            4.0,
            top + 22.0,
            &format!("{name}, as part of {client}"),
            "font-weight=\"600\"",
        );
        for (place, (one, colour)) in shown.iter().enumerate() {
            let y = top + HEAD + place as f64 * STEP;
            let width = (WIDTH - LABELS - VALUES) * ratio(one) / longest;
            put(&mut text, 4.0, y + 11.5, &format!("{} {}", one.client, one.mode), "");
            writeln!(
                text,
                "<rect x=\"{LABELS}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>",
                width.max(1.0)
            )
            .expect("it is a String");
            put(&mut text, LABELS + width + 6.0, y + 11.5, &format!("{:.2}", ratio(one)), "");
        }
    }
    text.push_str("</svg>\n");
    Ok(text)
}

fn put(text: &mut String, x: f64, y: f64, words: &str, more: &str) {
    writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{words}</text>")
        .expect("it is a String");
}
