use std::collections::BTreeSet;

use crate::figures::Outcome;
use crate::options::Server;
use crate::table;

/// A part of the page that is measured on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Everything, of one number of objects.
    Costs,
    /// What grows with the number of objects.
    Growth,
    /// With a real API server instead of bytes rendered beforehand.
    Real,
}

const PARTS: [Part; 3] = [Part::Costs, Part::Growth, Part::Real];

/// The page that tells all that was measured. A part that was not measured anew stays as it was.
pub fn markdown(before: &str, measured: &[Vec<Outcome>]) -> Result<String, String> {
    let mut page = "# What it costs, side by side\n\n\
                    Written by `tests/bench/publish`: change nothing here.\n"
        .to_owned();
    for part in PARTS {
        let anew = measured.iter().rfind(|outcomes| Part::of(outcomes) == part);
        match anew {
            Some(outcomes) => page += &part.written(outcomes)?,
            None => page += kept(before, part.heading()),
        }
    }
    Ok(page + METHOD)
}

/// The figures from which the ratios are drawn, if they were measured.
pub fn costs(measured: &[Vec<Outcome>]) -> Option<&Vec<Outcome>> {
    measured.iter().rfind(|outcomes| Part::of(outcomes) == Part::Costs)
}

/// The part under this heading, with its heading; nothing if there is none.
fn kept<'a>(page: &'a str, heading: &str) -> &'a str {
    let Some(from) = page.find(&format!("\n## {heading}\n")) else { return "" };
    let length = page[from + 1..].find("\n## ").map_or(page.len() - from, |length| length + 1);
    &page[from..from + length]
}

impl Part {
    fn of(outcomes: &[Outcome]) -> Self {
        let sizes: BTreeSet<usize> = outcomes.iter().map(|one| one.objects).collect();
        match outcomes.first().map(|first| first.server) {
            Some(Server::Real) => Self::Real,
            _ if sizes.len() > 1 => Self::Growth,
            _ => Self::Costs,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Costs => "Costs",
            Self::Growth => "Growth",
            Self::Real => "At a real API server",
        }
    }

    fn written(self, outcomes: &[Outcome]) -> Result<String, String> {
        let table = match self {
            Self::Costs => table::costs(outcomes, &absent(outcomes)),
            Self::Growth => table::growth(outcomes, &[]),
            Self::Real => table::real(outcomes, &[]),
        };
        Ok(format!(
            "\n## {}\n\n\
             ```sh\n\
             {} --json FILE\n\
             tests/bench/publish FILE\n\
             ```\n\n\
             {}\n\
             {table}\n\
             {}\n",
            self.heading(),
            command(outcomes),
            conditions(outcomes)?,
            self.remarks(),
        ))
    }

    fn remarks(self) -> &'static str {
        match self {
            Self::Costs => "![ratios](ratios.svg)",
            Self::Growth => {
                "There are as many changes at every size: where there are few objects, each changes more often, and more of \
                 its changes are joined. **Paced** is at 1 000 events a second. What a client takes before it has any object \
                 weighs most where there are few. A **read** is of one object by its key, each far from the one before."
            }
            Self::Real => {
                "kube-apiserver and etcd on the same machine, whose CPU is not counted; TLS; lists compressed where a client \
                 asks for it. Changes come as fast as the server takes patches, which is slower than any client: each wakes \
                 the client for itself. client-go asks for JSON, or for protobuf in `list-protobuf`; the others know JSON only."
            }
        }
    }
}

