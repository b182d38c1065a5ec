//! The page over a small cluster of its own, and actors you can crash while you look at it.
//!
//! Run with `cargo run --example dashboard`. Then write `watcher`, `delta_fifo_store`, `publisher` or `supervisor` and
//! press Enter: that actor of pods panics at the next opportunity. The end of the input ends it.

use std::io::{BufRead as _, stdin};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubeflect::dashboard::Dashboard;
use kubeflect::embedded::ApiServer;
use kubeflect::supervision::{BackoffOptions, Faults};
use kubeflect::{Options, Runtime};
use tokio::sync::mpsc;

/// The actors one can crash, and where they pass by often.
const POINTS: [(&str, &str); 4] = [
    ("watcher", "batch"),
    ("delta_fifo_store", "Apply"),
    ("publisher", "Publish"),
    ("supervisor", "WatchOpened"),
];

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = ApiServer::demo_cluster(1);
    let changes = actix_rt::spawn(cluster.clone().run_demo(6.0));
    let runtime = Runtime::new(cluster);
    let dashboard = Dashboard::new(runtime.clone());

    // Slow enough to be watched.
    let backoff = BackoffOptions { first: Duration::from_secs(3), ..BackoffOptions::default() };
    let faults = Faults::recording();
    let options = Options::all().backoff(backoff).faults(faults.clone());
    dashboard.observe(&runtime.reflect::<Pod>(options).await?).await?;
    dashboard.observe(&runtime.reflect::<Deployment>(Options::all()).await?).await?;
    dashboard.observe(&runtime.reflect::<Node>(Options::all()).await?).await?;

    let serving = dashboard.serve(([127, 0, 0, 1], 0).into()).await?;
    println!("{}", serving.url());
    let mut lines = lines_of_stdin();
    while let Some(line) = lines.recv().await {
        match POINTS.iter().find(|(actor, _)| *actor == line.trim()) {
            Some((actor, point)) => crash(&faults, actor, point),
            None => println!("write one of {:?}", POINTS.map(|(actor, _)| actor)),
        }
    }
    serving.stop().await;
    changes.abort();
    runtime.stop().await;
    Ok(())
}

/// Plans a panic for the next time the actor passes by.
fn crash(faults: &Faults, actor: &'static str, point: &'static str) {
    let seen = faults.seen();
    let times = seen.iter().find(|it| (it.0, it.1) == (actor, point)).map_or(0, |it| it.2);
    drop(faults.clone().and_panic_at(actor, point, times + 1));
    println!("{actor} will panic at its next {point}");
}

/// Reads lines on a thread of their own: a terminal makes everybody wait.
fn lines_of_stdin() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(8);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
