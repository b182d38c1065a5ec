use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::failure::Failure;
use super::faults::{Faults, Filter, PlannedBody, RawAnswer, SeenRequest, Switch, Verb};
use super::frames::error_frame;
use super::model::Interruption;
use super::resources::ResourceId;
use super::reviews::Rights;
use super::{ApiServer, lock};
use crate::api::Status;
use crate::object::{Kind, ObjectKey};

/// What goes wrong, and what was asked.
impl ApiServer {
    /// Forgets what happened up to now: open watches go on, but nobody resumes or pages on from before.
    pub fn forget_history(&self) {
        let mut model = lock(&self.model);
        let now = model.revision();
        model.collections.values_mut().for_each(|collection| collection.history.forget(now));
    }

    /// Keeps at most so many events of each kind; who is further behind loses the watch.
    pub fn limit_history(&self, events: usize) {
        lock(&self.model).limit_history(events);
    }

    /// Goes back to an earlier version, as a server does whose etcd was restored from a backup. Watches end.
    ///
    /// # Errors
    /// When that version is forgotten, or still to come.
    pub fn restore(&self, resource_version: &str) -> Result<(), Status> {
        self.restore_silently(resource_version)?;
        self.cut_watches();
        Ok(())
    }

    /// The same, but watches stay open. They are from the future now: nothing comes, not even a bookmark, until the
    /// server has passed what they have been shown. What it does up to there is shown to none of them.
    ///
    /// # Errors
    /// When that version is forgotten, or still to come.
    pub fn restore_silently(&self, resource_version: &str) -> Result<(), Status> {
        let restored = lock(&self.model).restore(parse(resource_version));
        restored.map_err(|failure| failure.status)
    }

    /// Answers the next `times` lists and streaming lists that name a version from an earlier state, whichever
    /// version they name, as a server does that ignores the parameter. Lists that name none show the truth.
    ///
    /// # Errors
    /// When that state is not known any more.
    pub fn list_the_past(&self, resource_version: &str, times: usize) -> Result<(), Status> {
        let (mut model, past) = (lock(&self.model), parse(resource_version));
        if past > model.revision() {
            return Err(Failure::too_large(past, model.revision()).status);
        }
        if model.collections.values().any(|collection| collection.history.after(past).is_err()) {
            return Err(Failure::list_too_old().status);
        }
        model.faults.list_the_past(past, times);
        Ok(())
    }

    /// Is several servers behind one address, each of which learns of everything so much later: lists and watches go
    /// to each of them in turn, and a watch stays where it is.
    ///
    /// What a replica shows is legal: not less than the version a list names, for which it waits three seconds before
    /// it answers 504, and the newest state if it names none. Objects are read from the newest state.
    pub fn replicas(&self, lags: impl IntoIterator<Item = Duration>) {
        let mut model = lock(&self.model);
        model.faults.set_replicas(lags.into_iter().collect());
        model.wake_watches();
    }

    /// Shows the next events of a kind to no watch, neither now nor when it resumes: a bug in etcd. Lists show the
    /// truth, and bookmarks go past it.
    pub fn lose_events(&self, kind: &Kind, events: usize) {
        lock(&self.model).faults.lose(ResourceId::of(kind), events);
    }

    /// Ends all open watches, as a server does that shuts down.
    pub fn cut_watches(&self) {
        lock(&self.model).interrupt(&Interruption::End, |_| true);
    }

    /// Breaks the connections of all open watches.
    pub fn break_watches(&self) {
        lock(&self.model).interrupt(&Interruption::Break, |_| true);
    }

    /// Loses the connections of all open watches, and nobody is told: nothing comes any more, not even an end. They
    /// never come back, as half-open connections do not.
    pub fn lose_watches(&self) {
        lock(&self.model).interrupt(&Interruption::Lose, |_| true);
    }

    /// Sends nothing to any watch, as a stuck proxy: no events, no bookmarks, no end at the timeout. Those that are
    /// opened meanwhile are answered, and silent. When it is over all of them go on.
    pub fn silence_watches(&self, silent: bool) {
        self.switch(Switch::WatchesSilenced, silent);
    }

    /// Ends all open watches of a kind with an `ERROR` event.
    pub fn fail_watches(&self, kind: &Kind, status: Status) {
        let frame = Bytes::from(error_frame(&Failure::from(status)));
        let resource = ResourceId::of(kind);
        let mut model = lock(&self.model);
        model.interrupt(&Interruption::Raw(frame), |watched| *watched == resource);
        model.interrupt(&Interruption::End, |watched| *watched == resource);
    }

