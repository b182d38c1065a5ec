use std::collections::BTreeSet;

use crate::figures::Outcome;
use crate::table;

/// The page that tells all of one run, and of the further ones there are.
pub fn markdown(
    outcomes: &[Outcome],
    growth: &[Outcome],
    real: &[Outcome],
) -> Result<String, String> {
    let absent: Vec<String> = ["kubeflect", "kube-rs", "client-go"]
        .into_iter()
        .filter(|name| outcomes.iter().all(|one| one.client != *name))
        .map(|name| format!("{name} was left out of this run"))
        .collect();
    let growth_section = if growth.is_empty() { String::new() } else { growth_of(growth)? };
    let real_section = if real.is_empty() { String::new() } else { real_of(real)? };
    let grown = if growth.is_empty() { "" } else { " --growth GROWTH" };
    let served = if real.is_empty() { "" } else { " --real REAL" };
    Ok(format!(
        "# What it costs, side by side\n\n\
         Written by `tests/bench/publish`: change nothing here.\n\n\
         ```sh\n\
         {command} --json FILE\n\
         tests/bench/publish FILE{grown}{served}\n\
         ```\n\n\
         {conditions}\n\
         {tables}\n\
         ![ratios](ratios.svg)\n\n\
         {growth_section}\
         {real_section}\
         ## How it is measured\n\n\
         - Each client runs in a process of its own, built for release with the default settings and the default allocator \
         of its language, against a load server of its own on loopback, plain HTTP/1.1, uncompressed JSON, bytes rendered \
         beforehand.\n\
         - **CPU** is user and system time of all threads of the client, until it rests. **Per object**: from nothing until \
         the subscriber has handled all objects. **Per event**: changes pushed as fast as the client takes them.\n\
         - Before a list and a relist, the runner touches as much memory as a client may take, and gives it back: what a host \
         asks for memory that it took away from a virtual machine is nobody's cost.\n\
         - **RSS per object** is what the resident memory grew by from before the first list to the rest after it; **peak** \
         is the most until then.\n\
         - **Relist**: the watch ends with 410, nothing has changed. **Peak/steady** is the most resident memory meanwhile, \
         to that after the first list.\n\
         - **Latency** is from the server's write to the client's handler, at 1 000 events a second.\n\
         - **Told** is the share of changes the handler was told one by one: kubeflect joins changes of one object when a \
         subscriber does not keep up.\n\
         - kubeflect's modes say what is kept of a pod: all of it as the type (`typed`), without managedFields (`-pruned`), \
         its bytes (`lazy`), six fields (`projection`, `managedFields` cut out before they are read), a tree of values for \
         kinds without a type (`dynamic`), metadata (`metadata`, which is also all that is sent). They stream their lists, as \
         is the default; `-list` asks for pages instead. kube-rs and client-go keep the whole type.\n",
        command = command(outcomes, &only(outcomes)),
        conditions = conditions(outcomes)?,
        tables = table::costs(outcomes, &absent),
    ))
}

fn growth_of(outcomes: &[Outcome]) -> Result<String, String> {
    Ok(format!(
        "## Growth\n\n\
         ```sh\n\
         {command} --json GROWTH\n\
         ```\n\n\
         {conditions}\n\
         {table}\n\
         There are as many changes at every size: where there are few objects, each changes more often, and more of its \
         changes are joined. **Paced** is at 1 000 events a second. What a client takes before it has any object weighs most \
         where there are few. A **read** is of one object by its key, each far from the one before.\n\n",
        command = command(outcomes, &only(outcomes)),
        conditions = conditions(outcomes)?,
        table = table::growth(outcomes, &[]),
    ))
}

fn real_of(outcomes: &[Outcome]) -> Result<String, String> {
    Ok(format!(
        "## At a real API server\n\n\
         ```sh\n\
         {command} --json REAL\n\
         ```\n\n\
         {conditions}\n\
         {table}\n\
         kube-apiserver and etcd on the same machine, whose CPU is not counted; TLS; lists compressed where a client asks \
         for it. Changes come as fast as the server takes patches, which is slower than any client: each wakes the client \
         for itself. client-go asks for JSON, or for protobuf in `list-protobuf`; the others know JSON only.\n\n",
        command = command(outcomes, &format!(" --server real{}", only(outcomes))),
        conditions = conditions(outcomes)?,
        table = table::real(outcomes, &[]),
    ))
}

fn only(outcomes: &[Outcome]) -> String {
    let modes: BTreeSet<String> =
        outcomes.iter().map(|one| format!("{}/{}", one.client, one.mode)).collect();
    format!(" --only {}", Vec::from_iter(modes).join(","))
}

/// What to type to measure the same.
fn command(outcomes: &[Outcome], more: &str) -> String {
    let sizes: BTreeSet<usize> = outcomes.iter().map(|one| one.objects).collect();
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    outcomes.first().map_or_else(String::new, |first| {
        let shape = match first.shape.as_str() {
            "typical" => String::new(),
            other => format!(" --shape {other}"),
        };
        format!(
            "tests/bench/side-by-side --objects {} --events {} --rounds {}{shape}{more}",
            sizes.join(","),
            first.events,
            first.rounds
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
