//! Everything at once, by seed: changes, faults of the server and of the network, panics, subscribers that come and go.
//! While it lasts nothing may be told that was never so; when it is over, everybody knows the truth.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::Status;
use kubeflect::embedded::{Filter, RawAnswer, Verb};
use kubeflect::object::{ResourceVersion, StaticKind as _};
use kubeflect::reflector::{Delivery, Freshness, StreamingLists};
use kubeflect::supervision::Faults;
use kubeflect::{Options, Reflector, SubscribeOptions};

use crate::support::{Log, Recorder, World, cached, on_a_paused_clock, pass};

/// G11: the longest delay with its jitter, the longest silence that is believed, a check, and a little.
const CONVERGED: u64 = 60 + 150 + 30 + 60;
/// Audits come this often at least, and at most half as often.
const AUDITED: u64 = 60;

struct Storm {
    world: World,
    pods: Reflector<Pod>,
    rng: fastrand::Rng,
    logs: Vec<Arc<Mutex<Log>>>,
    /// How far the cache had come when it was looked at last.
    reached: Option<ResourceVersion>,
    /// A version the server may go back to. A server that goes back, and comes past us again before we look, can not be
    /// told from one that did not, but by an audit.
    backup: Option<String>,
}

impl Storm {
    async fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = World::new().pods(&["p0", "p1", "p2", "p3"]);
        let actors = ["watcher", "lister", "supervisor", "delta_fifo_store", "publisher"];
        let mut faults = Faults::none();
        for _ in 0..rng.usize(0..4) {
            let actor = actors[rng.usize(..actors.len())];
            let point = match actor {
                "watcher" => "batch",
                "lister" => "page",
                "supervisor" => "WatchOpened",
                "delta_fifo_store" => ["Apply", "Commit/end", "Drain", "Stage"][rng.usize(..4)],
                _ => "Publish",
            };
            faults = faults.and_panic_at(actor, point, rng.usize(1..30));
        }
        let mut options = Options::all().faults(faults);
        if rng.bool() {
            options = options.streaming_lists(StreamingLists::Never);
        }
        if rng.bool() {
            options = options.page_size(rng.u32(2..5));
        }
        let backup = rng.bool().then(|| world.server.resource_version());
        if backup.is_some() {
            options = options.audit(Duration::from_secs(AUDITED));
        }
        let pods = world.reflect_with(options).await;
        let mut storm = Self { world, pods, rng, logs: Vec::new(), reached: None, backup };
        storm.subscribe().await;
        storm
    }

    async fn subscribe(&mut self) {
        let (recorder, log) = match self.rng.bool() {
            true => Recorder::start(),
            false => Recorder::start_slow(Duration::from_millis(self.rng.u64(1..3000))),
        };
        let delivery = if self.rng.bool() { Delivery::Latest } else { Delivery::default() };
        let options = SubscribeOptions::default().delivery(delivery);
        self.pods.subscribe_with(recorder, options).await.unwrap();
        self.logs.push(log);
    }

    fn change(&mut self) {
        let name = format!("p{}", self.rng.u8(0..8));
        match self.rng.u8(0..4) {
            0 => self.world.toggle(&name),
            _ => self.world.touch(&name),
        }
    }

    fn fault(&mut self) {
        let (server, rng) = (&self.world.server, &mut self.rng);
        let pods = Pod::static_kind();
        let status = |code: u16, reason: &str| Status {
            code,
            reason: reason.to_owned(),
            ..Status::default()
        };
        let times = rng.usize(1..4);
        let any = match rng.u8(0..3) {
            0 => Filter::verb(Verb::List),
            1 => Filter::verb(Verb::Watch),
            _ => Filter::everything(),
        };
        match rng.u8(0..22) {
            0 => server.cut_watches(),
            1 => server.break_watches(),
            2 => server.lose_watches(),
            3 => server.forget_history(),
            4 => server.silence_watches(rng.bool()),
            5 => server.hold_bookmarks(rng.bool()),
            6 => server.refuse_connections(rng.bool()),
            7 => server.fail_watches(&pods, status(410, "Expired")),
            8 => server.fail_watches(&pods, status(500, "InternalError")),
            9 => server.fail_watches(&pods, status(500, "StorageReadError")),
            10 => server.refuse(any, status(410, "Gone"), times),
            11 => server.refuse(any, status(500, ""), times),
            12 => server.refuse(any, status(404, "NotFound"), times),
            13 => server.refuse(any, status(422, "Invalid"), times),
            14 => server.answer_with(any, RawAnswer::text(429, "busy").retry_after(7), times),
            15 => server.answer_with(any, RawAnswer::text(200, "<html>astray</html>"), times),
            16 => server.emit_raw_frame(&pods, "{\"type\": garbage"),
            17 => server.delay(any, Duration::from_secs(rng.u64(0..40))),
            18 => server.allow_streaming_lists(rng.bool()),
            19 => server.replicas((0..rng.u64(0..4)).map(|n| Duration::from_secs(n * 30))),
            20 => server.limit_history(rng.usize(1..50)),
            _ => self.restore(),
        }
    }

    /// Goes back to a backup, or makes another.
    fn restore(&mut self) {
        let Some(backup) = &mut self.backup else { return };
        // What is forgotten can not be gone back to.
        match self.rng.u8(0..3) {
            0 => self.world.server.restore(backup).ok(),
            1 => self.world.server.restore_silently(backup).ok(),
            _ => None,
        };
        *backup = self.world.server.resource_version();
    }

    /// G2, where the server does not go back itself.
    fn check_course(&mut self) {
        let now = self.pods.store().snapshot().resource_version().cloned();
        if let (Some(reached), Some(now), None) = (&self.reached, &now, &self.backup) {
            assert!(now >= reached, "from {reached} back to {now}");
        }
        self.reached = now;
    }

    async fn rage(&mut self) {
        for _ in 0..self.rng.usize(30..120) {
            for _ in 0..self.rng.u8(0..5) {
                self.change();
            }
            if self.rng.u8(0..3) == 0 {
                self.fault();
            }
            if self.rng.u8(0..40) == 0 {
                self.subscribe().await;
            }
            let pause = Duration::from_millis(self.rng.u64(0..20_000));
            tokio::time::sleep(pause).await;
            self.check_course();
        }
    }

    async fn calm_down(&mut self, seed: u64) {
        self.world.server.heal();
        self.world.server.limit_history(usize::MAX);
        pass(CONVERGED + if self.backup.is_some() { 2 * AUDITED } else { 0 }).await;
        assert_eq!(cached(&self.pods), self.world.truth(), "seed {seed}: {:?}", self.pods.status());
        assert_eq!(self.pods.status().freshness, Freshness::Fresh, "seed {seed}");
        for (number, log) in self.logs.iter().enumerate() {
            let log = log.lock().unwrap();
            assert_eq!(log.fold, cached(&self.pods), "seed {seed}, subscriber {number}");
            assert_eq!(log.violations, [""; 0], "seed {seed}, subscriber {number}");
        }
    }
}

#[test]
fn after_any_storm_everybody_knows_the_truth_g11_g12() {
    for seed in 0..100 {
        on_a_paused_clock(async {
            let mut storm = Storm::new(seed).await;
            storm.rage().await;
            storm.calm_down(seed).await;
            let oddities = storm.pods.status().oddities;
            assert!(storm.backup.is_some() || oddities.rewinds == 0, "seed {seed}: {oddities:?}");
            storm.world.runtime.stop().await;
        });
    }
}
