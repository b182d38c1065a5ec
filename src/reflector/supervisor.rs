use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Supervised,
    WrapFuture as _,
};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::audit_timer::AuditTimer;
use super::delta_fifo_store::DeltaFifoStore;
use super::history::Older;
use super::lister::Lister;
use super::machine::{Effect, Input, Machine, WatchEnd};
use super::messages::{
    BeginEpoch, Epoch, Forget, Heard, InitialEventsEnded, Overdue, Restarted, WatchOpened,
};
use super::status::{Shared, lock};
use super::vigil::{Record, Vigilance};
use super::watcher::{Route, Watcher};
use super::{Condition, ErrorHandler, Freshness, Phase};
use crate::api::{ApiError, ListRequest, ListerWatcher, Selection, Verb, WatchRequest};
use crate::object::{Resource, ResourceVersion};
use crate::supervision::{self, Child, ExitReason, Faults};

/// Supervises one reflected resource: runs the machine, and carries out what it decides.
pub(super) struct Supervisor<K: Resource> {
    pub(super) machine: Machine,
    pub(super) selection: Arc<Selection>,
    pub(super) source: Rc<dyn ListerWatcher<K>>,
    pub(super) store: Addr<DeltaFifoStore<K>>,
    pub(super) shared: Arc<Shared<K>>,
    pub(super) on_error: Option<ErrorHandler>,
    pub(super) epoch: Epoch,
    pub(super) child: Option<AbortHandle>,
    pub(super) audits: Option<AuditTimer>,
    pub(super) faults: Faults,
}

/// The name the store is started with.
pub(super) const STORE: &str = "delta_fifo_store";

/// A server that takes longer to say whether it has a kind has not said so.
const DISCOVERY: Duration = Duration::from_secs(30);

/// How a lister or watcher ended that did not panic.
#[derive(Debug)]
pub(super) enum Outcome {
    Listed(ResourceVersion),
    ListFailed(ApiError),
    WatchEnded(WatchEnd, Record),
    /// Another actor crashed meanwhile, and that is what counts.
    Interrupted,
}

impl<K: Resource> Supervisor<K> {
    pub(super) fn step(&mut self, input: Input, context: &mut Context<Self>) {
        let happened = tracing::enabled!(tracing::Level::DEBUG).then(|| input.to_string());
        let effects = self.machine.step(input, Instant::now());
        if let Some(happened) = happened {
            let decided: Vec<String> = effects.iter().map(ToString::to_string).collect();
            let (kind, phase) = (&self.shared.kind, self.machine.phase());
            tracing::debug!(%kind, %phase, decided = decided.join(", "), "{happened}");
        }
        self.show_progress();
        for effect in effects {
            self.carry_out(effect, context);
        }
    }

    fn carry_out(&mut self, effect: Effect, context: &mut Context<Self>) {
        match effect {
            Effect::Wait(delay) => {
                context.run_later(delay, |supervisor, context| {
                    supervisor.faults.hit("supervisor", "WaitOver");
                    supervisor.step(Input::WaitOver, context);
                });
            }
            Effect::Report(verb, error) => self.report(verb, error),
            Effect::Abort => self.abort(),
            Effect::List { request, older } => {
                self.begin(context, move |supervisor, context| {
                    supervisor.list(request, older, context);
                });
            }
            Effect::Watch { request, older, vigilance } => {
                self.begin(context, move |supervisor, context| {
                    supervisor.watch(request, older, vigilance, context);
                });
            }
            Effect::AskWhetherServed(request) => self.ask_whether_served(request, context),
            Effect::Forget => {
                let forgotten = self.store.send(Forget).into_actor(self);
                // A store that crashed over it is told again: the kind is still missing.
                context.spawn(forgotten.map(|_, _, _| ()));
            }
        }
    }

