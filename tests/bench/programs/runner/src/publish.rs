//! `publish FOLDER JSON [--growth JSON] [--real JSON]` writes RESULTS.md and ratios.svg from what `side-by-side --json` wrote.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use runner::figures::Outcome;
use runner::{plot, report};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "say FILE [--growth FILE] [--real FILE]: what side-by-side --json wrote";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let outcomes = read(&arguments.next().ok_or(usage)?)?;
    let (mut growth, mut real) = (Vec::new(), Vec::new());
    while let Some(option) = arguments.next() {
        let more = read(&arguments.next().ok_or(usage)?)?;
        match option.as_str() {
            "--growth" => growth = more,
            "--real" => real = more,
            _ => return Err(usage.into()),
        }
    }
    fs::write(folder.join("RESULTS.md"), report::markdown(&outcomes, &growth, &real)?)?;
    fs::write(folder.join("ratios.svg"), plot::svg(&outcomes)?)?;
    Ok(())
}

fn read(path: &str) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
}
