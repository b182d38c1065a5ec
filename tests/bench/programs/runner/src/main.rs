//! Runs clients side by side against the load server, and tells what each costs.
//!
//! Started by `tests/bench/side-by-side`, which builds everything first and names the folder it is in.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use runner::client::{self, Client};
use runner::figures::{Figures, Outcome};
use runner::options::{Options, Server};
use runner::{round, table};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let (clients, absent) = client::find(&options)?;
    let each = |client| options.objects.iter().map(move |objects| (client, *objects));
    let runs: Vec<(&Client, usize)> = clients.iter().flat_map(each).collect();
    let mut rounds: BTreeMap<(&Client, usize), Vec<Figures>> = BTreeMap::new();
    for round in 0..options.rounds {
        let mut order = runs.clone();
        // Who runs first finds another machine than who runs last.
        if round % 2 == 1 {
            order.reverse();
        }
        for (client, objects) in order {
            let name = format!("{} {} with {objects} objects", client.name, client.mode);
            let figures = round::run(client, objects, &options)
                .map_err(|problem| format!("{name}: {problem}"))?;
            eprintln!("round {} of {}: {name}: {}", round + 1, options.rounds, figures.brief());
            rounds.entry((client, objects)).or_default().push(figures);
        }
    }
    let outcomes: Vec<Outcome> =
        runs.iter().map(|run| Outcome::new(run.0, run.1, &rounds[run], &options)).collect();
    let tables = match options.server {
        _ if options.objects.len() > 1 => table::growth,
        Server::Load => table::costs,
        Server::Real => table::real,
    };
    print!("{}", tables(&outcomes, &absent));
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_string_pretty(&outcomes)? + "\n")?;
    }
    Ok(())
}
