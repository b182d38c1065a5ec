use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Context, Handler, Recipient, ResponseActFuture,
    WrapFuture as _,
};
use kubeflect::Kind;
use kubeflect::reflector::ResourceEvents;

use super::{Format, Lines};
use crate::cli::line::{Shown, push_json, push_text};

/// Makes lines of the changes of one reflector, and waits until a sink has them.
pub(super) struct Teller {
    kind: Kind,
    format: Format,
    writer: Recipient<Lines>,
}

impl Teller {
    pub(super) fn new(kind: Kind, format: Format, writer: Recipient<Lines>) -> Self {
        Self { kind, format, writer }
    }
}

impl Actor for Teller {
    type Context = Context<Self>;
}

impl<K: Shown> Handler<ResourceEvents<K>> for Teller {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, events: ResourceEvents<K>, _: &mut Context<Self>) -> Self::Result {
        let mut lines = Vec::new();
        for event in &events {
            match &self.format {
                Format::Json => push_json(&mut lines, &self.kind, event),
                Format::Text(screen) => push_text(&mut lines, &self.kind, event, screen),
            }
        }
        let told = self.writer.send(Lines(lines.into()));
        Box::pin(told.into_actor(self).map(|told, _, context| {
            // A sink that is gone ends the subscription with its teller.
            if told.is_err() {
                context.stop();
            }
        }))
    }
}