    fn ask_whether_served(&mut self, request: ListRequest, context: &mut Context<Self>) {
        let epoch = self.next_epoch();
        let answer = tokio::time::timeout(DISCOVERY, self.source.is_served(request));
        context.spawn(answer.into_actor(self).map(move |answer, supervisor, context| {
            if supervisor.epoch == epoch {
                let waited = Err(ApiError::Timeout { waited: DISCOVERY });
                supervisor.step(Input::Served(answer.unwrap_or(waited)), context);
            }
        }));
    }

    /// Makes the store listen to a new child only, then starts it.
    fn begin(
        &mut self,
        context: &mut Context<Self>,
        start: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        let epoch = self.next_epoch();
        let begun = self.store.send(BeginEpoch(epoch)).into_actor(self);
        context.spawn(begun.map(move |position, supervisor, context| {
            // A store that crashed over it says so by being restarted.
            if supervisor.epoch == epoch && position.is_ok() {
                start(supervisor, context);
            }
        }));
    }

    fn list(&mut self, request: ListRequest, older: Older, context: &mut Context<Self>) {
        lock(&self.shared.requests).lists += 1;
        let outcome = Rc::new(Cell::new(None));
        let child = supervision::spawn(Lister {
            epoch: self.epoch,
            request,
            older,
            source: Rc::clone(&self.source),
            cached: self.shared.store.clone(),
            store: self.store.clone(),
            outcome: Rc::clone(&outcome),
            faults: self.faults.clone(),
        });
        self.attend(child, outcome, context);
    }

    fn watch(
        &mut self,
        request: WatchRequest,
        older: Older,
        vigilance: Vigilance,
        context: &mut Context<Self>,
    ) {
        lock(&self.shared.requests).watches += 1;
        let outcome = Rc::new(Cell::new(None));
        let route = Route {
            epoch: self.epoch,
            older,
            source: Rc::clone(&self.source),
            shared: Arc::clone(&self.shared),
            store: self.store.clone(),
            supervisor: context.address(),
            faults: self.faults.clone(),
        };
        let child = supervision::spawn(Watcher {
            request,
            vigilance,
            route: Rc::new(route),
            outcome: Rc::clone(&outcome),
        });
        self.attend(child, outcome, context);
    }

    /// Waits for the end of a child. Should this actor crash meanwhile, the child ends with it.
    fn attend<A: Actor>(
        &mut self,
        child: Child<A>,
        outcome: Rc<Cell<Option<Outcome>>>,
        context: &mut Context<Self>,
    ) {
        self.child = Some(child.abort_handle());
        let epoch = self.epoch;
        let ended = child.ended().into_actor(self).map(move |reason, supervisor, context| {
            if supervisor.epoch == epoch {
                supervisor.faults.hit("supervisor", "ChildEnded");
                supervisor.child = None;
                supervisor.settle(reason, outcome.take(), context);
            }
        });
        context.spawn(ended);
    }

    /// Closes the epoch of a child that ended: nothing of it is on its way any more when the store answers.
    fn settle(
        &mut self,
        reason: ExitReason,
        outcome: Option<Outcome>,
        context: &mut Context<Self>,
    ) {
        let epoch = self.next_epoch();
        let settled = self.store.send(BeginEpoch(epoch)).into_actor(self);
        context.spawn(settled.map(move |position, supervisor, context| {
            let Ok(position) = position else { return };
            if supervisor.epoch != epoch {
                return;
            }
            let input = match (outcome, reason) {
                (Some(Outcome::Listed(resource_version)), _) => Input::Listed { resource_version },
                (Some(Outcome::ListFailed(error)), _) => Input::ListFailed(error),
                (Some(Outcome::WatchEnded(end, record)), _) => {
                    Input::WatchEnded { end, position, record }
                }
                (Some(Outcome::Interrupted), _) => Input::StoreRestarted { position },
                (None, reason) => Input::ChildPanicked { panic: reason.to_string(), position },
            };
            supervisor.step(input, context);
        }));
    }

