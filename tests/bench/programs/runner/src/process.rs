use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde_json::Value;

/// A program that tells one JSON value on each line, and is told one line at a time. Ends with its owner.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    cpu: ClockId,
}

/// Nothing that is measured takes longer.
const PATIENCE: Duration = Duration::from_secs(600);

impl Process {
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
        let cpu = clock_getcpuclockid(pid).map_err(|error| error.to_string())?;
        Ok(Self { child, input, lines, cpu })
    }

    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let written = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        written.map_err(|error| format!("it takes no input: {error}"))
    }

    /// Waits for the line whose `field` is `value`; what comes before is of no interest.
    pub fn hear(&self, field: &str, value: &str) -> Result<Value, String> {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let line = self.lines.recv_timeout(left).map_err(|problem| match problem {
                RecvTimeoutError::Timeout => format!("it does not come to {value}"),
                RecvTimeoutError::Disconnected => format!("it ended before {value}"),
            })?;
            let said: Value = serde_json::from_str(&line)
                .map_err(|error| format!("it says {line:?}: {error}"))?;
            if said[field] == value {
                return Ok(said);
            }
        }
    }

    /// User and system time of all its threads, in nanoseconds.
    pub fn cpu(&self) -> Result<u64, String> {
        let time = self.cpu.now().map_err(|error| error.to_string())?;
        Ok(u64::try_from(Duration::from(time).as_nanos()).expect("a run is shorter than 500 years"))
    }

    /// Waits until it has nothing more to do; gives its CPU time then.
    pub fn rest(&self) -> Result<u64, String> {
        const LOOK: Duration = Duration::from_millis(250);
        const IDLE: u64 = 1_500_000;
        let begin = Instant::now();
        let mut before = self.cpu()?;
        loop {
            thread::sleep(LOOK);
            let now = self.cpu()?;
            if now - before < IDLE || begin.elapsed() > Duration::from_secs(30) {
                return Ok(now);
            }
            before = now;
        }
    }

    /// A figure of its memory, in bytes: `VmRSS` or `VmHWM`.
    pub fn memory(&self, name: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| format!("{path} has no {name}"))
    }

    /// Its peak is counted from now on.
    pub fn reset_peak(&self) -> Result<(), String> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        fs::write(&path, "5").map_err(|error| format!("{path}: {error}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
