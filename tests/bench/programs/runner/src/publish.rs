//! `publish FOLDER JSON…` writes RESULTS.md and ratios.svg from what `side-by-side --json` wrote. What is in none of the
//! files stays as it was.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use runner::figures::Outcome;
use runner::{plot, report};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "say which files: what side-by-side --json wrote";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let measured = arguments.map(|file| read(&file)).collect::<Result<Vec<_>, _>>()?;
    if measured.is_empty() {
        return Err(usage.into());
    }
    let page = folder.join("RESULTS.md");
    fs::write(&page, report::markdown(&fs::read_to_string(&page)?, &measured)?)?;
    if let Some(costs) = report::costs(&measured) {
        fs::write(folder.join("ratios.svg"), plot::svg(costs)?)?;
    }
    Ok(())
}

fn read(path: &str) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
}