const METHOD: &str = "\n## How it is measured\n\n\
    - Each client runs in a process of its own, built for release with the default settings and the default allocator of \
    its language, against a load server of its own on loopback, plain HTTP/1.1, uncompressed JSON, bytes rendered \
    beforehand.\n\
    - **CPU** is user and system time of all threads of the client, until it rests. **Per object**: from nothing until the \
    subscriber has handled all objects. **Per event**: changes pushed as fast as the client takes them.\n\
    - Before a list and a relist, the runner touches as much memory as a client may take, and gives it back: what a host \
    asks for memory that it took away from a virtual machine is nobody's cost.\n\
    - **RSS per object** is what the resident memory grew by from before the first list to the rest after it; **peak** is \
    the most until then.\n\
    - **Relist**: the watch ends with 410, nothing has changed. **Peak/steady** is the most resident memory meanwhile, to \
    that after the first list.\n\
    - **Latency** is from the server's write to the client's handler, at 1 000 events a second.\n\
    - **Told** is the share of changes the handler was told one by one: kubeflect joins changes of one object when a \
    subscriber does not keep up.\n\
    - kubeflect's modes say what is kept of a pod: all of it as the type (`typed`), without managedFields (`-pruned`), its \
    bytes (`lazy`), six fields (`projection`, `managedFields` cut out before they are read), a tree of values for kinds \
    without a type (`dynamic`), metadata (`metadata`, which is also all that is sent). They stream their lists, as is the \
    default; `-list` asks for pages instead. kube-rs and client-go keep the whole type.\n";

fn absent(outcomes: &[Outcome]) -> Vec<String> {
    ["kubeflect", "kube-rs", "client-go"]
        .into_iter()
        .filter(|name| outcomes.iter().all(|one| one.client != *name))
        .map(|name| format!("{name} was left out of this run"))
        .collect()
}

/// What to type to measure the same.
fn command(outcomes: &[Outcome]) -> String {
    let sizes: BTreeSet<usize> = outcomes.iter().map(|one| one.objects).collect();
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let modes: BTreeSet<String> =
        outcomes.iter().map(|one| format!("{}/{}", one.client, one.mode)).collect();
    outcomes.first().map_or_else(String::new, |first| {
        let shape = match first.shape.as_str() {
            "typical" => String::new(),
            other => format!(" --shape {other}"),
        };
        let server = match first.server {
            Server::Load => "",
            Server::Real => " --server real",
        };
        format!(
            "tests/bench/side-by-side --objects {} --events {} --rounds {}{shape}{server} --only {}",
            sizes.join(","),
            first.events,
            first.rounds,
            Vec::from_iter(modes).join(",")
        )
    })
}

/// When, where and of what.
fn conditions(outcomes: &[Outcome]) -> Result<String, String> {
    let first = outcomes.first().ok_or("there are no figures")?;
    let versions: BTreeSet<String> =
        outcomes.iter().map(|one| format!("{} {}", one.client, one.client_version)).collect();
    Ok(format!(
        "{}; {}; {}; pods of {:.0} bytes; medians of {} rounds, whose order alternates.",
        first.date,
        first.machine,
        Vec::from_iter(versions).join(", "),
        first.figures.object_bytes,
        first.rounds
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(objects: &[usize], server: Server, date: &str) -> Vec<Outcome> {
        let one = |&objects: &usize| Outcome {
            client: "kube-rs".to_owned(),
            mode: "list".to_owned(),
            figures: crate::figures::Figures::default(),
            client_version: "5.0.0".to_owned(),
            server,
            objects,
            events: 7,
            rounds: 3,
            shape: "typical".to_owned(),
            date: date.to_owned(),
            machine: "a machine".to_owned(),
        };
        objects.iter().map(one).collect()
    }

    #[test]
    fn what_is_not_measured_anew_stays_as_it_was() {
        let costs = outcomes(&[20_000], Server::Load, "monday");
        let growth = outcomes(&[1_000, 10_000], Server::Load, "tuesday");
        let real = outcomes(&[2_000], Server::Real, "wednesday");
        let first = markdown("", &[costs, real]).unwrap();
        let headings = |page: &str| -> Vec<String> {
            page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect()
        };
        assert_eq!(headings(&first), ["Costs", "At a real API server", "How it is measured"]);
        let second = markdown(&first, &[growth]).unwrap();
        assert_eq!(
            headings(&second),
            ["Costs", "Growth", "At a real API server", "How it is measured"]
        );
        for day in ["monday", "tuesday", "wednesday"] {
            assert_eq!(second.matches(day).count(), 1, "{day}");
        }
        assert_eq!(markdown(&second, &[]).unwrap(), second);
    }
}
