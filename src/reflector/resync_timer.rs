use std::panic::{AssertUnwindSafe, catch_unwind};

use actix::{
    Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Supervised,
    WrapFuture as _,
};
use tokio::time::Instant;

use super::ShouldResync;
use super::delta_fifo_store::DeltaFifoStore;
use super::messages::{Resync, Schedule, Unschedule};
use super::resync::ResyncSchedule;
use crate::object::Resource;
use crate::supervision::Faults;

/// Tells the store when which subscriptions are due to look at everything again. Asks no server.
pub(super) struct ResyncTimer<K: Resource> {
    schedule: ResyncSchedule,
    should_resync: Option<ShouldResync>,
    store: Addr<DeltaFifoStore<K>>,
    faults: Faults,
}

impl<K: Resource> ResyncTimer<K> {
    pub(super) fn new(
        schedule: ResyncSchedule,
        should_resync: Option<ShouldResync>,
        store: Addr<DeltaFifoStore<K>>,
        faults: Faults,
    ) -> Self {
        Self { schedule, should_resync, store, faults }
    }

    /// A hook that panics wants nothing.
    fn is_wanted(&self) -> bool {
        let wanted =
            |hook: &ShouldResync| catch_unwind(AssertUnwindSafe(|| hook())).unwrap_or(false);
        self.should_resync.as_ref().is_none_or(wanted)
    }

    fn tick(&mut self, context: &mut Context<Self>) {
        let Some(period) = self.schedule.check_period() else { return };
        // The next tick comes a period after this resync is done, as with client-go.
        let tick = tokio::time::sleep(period).into_actor(self).then(|(), timer, _| {
            timer.faults.hit("resync_timer", "tick");
            let due = timer.schedule.due(Instant::now());
            let wanted = !due.is_empty() && timer.is_wanted();
            let store = timer.store.clone();
            async move {
                if wanted {
                    // A store that crashes over it relists: that is more than a resync.
                    store.send(Resync { due }).await.ok();
                }
            }
            .into_actor(timer)
        });
        context.spawn(tick.map(|(), timer, context| timer.tick(context)));
    }
}

impl<K: Resource> Actor for ResyncTimer<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.faults.hit("resync_timer", "started");
        self.schedule.start();
        self.tick(context);
    }
}

/// The schedule survives; `started` arms the timer again.
impl<K: Resource> Supervised for ResyncTimer<K> {}

impl<K: Resource> Handler<Schedule> for ResyncTimer<K> {
    type Result = ();

    fn handle(&mut self, Schedule { id, period }: Schedule, _: &mut Context<Self>) {
        self.faults.hit("resync_timer", "Schedule");
        self.schedule.add(id, period, Instant::now());
    }
}

impl<K: Resource> Handler<Unschedule> for ResyncTimer<K> {
    type Result = ();

    fn handle(&mut self, Unschedule(id): Unschedule, _: &mut Context<Self>) {
        self.faults.hit("resync_timer", "Unschedule");
        self.schedule.remove(id);
    }
}
