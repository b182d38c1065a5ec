use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::client::Client;
use crate::figures::{Figures, Latency};
use crate::machine;
use crate::options::{Options, Server};
use crate::process::Process;

/// How many changes of the slow phase, at most.
const PACED: usize = 5_000;
const RATE: usize = 1_000;
const SEED: &str = "1";

/// How much memory a client takes for an object at most, in bytes of its JSON.
const HUNGER: usize = 12;

/// Runs one client through all phases that the server knows, against a server of its own.
pub fn run(client: &Client, objects: usize, options: &Options) -> Result<Figures, String> {
    let mut server = Command::new(options.programs.join(options.server.name()));
    let mut server = Process::start(server.args([&objects.to_string(), &options.shape, SEED]))?;
    let listening = server.hear("event", "listening")?;
    let place = listening["at"].as_str().ok_or("the server does not say where it is")?;
    let mut reflecting =
        Process::start(Command::new(&client.program).args([place, client.mode.as_str()]))?;
    let object_bytes = number(&listening, "object_bytes")?;
    let mut figures = Figures { object_bytes, ..Figures::default() };
    let mut course = Course {
        server: &mut server,
        client: &mut reflecting,
        objects,
        events: options.events,
        hunger: objects * object_bytes as usize * HUNGER,
    };
    course.sync(&mut figures)?;
    if options.server == Server::Real {
        course.events(&mut figures)?;
        course.read(&mut figures)?;
        return Ok(figures);
    }
    course.watching()?;
    // Before a burst leaves memory behind.
    course.relist(&mut figures)?;
    course.events(&mut figures)?;
    course.latency(&mut figures)?;
    course.read(&mut figures)?;
    Ok(figures)
}

struct Course<'a> {
    server: &'a mut Process,
    client: &'a mut Process,
    objects: usize,
    events: usize,
    /// The bytes that the client may take from one phase to the next.
    hunger: usize,
}

impl Course<'_> {
    /// From nothing to everything there is, handled.
    fn sync(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.client.hear("phase", "ready")?;
        machine::warm(self.hunger);
        let (cpu, memory) = (self.client.rest()?, self.client.memory("VmRSS:")?);
        let begin = Instant::now();
        self.client.tell("begin")?;
        let synced = self.client.hear("phase", "synced")?;
        figures.seconds_to_synced = begin.elapsed().as_secs_f64();
        let held = number(&synced, "objects")? as usize;
        if held != self.objects {
            return Err(format!("it holds {held} objects of {}", self.objects));
        }
        let spent = self.client.rest()? - cpu;
        figures.cpu_us_per_object = self.per_object(spent) / 1e3;
        let held = self.client.memory("VmRSS:")?;
        figures.rss_after_sync = held as f64;
        figures.rss_bytes_per_object = self.per_object(held.saturating_sub(memory));
        figures.peak_rss_bytes = self.client.memory("VmHWM:")? as f64;
        Ok(())
    }

    fn watching(&self) -> Result<(), String> {
        self.server.hear("event", "watching").map(drop)
    }

    /// As many changes as it takes, as fast as it takes them.
    fn events(&mut self, figures: &mut Figures) -> Result<(), String> {
        let count = self.events;
        let (cpu, begin) = (self.client.cpu()?, Instant::now());
        self.push(&format!("push {count}"))?;
        figures.events_per_second = count as f64 / begin.elapsed().as_secs_f64();
        figures.cpu_us_per_event = (self.client.rest()? - cpu) as f64 / count as f64 / 1e3;
        self.client.tell("count")?;
        figures.events_told =
            number(&self.client.hear("phase", "count")?, "events")? / count as f64;
        figures.rss_after_events = self.client.memory("VmRSS:")? as f64;
        Ok(())
    }

    /// From the server's write to the client's handler, with time between one change and the next.
    fn latency(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.client.tell("delays on")?;
        let cpu = self.client.cpu()?;
        let count = PACED.min(self.events);
        self.push(&format!("pace {count} {RATE}"))?;
        figures.paced_cpu_us_per_event = (self.client.rest()? - cpu) as f64 / count as f64 / 1e3;
        self.client.tell("delays off")?;
        let delays = self.client.hear("phase", "delays")?;
        let rank = |name: &str| Ok::<f64, String>(number(&delays, name)? / 1e3);
        figures.latency_us = Latency { p50: rank("p50")?, p99: rank("p99")?, p999: rank("p999")? };
        Ok(())
    }

    /// Its watch expires, and nothing has changed.
    fn relist(&mut self, figures: &mut Figures) -> Result<(), String> {
        machine::warm(self.hunger);
        let cpu = self.client.rest()?;
        self.client.reset_peak()?;
        self.server.tell("expire")?;
        self.watching()?;
        // Whoever sees this has seen the list before it.
        self.push("push 1")?;
        figures.relist_cpu_us_per_object = self.per_object(self.client.rest()? - cpu) / 1e3;
        figures.relist_peak_rss_bytes = self.client.memory("VmHWM:")? as f64;
        // Not to what it holds now: the burst of events may have left free memory that hides the peak.
        figures.relist_peak_over_steady = figures.relist_peak_rss_bytes / figures.rss_after_sync;
        Ok(())
    }

    /// One object by its key.
    fn read(&mut self, figures: &mut Figures) -> Result<(), String> {
        self.client.tell("read")?;
        figures.read_cpu_ns = number(&self.client.hear("phase", "read")?, "ns")?;
        Ok(())
    }

    /// Has the server make changes, and waits until the client has handled the last.
    fn push(&mut self, command: &str) -> Result<(), String> {
        self.server.tell(command)?;
        let pushed = self.server.hear("event", "pushed")?;
        self.client.tell(&format!("until {}", pushed["last"]))?;
        self.client.hear("phase", "reached").map(drop)
    }

    fn per_object(&self, amount: u64) -> f64 {
        amount as f64 / self.objects as f64
    }
}

fn number(said: &Value, field: &str) -> Result<f64, String> {
    said[field].as_f64().ok_or_else(|| format!("{said} has no number {field}"))
}