    /// Sends bytes as they are into all open watches of a kind: garbage, or an event again, or in the wrong order.
    pub fn emit_raw_frame(&self, kind: &Kind, bytes: impl Into<Bytes>) {
        let resource = ResourceId::of(kind);
        let frame = Interruption::Raw(bytes.into());
        lock(&self.model).interrupt(&frame, |watched| *watched == resource);
    }

    /// Shows `text` instead of an object from now on: in lists, and to watches as `MODIFIED`.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn corrupt(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        text: impl Into<Bytes>,
    ) -> Result<(), Status> {
        let corrupted = lock(&self.model).corrupt(&ResourceId::of(kind), key, text.into());
        corrupted.map_err(|failure| failure.status)
    }

    /// Answers the next `times` requests with a failure; `usize::MAX` for all of them.
    pub fn refuse(&self, filter: Filter, status: Status, times: usize) {
        lock(&self.model).faults.plan(filter, PlannedBody::Status(Box::new(status)), times);
    }

    /// Answers the next `times` requests with anything, as a proxy might.
    pub fn answer_with(&self, filter: Filter, answer: RawAnswer, times: usize) {
        lock(&self.model).faults.plan(filter, PlannedBody::Raw(answer), times);
    }

    /// Answers later; no delay ends it.
    pub fn delay(&self, filter: Filter, delay: Duration) {
        lock(&self.model).faults.delay(filter, delay);
    }

    /// Sends no bookmarks, not even the one that ends initial events, until released.
    pub fn hold_bookmarks(&self, held: bool) {
        self.switch(Switch::BookmarksHeld, held);
    }

    /// Refuses connections made in process. The HTTP door stays open.
    pub fn refuse_connections(&self, refused: bool) {
        self.switch(Switch::ConnectionsRefused, refused);
    }

    /// Refuses `sendInitialEvents`, as servers do before 1.32 and in 1.33.
    #[must_use]
    pub fn without_streaming_lists(self) -> Self {
        self.allow_streaming_lists(false);
        self
    }

    /// Takes or refuses `sendInitialEvents` from now on.
    pub fn allow_streaming_lists(&self, allowed: bool) {
        self.switch(Switch::StreamingListsOff, !allowed);
    }

    /// Compresses streaming lists that came over HTTP and allow it: each flush is a gzip file of its own, as in 1.37.
    pub fn compress_streaming_lists(&self, compressed: bool) {
        self.switch(Switch::StreamingListsCompressed, compressed);
    }

    fn switch(&self, switch: Switch, on: bool) {
        let mut model = lock(&self.model);
        model.faults.set(switch, on);
        model.wake_watches();
    }

    /// Answers 401 over HTTP to whoever brings none of these tokens; if there are none, everybody may come in. Open
    /// watches go on, and who asks in process brings none.
    pub fn demand_tokens<'a>(&self, tokens: impl IntoIterator<Item = &'a str>) {
        let tokens = tokens.into_iter().map(str::to_owned).collect();
        lock(&self.model).faults.demand_tokens(tokens);
    }

    /// Answers 403 to a verb on a kind. Open watches go on.
    pub fn forbid(&self, kind: &Kind, verb: Verb) {
        lock(&self.model).faults.forbid(ResourceId::of(kind), verb);
    }

    /// Takes [`forbid`](Self::forbid) back.
    pub fn permit(&self, kind: &Kind, verb: Verb) {
        lock(&self.model).faults.permit(&ResourceId::of(kind), verb);
    }

    /// Allows what a `Role` or `ClusterRole` grants, whoever asks and in whichever namespace, and nothing else. Who may
    /// do what, and who they are, can be asked by reviews in JSON, as `kubeflect check` does; not by `kubectl auth`, which
    /// asks in protobuf.
    pub fn allow_only(&self, role: &serde_json::Value) {
        lock(&self.model).faults.allow_only(Rights::of_role(role));
    }

    /// Ends every fault: planned answers, delays, missing rights, demanded tokens, replicas, and what is held, silenced
    /// or refused.
    /// What was lost stays lost.
    pub fn heal(&self) {
        let mut model = lock(&self.model);
        model.faults = Faults::default();
        model.wake_watches();
    }

    /// What was asked, oldest first. Only the last ten thousand requests are remembered, unless
    /// [more are wanted](Self::remember_requests).
    pub fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.model).requests.iter().cloned().collect()
    }

    /// Remembers so many requests from now on.
    pub fn remember_requests(&self, requests: usize) {
        lock(&self.model).remembered_requests = requests;
    }

    /// How often each verb was asked for since the beginning, remembered or not.
    pub fn request_counts(&self) -> BTreeMap<Verb, u64> {
        lock(&self.model).request_counts.clone()
    }

    /// How many watches are being read.
    pub fn open_watches(&self) -> usize {
        lock(&self.model).open_watches.len()
    }
}

/// What is not a version is one that never comes.
fn parse(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(u64::MAX)
}
