use std::env;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What a person sees: stdout, stderr, and on a terminal a status line below both.
///
/// The status line is drawn without a cursor moved out of its line and without a mode left on: whatever ends the
/// program, the terminal is as it was, but for one line.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Whether there is a place for a status line: a terminal that nobody else writes to.
    has_status: bool,
    /// Whether stderr has colours.
    notes_colours: Colours,
    colours: Colours,
    state: Mutex<State>,
    /// Told when stdout takes nothing any more.
    closed: Notify,
}

#[derive(Debug, Default)]
struct State {
    status: String,
    /// How many are writing to stdout: meanwhile there is no status line.
    printing: usize,
    /// Why stdout takes nothing any more.
    failed: Option<io::Error>,
}

/// Whether stdout has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    On,
    Off,
}

/// What happened to an object, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Plain,
    Green,
    Yellow,
    Red,
    Dim,
}

/// Erases the line the cursor is in.
const ERASE: &str = "\r\x1b[K";

impl Screen {
    pub(crate) fn of_process() -> Self {
        let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        let wants_none = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = |is_terminal: bool| match is_terminal && !is_dumb && !wants_none {
            true => Colours::On,
            false => Colours::Off,
        };
        let is_on_a_terminal = io::stderr().is_terminal() && !is_dumb;
        Self {
            has_status: is_on_a_terminal && !is_read_by_a_program(),
            notes_colours: colours(io::stderr().is_terminal()),
            colours: colours(io::stdout().is_terminal()),
            state: Mutex::default(),
            closed: Notify::new(),
        }
    }

    /// Whether there is a status line.
    pub(crate) fn has_status(&self) -> bool {
        self.has_status
    }

    /// Whether stderr is a terminal, whoever else may write to it.
    pub(crate) fn is_on_a_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Whether stderr has colours.
    pub(crate) fn has_coloured_notes(&self) -> bool {
        self.notes_colours == Colours::On
    }

    /// A text for stdout in a colour, if there are any.
    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Plain => return text.to_owned(),
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Red => 31,
            Colour::Dim => 2,
        };
        match self.colours {
            Colours::On => format!("\x1b[{code}m{text}\x1b[0m"),
            Colours::Off => text.to_owned(),
        }
    }

    /// Writes whole lines to stdout. That may take as long as its reader likes; nobody else waits for it.
    pub(crate) fn print(&self, lines: &[u8]) {
        {
            let mut state = self.lock();
            if state.failed.is_some() {
                return;
            }
            state.erase();
            state.printing += 1;
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(lines).and_then(|()| stdout.flush());
        drop(stdout);
        let mut state = self.lock();
        state.printing -= 1;
        if let Err(error) = written {
            state.failed = Some(error);
            self.closed.notify_one();
        }
        state.draw();
    }

    /// Writes lines to stderr. What a server said may be in them: it does not get to move the cursor.
    pub(crate) fn note(&self, lines: &str) {
        self.write_note(&without_controls(lines));
    }

    fn write_note(&self, lines: &str) {
        let state = self.lock();
        state.erase();
        // Nobody is left to be told if this fails.
        writeln!(io::stderr(), "{lines}").ok();
        state.draw();
    }

    /// Shows another status line.
    pub(crate) fn set_status(&self, line: &str) {
        if self.has_status {
            let mut state = self.lock();
            state.status = without_controls(line);
            state.draw();
        }
    }

    /// Takes the status line away.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.erase();
        state.status.clear();
    }

    /// Waits until stdout takes nothing any more. That a reader went away is no error.
    pub(crate) async fn closed(&self) -> io::Result<()> {
        self.closed.notified().await;
        self.check_printed()
    }

    /// Whether all that was printed so far was taken, or its reader has gone away.
    pub(crate) fn check_printed(&self) -> io::Result<()> {
        match self.lock().failed.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Where logs are written.
    pub(crate) fn notes(self: &std::sync::Arc<Self>) -> impl Write + use<> {
        Notes(std::sync::Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn erase(&self) {
        if self.is_shown() {
            write!(io::stderr(), "{ERASE}").ok();
        }
    }

    /// A line that is too long is cut by the terminal, which is told not to wrap it, and then to wrap again.
    fn draw(&self) {
        if self.is_shown() {
            write!(io::stderr(), "{ERASE}\x1b[?7l{}\x1b[?7h", self.status).ok();
        }
    }

    fn is_shown(&self) -> bool {
        !self.status.is_empty() && self.printing == 0
    }
}

/// Whether stdout goes to another program, which may well write to the terminal itself: a pager, `jq`.
fn is_read_by_a_program() -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let kind = stdout.and_then(|stdout| stdout.metadata()).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// A text that a terminal takes for text. Lines stay lines.
pub(crate) fn without_controls(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}

/// The same for what has to stay in its line.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

struct Notes(std::sync::Arc<Screen>);

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_note(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
