use std::error::Error;

use serde_json::{Value, json};

use super::advice::advice;
use super::{Clock, Dashboard, lock};
use crate::reflector::{
    Condition, Delivery, Failure, Freshness, Phase, ReflectorStatus, SubscriberStatus,
};
use crate::supervision::{MemberState, MemberStatus, Restart};

impl Dashboard {
    /// Everything there is to know, but for what time it is: equal if nothing happened.
    pub(super) fn known(&self) -> Value {
        let pending = self.pending().into_iter();
        let pending = pending.map(|(name, reason)| json!({ "name": name, "reason": reason }));
        json!({ "reflectors": self.reflectors(), "pending": pending.collect::<Vec<_>>() })
    }

    fn reflectors(&self) -> Value {
        let clock = self.inner.clock;
        let now = clock.now();
        let statuses = self.inner.runtime.status();
        let mut journal = lock(&self.inner.journal);
        journal.retain(|id| statuses.iter().any(|status| status.id == id));
        let shown = statuses.iter().map(|status| {
            let mut shown = reflector(status, clock);
            shown["rates"] = json!(journal.rates(status.id, now));
            shown
        });
        shown.collect()
    }

    pub(super) fn status(&self, known: &Value) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "boot": self.inner.boot,
            "now": self.inner.clock.now(),
            "alive": self.inner.runtime.is_alive(),
            "stopped": self.inner.runtime.is_stopped(),
            "reflectors": known["reflectors"],
            "pending": known["pending"],
        })
    }
}

fn reflector(status: &ReflectorStatus, clock: Clock) -> Value {
    let quarantined = status.quarantined.objects.iter();
    json!({
        "id": status.id,
        "name": status.name.as_deref(),
        "resource": status.kind.to_string(),
        "apiVersion": status.kind.api_version(),
        "kind": status.kind.kind,
        "selection": {
            "namespace": status.selection.namespace,
            "labels": status.selection.labels,
            "fields": status.selection.fields,
        },
        "phase": status.phase.to_string(),
        "synced": status.synced,
        "health": health(status),
        "freshness": freshness(&status.freshness, clock),
        "objects": status.objects,
        "resourceVersion": status.resource_version.as_ref().map(ToString::to_string),
        "queue": status.queue,
        "condition": status.condition.as_ref().map(|it| condition(it, clock)),
        "nextAttempt": status.next_attempt.map(|at| clock.at(at)),
        "changes": {
            "added": status.changes.added,
            "updated": status.changes.updated,
            "deleted": status.changes.deleted,
            "resynced": status.changes.resynced,
            "total": status.changes.total(),
        },
        "requests": {
            "lists": status.requests.lists,
            "watches": status.requests.watches,
            "failures": status.requests.failures,
            "lastFailures":
                status.requests.last_failures.iter().map(|it| failure(it, clock)).collect::<Vec<_>>(),
        },
        "actors": status.actors.iter().map(|it| actor(it, clock)).collect::<Vec<_>>(),
        "subscribers": status.subscribers.iter().map(subscriber).collect::<Vec<_>>(),
        "quarantined": {
            "objects": quarantined
                .map(|(key, reason)| json!({ "object": key.to_string(), "reason": reason }))
                .collect::<Vec<_>>(),
            "others": status.quarantined.others,
            "lastOther": status.quarantined.last_other,
        },
        "oddities": {
            "lateEvents": status.oddities.late_events,
            "lateBookmarks": status.oddities.late_bookmarks,
            "resurrections": status.oddities.resurrections,
            "olderLists": status.oddities.older_lists,
            "rewinds": status.oddities.rewinds,
            "unknownEvents": status.oddities.unknown_events,
        },
        "audits": {
            "done": status.audits.done,
            "skipped": status.audits.skipped,
            "differences": status.audits.differences,
            "lastFound": status.audits.last_found,
        },
    })
}

/// How worried a reader should be: `good`, `busy`, `poor` or `bad`.
fn health(status: &ReflectorStatus) -> &'static str {
    let is_down = |actor: &MemberStatus| actor.state != MemberState::Running;
    let needs_help = status.condition.as_ref().is_some_and(Condition::needs_help);
    if matches!(status.phase, Phase::Failed | Phase::Stopped) || needs_help {
        "bad"
    } else if status.condition.is_some()
        || status.phase == Phase::BackingOff
        || matches!(status.freshness, Freshness::Stale { .. })
        || status.actors.iter().any(is_down)
    {
        "poor"
    } else if status.synced && status.phase == Phase::Watching {
        "good"
    } else {
        "busy"
    }
}

fn freshness(freshness: &Freshness, clock: Clock) -> Value {
    match freshness {
        Freshness::Unknown => json!({ "state": "unknown" }),
        Freshness::Fresh => json!({ "state": "fresh" }),
        Freshness::Stale { since, reason } => {
            json!({ "state": "stale", "since": clock.at(*since), "reason": reason })
        }
    }
}

fn condition(condition: &Condition, clock: Clock) -> Value {
    json!({
        "message": with_causes(condition),
        "verb": condition.verb.to_string(),
        "since": clock.at(condition.since),
        "attempts": condition.attempts,
        "needsHelp": condition.needs_help(),
        "advice": advice(condition),
    })
}

fn failure(failure: &Failure, clock: Clock) -> Value {
    json!({
        "at": clock.at(failure.at),
        "verb": failure.verb.to_string(),
        "error": with_causes(&failure.error),
    })
}

/// What went wrong, and why, cause by cause.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn actor(actor: &MemberStatus, clock: Clock) -> Value {
    let (state, until) = match &actor.state {
        MemberState::Running => ("running", None),
        MemberState::BackingOff { until } => ("backing off", Some(clock.at(*until))),
        MemberState::Escalated { until } => ("restarted too often", Some(clock.at(*until))),
        MemberState::Stopped(_) => ("stopped", None),
    };
    let restarts = actor.last_restarts.iter().map(|Restart { at, reason, delay }| {
        json!({
            "at": clock.at(*at),
            "reason": reason.to_string(),
            "delay": u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        })
    });
    json!({
        "name": &*actor.name,
        "state": state,
        "until": until,
        "restarts": actor.restarts,
        "lastExit": actor.last_exit.as_ref().map(ToString::to_string),
        "lastRestarts": restarts.collect::<Vec<_>>(),
    })
}

fn subscriber(subscriber: &SubscriberStatus) -> Value {
    let (policy, at_most) = match subscriber.delivery {
        Delivery::EveryChange { at_most } => ("every change", Some(at_most)),
        Delivery::Latest => ("latest", None),
    };
    json!({
        "id": subscriber.id,
        "name": subscriber.name.as_deref(),
        "policy": policy,
        "atMost": at_most,
        "pending": subscriber.pending,
        "delivered": subscriber.delivered,
        "coalesced": subscriber.coalesced,
        "synced": subscriber.synced,
    })
}
