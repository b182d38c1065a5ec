//! Supervision against actix itself, on a paused clock.

mod children;
mod groups;
mod panics;
mod restarts;

use std::cell::RefCell;
use std::panic;
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

use actix::{
    Actor, ActorContext, AsyncContext, Context, Handler, Message, Running, StreamHandler,
    Supervised, WrapFuture,
};
use tokio::time::{Instant, sleep};

use super::{
    BackoffOptions, ExitReason, Faults, FirstRestart, Hooks, RestartOptions, RestartReport,
};

/// Panics a test asks for, by their text.
const EXPECTED: [&str; 2] = ["expected", "planned fault"];

/// Prints no report for panics that are part of a test.
pub(super) fn silence_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_expected = info
                .payload_as_str()
                .is_some_and(|text| EXPECTED.iter().any(|e| text.starts_with(e)));
            if !is_expected {
                report(info);
            }
        }));
    });
}

/// What happened, and when: in virtual milliseconds since the journal was begun, to ten of them, since the paused clock
/// rounds each sleep up by about one.
#[derive(Clone)]
struct Journal {
    begun: Instant,
    facts: Rc<RefCell<Vec<(u128, String)>>>,
}

impl Journal {
    /// Begins a journal, on a clock paused from here on.
    fn begin() -> Self {
        silence_expected_panics();
        tokio::time::pause();
        Self { begun: Instant::now(), facts: Rc::default() }
    }

    /// Another one, begun now.
    fn another(&self) -> Self {
        Self { begun: Instant::now(), facts: Rc::default() }
    }

    fn write(&self, fact: String) {
        self.facts.borrow_mut().push((self.begun.elapsed().as_millis() / 10 * 10, fact));
    }

    fn facts(&self) -> Vec<String> {
        self.facts.borrow().iter().map(|(_, fact)| fact.clone()).collect()
    }

    /// When `wanted` happened, in milliseconds, each time.
    fn times_of(&self, wanted: &str) -> Vec<u128> {
        self.facts
            .borrow()
            .iter()
            .filter(|(_, fact)| fact == wanted)
            .map(|(time, _)| *time)
            .collect()
    }
}

/// An actor that writes down its life and panics where its faults say: in a hook, or at a [`Do`] by its name.
struct Subject {
    name: &'static str,
    journal: Journal,
    faults: Faults,
    count: u32,
    /// It stops in `started` until it was started this often.
    stops_until: usize,
    refuses_to_stop: bool,
}

#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "u32")]
enum Do {
    Count,
    Stop,
    /// Hits "Spawned" in a spawned future.
    Spawn,
    /// Hits "Waited" in a future the actor waits for.
    Wait,
    /// Hits "Streamed" in a stream handler.
    Stream,
}

impl Subject {
    fn new(journal: &Journal, faults: &Faults) -> Self {
        Self {
            name: "subject",
            journal: journal.clone(),
            faults: faults.clone(),
            count: 0,
            stops_until: 0,
            refuses_to_stop: false,
        }
    }

    fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    fn stopping_until(mut self, start: usize) -> Self {
        self.stops_until = start;
        self
    }

    fn refusing_to_stop(mut self) -> Self {
        self.refuses_to_stop = true;
        self
    }

    fn at(&self, point: &'static str) {
        self.journal.write(if self.name == "subject" {
            point.into()
        } else {
            format!("{} {point}", self.name)
        });
        self.faults.hit(self.name, point);
    }
}

impl Actor for Subject {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.at("started");
        if self.journal.times_of("started").len() < self.stops_until {
            ctx.stop();
        }
    }

    fn stopping(&mut self, _: &mut Context<Self>) -> Running {
        self.at("stopping");
        if self.refuses_to_stop { Running::Continue } else { Running::Stop }
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.at("stopped");
    }
}

impl Supervised for Subject {
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.count = 0;
        self.at("restarting");
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.at("dropped");
    }
}

impl Handler<Do> for Subject {
    type Result = u32;

    fn handle(&mut self, message: Do, ctx: &mut Context<Self>) -> u32 {
        match message {
            Do::Count => self.faults.hit(self.name, "Count"),
            Do::Stop => ctx.stop(),
            Do::Spawn => drop(ctx.spawn(self.hits_later("Spawned"))),
            Do::Wait => ctx.wait(self.hits_later("Waited")),
            Do::Stream => drop(Self::add_stream(futures::stream::iter([Item]), ctx)),
        }
        self.count += 1;
        self.count
    }
}

struct Item;

impl StreamHandler<Item> for Subject {
    fn handle(&mut self, _: Item, _: &mut Context<Self>) {
        self.at("Streamed");
    }

    fn finished(&mut self, _: &mut Context<Self>) {}
}

impl Subject {
    fn hits_later(
        &self,
        point: &'static str,
    ) -> impl actix::ActorFuture<Self, Output = ()> + use<> {
        let (name, faults) = (self.name, self.faults.clone());
        let hit = async move {
            sleep(Duration::from_millis(5)).await;
            faults.hit(name, point);
        };
        hit.into_actor(self)
    }
}

/// The defaults, without jitter, and with the first restart backed off.
fn exact() -> RestartOptions {
    let backoff = BackoffOptions { jitter: 0.0, ..BackoffOptions::default() };
    RestartOptions { backoff, first_restart: FirstRestart::BackedOff, ..RestartOptions::default() }
}

type Kept<T> = Rc<RefCell<Vec<T>>>;

/// Hooks that keep what they are told.
fn told() -> (Hooks, Kept<RestartReport>, Kept<ExitReason>) {
    let (restarts, escalations) = (Rc::new(RefCell::new(vec![])), Rc::new(RefCell::new(vec![])));
    let (restarts_too, escalations_too) = (Rc::clone(&restarts), Rc::clone(&escalations));
    let hooks = Hooks::default()
        .on_restart(move |report| restarts_too.borrow_mut().push(report.clone()))
        .on_escalate(move |exit| escalations_too.borrow_mut().push(exit));
    (hooks, restarts, escalations)
}

/// Lets a virtual time pass. The clock rounds up to whole milliseconds, so a little more.
async fn after(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds + 2)).await;
}
