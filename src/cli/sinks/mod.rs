//! Whom changes are told to.
//!
//! Every sink takes [`Lines`], and answers when it has them for good: so a subscription waits for its sink, and joins
//! what piles up meanwhile. A [`Teller`] stands between a subscription and a sink.

mod events;
mod file;
mod rotating;
mod teller;
mod webhook;

use std::sync::Arc;

use actix::{Actor, Context, Handler, Message, Recipient};
use actix_rt::{Arbiter, ArbiterHandle};
use bytes::Bytes;
use kubeflect::config::{Output, SinkKind, SinkSettings};
use kubeflect::reflector::Delivery;
use kubeflect::{Reflector, SubscribeOptions, Subscription};

use self::events::EventServer;
use self::file::FileWriter;
use self::teller::Teller;
use self::webhook::Webhook;
use super::line::Shown;
use super::screen::Screen;

/// Whole lines, one for each change. Answered when they are written, or accepted.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Lines(pub(crate) Bytes);

/// Where the lines of several reflectors go.
pub(crate) struct Sink {
    settings: SinkSettings,
    kind: Kind,
}

enum Kind {
    /// An actor that has a thread of its own, on which it may take its time.
    Lines {
        arbiter: Arbiter,
        writer: Recipient<Lines>,
        format: Format,
    },
    Events(EventServer),
}

impl Kind {
    fn lines(format: Format, start: impl FnOnce(&ArbiterHandle) -> Recipient<Lines>) -> Self {
        let arbiter = Arbiter::new();
        let writer = start(&arbiter.handle());
        Self::Lines { arbiter, writer, format }
    }
}

/// For whom lines are written.
#[derive(Debug, Clone)]
enum Format {
    /// For programs.
    Json,
    /// For people, in the colours of a screen.
    Text(Arc<Screen>),
}

/// A setting that a sink can not be started with.
pub(crate) struct WrongSetting {
    pub(crate) key: &'static str,
    pub(crate) problem: String,
}

impl Sink {
    pub(crate) async fn start(
        settings: SinkSettings,
        screen: &Arc<Screen>,
    ) -> Result<Self, WrongSetting> {
        let kind = match &settings.kind {
            SinkKind::Events(events) => Kind::Events(EventServer::start(events).await?),
            SinkKind::Log => Kind::lines(Format::Text(Arc::clone(screen)), |on| stdout(on, screen)),
            SinkKind::Json(json) => match &json.output {
                Output::Stdout => Kind::lines(Format::Json, |on| stdout(on, screen)),
                Output::File(file) => {
                    let file = FileWriter::open(file, json)?;
                    Kind::lines(Format::Json, |on| file.start_on(on))
                }
            },
            SinkKind::Webhook(webhook) => {
                Kind::lines(Format::Json, |on| Webhook::new(webhook.clone()).start_on(on))
            }
        };
        Ok(Self { settings, kind })
    }

    pub(crate) fn settings(&self) -> &SinkSettings {
        &self.settings
    }

    /// Where it can be asked, for those that can be.
    pub(crate) fn url(&self) -> Option<String> {
        match &self.kind {
            Kind::Events(server) => Some(server.url()),
            Kind::Lines { .. } => None,
        }
    }

    /// Whether another one can not start before this one has stopped.
    pub(crate) fn is_in_the_way_of(&self, other: &SinkSettings) -> bool {
        match (&self.settings.kind, &other.kind) {
            (SinkKind::Events(this), SinkKind::Events(other)) => {
                this.listen == other.listen && this.listen.port() != 0
            }
            _ => false,
        }
    }

    /// Has it told of every object and every change of a reflector; none for a sink that waits to be asked.
    pub(crate) async fn join<K: Shown>(
        &self,
        own_name: &str,
        name: &str,
        reflector: &Reflector<K>,
    ) -> Option<Subscription<K>> {
        let options = SubscribeOptions::default().delivery(self.delivery()).name(own_name);
        match &self.kind {
            Kind::Events(server) => {
                server.offer(name, reflector.clone(), options);
                None
            }
            Kind::Lines { arbiter, writer, format } => {
                let teller = Teller::new(reflector.kind().clone(), format.clone(), writer.clone());
                let teller = Teller::start_in_arbiter(&arbiter.handle(), move |_| teller);
                reflector.subscribe_batches(teller, options).await.ok()
            }
        }
    }

    /// Tells it no more of a reflector that was not subscribed to.
    pub(crate) fn leave(&self, name: &str) {
        if let Kind::Events(server) = &self.kind {
            server.withdraw(name);
        }
    }

    pub(crate) async fn stop(&self) {
        match &self.kind {
            Kind::Events(server) => server.stop().await,
            Kind::Lines { arbiter, .. } => drop(arbiter.stop()),
        }
    }

    fn delivery(&self) -> Delivery {
        match self.settings.backlog {
            0 => Delivery::Latest,
            at_most => Delivery::EveryChange { at_most },
        }
    }
}

/// Writes to stdout.
struct Stdout(Arc<Screen>);

fn stdout(arbiter: &ArbiterHandle, screen: &Arc<Screen>) -> Recipient<Lines> {
    let stdout = Stdout(Arc::clone(screen));
    Stdout::start_in_arbiter(arbiter, move |_| stdout).recipient()
}

impl Actor for Stdout {
    type Context = Context<Self>;
}

impl Handler<Lines> for Stdout {
    type Result = ();

    fn handle(&mut self, lines: Lines, _: &mut Context<Self>) {
        self.0.print(&lines.0);
    }
}
