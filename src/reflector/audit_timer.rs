use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{ActorFutureExt as _, AsyncContext as _, Context, WrapFuture as _};

use super::Phase;
use super::auditor::{Audited, Auditor};
use super::machine::Input;
use super::status::lock;
use super::supervisor::Supervisor;
use crate::object::Resource;
use crate::supervision;

/// So many differences are shown.
const SHOWN: usize = 10;

/// When to compare the cache with the server.
#[derive(Debug)]
pub(super) struct AuditTimer {
    period: Duration,
    rng: fastrand::Rng,
}

impl AuditTimer {
    pub(super) fn new(period: Duration, rng: fastrand::Rng) -> Self {
        Self { period, rng }
    }

    fn next(&mut self) -> Duration {
        self.period.mul_f64(1.0 + self.rng.f64())
    }
}

impl<K: Resource> Supervisor<K> {
    pub(super) fn schedule_audit(&mut self, context: &mut Context<Self>) {
        let Some(delay) = self.audits.as_mut().map(AuditTimer::next) else { return };
        context.run_later(delay, |supervisor, context| {
            // There is something to compare only while the watch is there.
            match supervisor.machine.phase() {
                Phase::Watching => supervisor.audit(context),
                _ => supervisor.schedule_audit(context),
            }
        });
    }

    fn audit(&mut self, context: &mut Context<Self>) {
        let outcome = Rc::new(Cell::new(None));
        let child = supervision::spawn(Auditor {
            source: Rc::clone(&self.source),
            selection: Arc::clone(&self.selection),
            shared: Arc::clone(&self.shared),
            outcome: Rc::clone(&outcome),
            faults: self.faults.clone(),
        });
        let ended = child.ended().into_actor(self).map(move |_, supervisor, context| {
            if let Some(audited) = outcome.take() {
                supervisor.note(audited, context);
            }
            supervisor.schedule_audit(context);
        });
        context.spawn(ended);
    }

    fn note(&mut self, audited: Audited, context: &mut Context<Self>) {
        let kind = &self.shared.kind;
        match audited {
            Audited::Skipped(error) => {
                tracing::info!(%kind, %error, "the cache was not compared with the server");
                lock(&self.shared.audits).skipped += 1;
            }
            Audited::Compared(differences) if differences.is_empty() => {
                lock(&self.shared.audits).done += 1;
            }
            Audited::Compared(differences) => {
                tracing::error!(%kind, count = differences.len(), first = differences[0], "the cache differs from the server");
                let mut audits = lock(&self.shared.audits);
                audits.done += 1;
                audits.differences += differences.len() as u64;
                audits.last_found = differences.into_iter().take(SHOWN).collect();
                drop(audits);
                self.step(Input::Drifted, context);
            }
        }
    }
}
