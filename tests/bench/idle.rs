//! What 200 idle reflectors in one process cost: threads, memory, and CPU in one minute.
//!
//! Run with `cargo bench --bench idle`. The embedded server they watch over HTTP is in the same process, and so in the
//! figures of CPU.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::client::{BudgetOptions, Connection, HttpCluster, HttpOptions};
use kubeflect::embedded::ApiServer;
use kubeflect::{Options, Runtime};

const REFLECTORS: usize = 200;

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ApiServer::demo_cluster(1);
    let serving = server.start().await?;
    let before = Usage::now();
    // Started at once, not at the ten requests a second a cluster is spared with.
    let budget = BudgetOptions { rate: 1_000.0, burst: 1_000, lists: 50 };
    let options = HttpOptions { budget, ..HttpOptions::default() };
    let runtime = Runtime::new(HttpCluster::with_options(Connection::at(&serving.url())?, options));
    for number in 0..REFLECTORS {
        runtime.reflect::<Pod>(Options::all().namespace(format!("namespace-{number}"))).await?;
    }
    runtime.synced().await?;
    let synced = Usage::now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = Usage::now();
    assert_eq!(server.open_watches(), REFLECTORS);

    println!("{REFLECTORS} idle reflectors, {} watches open", server.open_watches());
    println!("threads       {} ({} before)", after.threads, before.threads);
    println!(
        "memory        {} KiB more, {} KiB per reflector",
        after.kib - before.kib,
        (after.kib - before.kib) / REFLECTORS as i64
    );
    println!("CPU to sync   {} ms", synced.cpu_ms - before.cpu_ms);
    println!("CPU a minute  {} ms", after.cpu_ms - synced.cpu_ms);
    runtime.stop().await;
    serving.stop().await;
    Ok(())
}

/// What this process uses, as Linux counts it.
struct Usage {
    threads: i64,
    kib: i64,
    cpu_ms: i64,
}

impl Usage {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("Linux tells about processes");
        let field = |name: &str| {
            let line =
                status.lines().find(|line| line.starts_with(name)).expect("the field is there");
            line.split_whitespace().nth(1).expect("it has a value").parse().expect("it is a number")
        };
        let stat = fs::read_to_string("/proc/self/stat").expect("Linux tells about processes");
        let fields: Vec<&str> =
            stat.rsplit(')').next().expect("the name ends").split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<i64>().expect("it is a number");
        // User and system time, in hundredths of a second.
        Self {
            threads: field("Threads:"),
            kib: field("VmRSS:"),
            cpu_ms: (ticks(11) + ticks(12)) * 10,
        }
    }
}