    fn report(&self, verb: Verb, error: ApiError) {
        lock(&self.shared.requests).failed(verb, error.clone());
        let before = self.shared.progress.borrow().condition.clone();
        let condition = Condition {
            verb,
            kind: self.shared.kind.clone(),
            namespace: self.selection.namespace.clone(),
            error,
            since: before.as_ref().map_or_else(Instant::now, |before| before.since),
            attempts: before.map_or(0, |before| before.attempts).saturating_add(1),
        };
        let detail = std::error::Error::source(&condition).map(ToString::to_string);
        tracing::warn!(attempts = condition.attempts, detail, "{condition}");
        self.shared.progress.send_modify(|progress| progress.condition = Some(condition.clone()));
        if let Some(on_error) = &self.on_error
            && catch_unwind(AssertUnwindSafe(|| on_error(&condition))).is_err()
        {
            tracing::error!(kind = %self.shared.kind, "the error handler panicked");
        }
    }

    fn show_progress(&self) {
        self.shared.progress.send_modify(|progress| {
            progress.phase = self.machine.phase();
            progress.freshness = self.machine.freshness().clone();
            if progress.phase == Phase::Watching || progress.freshness == Freshness::Fresh {
                progress.condition = None;
            }
            progress.next_attempt = self.machine.next_attempt();
        });
    }

    fn next_epoch(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }

    fn abort(&mut self) {
        self.next_epoch();
        if let Some(child) = self.child.take() {
            child.abort();
        }
    }
}

impl<K: Resource> Actor for Supervisor<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "started");
        self.schedule_audit(context);
        let epoch = self.next_epoch();
        let begun = self.store.send(BeginEpoch(epoch)).into_actor(self);
        context.spawn(begun.map(move |position, supervisor, context| {
            if let Ok(position) = position
                && supervisor.epoch == epoch
            {
                supervisor.step(Input::Start { position }, context);
            }
        }));
    }

    fn stopped(&mut self, context: &mut Context<Self>) {
        self.step(Input::Stop, context);
    }
}

impl<K: Resource> Supervised for Supervisor<K> {
    /// The cache and its position are the store's; what was under way is not known any more.
    fn restarting(&mut self, _: &mut Context<Self>) {
        self.abort();
    }
}

impl<K: Resource> Handler<WatchOpened> for Supervisor<K> {
    type Result = ();

    fn handle(&mut self, WatchOpened(epoch): WatchOpened, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "WatchOpened");
        if epoch == self.epoch {
            self.step(Input::WatchOpened, context);
        }
    }
}

impl<K: Resource> Handler<Overdue> for Supervisor<K> {
    type Result = ();

    fn handle(&mut self, Overdue(epoch): Overdue, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "Overdue");
        if epoch == self.epoch {
            self.step(Input::Overdue, context);
        }
    }
}

impl<K: Resource> Handler<Heard> for Supervisor<K> {
    type Result = ();

    fn handle(&mut self, Heard(epoch): Heard, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "Heard");
        if epoch == self.epoch {
            self.step(Input::Heard, context);
        }
    }
}

impl<K: Resource> Handler<InitialEventsEnded> for Supervisor<K> {
    type Result = ();

    fn handle(&mut self, ended: InitialEventsEnded, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "InitialEventsEnded");
        if ended.epoch == self.epoch {
            self.step(
                Input::InitialEventsEnded { resource_version: ended.resource_version },
                context,
            );
        }
    }
}

impl<K: Resource> Handler<Restarted> for Supervisor<K> {
    type Result = ();

    fn handle(&mut self, Restarted(report): Restarted, context: &mut Context<Self>) {
        self.faults.hit("supervisor", "Restarted");
        if &*report.name == STORE {
            let position = self.shared.store.snapshot().resource_version().cloned();
            self.step(Input::StoreRestarted { position }, context);
        }
    }
}
