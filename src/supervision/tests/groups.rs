//! Groups of long-lived actors.

use actix::Addr;
use futures::FutureExt;

use super::{Do, Journal, Subject, after, exact};
use crate::supervision::{ExitReason, Faults, Group, Hooks, MemberState, start};

/// A group of three subjects.
fn group(journal: &Journal, faults: &Faults) -> (Group, Vec<Addr<Subject>>) {
    let mut group = Group::new();
    let mut add = |name| {
        let subject = Subject::new(journal, faults).named(name);
        group.add(start(name, subject, exact(), Hooks::default()))
    };
    let addrs = ["first", "second", "third"].map(&mut add).into();
    (group, addrs)
}

fn states(group: &Group) -> Vec<MemberState> {
    group.status().into_iter().map(|member| member.state).collect()
}

/// What happened, without what is the same for all members.
fn ends(journal: &Journal) -> Vec<String> {
    let facts = journal.facts();
    facts
        .into_iter()
        .filter(|fact| fact.ends_with("stopping") || fact.ends_with("dropped"))
        .collect()
}

const REVERSED: [&str; 6] = [
    "third stopping",
    "third dropped",
    "second stopping",
    "second dropped",
    "first stopping",
    "first dropped",
];

#[actix::test]
async fn members_start_in_order_and_stop_in_reverse_each_after_the_other() {
    let journal = Journal::begin();
    let (mut group, addrs) = group(&journal, &Faults::none());
    after(1).await;
    assert_eq!(journal.facts(), ["first started", "second started", "third started"]);
    assert_eq!(states(&group), vec![MemberState::Running; 3]);

    group.stop().await;
    assert_eq!(ends(&journal), REVERSED);
    assert_eq!(states(&group), vec![MemberState::Stopped(ExitReason::Stopped); 3]);
    assert!(addrs.iter().all(|addr| !addr.connected()));
    group.stop().await;
    assert_eq!(ends(&journal).len(), 6, "once");
}

#[actix::test]
async fn a_stop_dropped_half_way_can_be_taken_up() {
    let journal = Journal::begin();
    let (mut group, _addrs) = group(&journal, &Faults::none());
    after(1).await;
    assert_eq!(group.stop().now_or_never(), None);
    after(1).await;
    assert_eq!(ends(&journal), REVERSED[..2], "only the last was told");
    group.stop().await;
    assert_eq!(ends(&journal), REVERSED);
}

#[actix::test]
async fn how_each_member_fares_can_be_asked() {
    let journal = Journal::begin();
    let faults = Faults::panic_at("second", "Count", 1).and_panic_at("third", "stopped", 1);
    let (mut group, addrs) = group(&journal, &faults);
    assert!(addrs[1].send(Do::Count).await.is_err());

    let second = &group.status()[1];
    let panicked = Some(ExitReason::Panicked("planned fault: second at Count, time 1".into()));
    assert!(matches!(second.state, MemberState::BackingOff { .. }));
    assert_eq!((&*second.name, second.restarts, &second.last_exit), ("second", 1, &panicked));
    assert_eq!((group.status()[0].restarts, &group.status()[0].state), (0, &MemberState::Running));

    assert_eq!(addrs[1].send(Do::Count).await, Ok(1));
    assert_eq!(states(&group), vec![MemberState::Running; 3]);

    group.stop().await;
    let third = ExitReason::Panicked("planned fault: third at stopped, time 1".into());
    let stopped = MemberState::Stopped(ExitReason::Stopped);
    assert_eq!(states(&group), [stopped.clone(), stopped, MemberState::Stopped(third)]);
}

#[actix::test]
async fn a_member_lives_though_nobody_else_holds_its_address() {
    let journal = Journal::begin();
    let (group, addrs) = group(&journal, &Faults::panic_at("first", "started", 1));
    drop(addrs);
    after(1000).await;
    assert_eq!(states(&group), vec![MemberState::Running; 3]);
    assert_eq!(group.status()[0].restarts, 1);
}

#[actix::test]
async fn dropping_a_group_stops_its_members_last_first() {
    let journal = Journal::begin();
    let (group, _addrs) = group(&journal, &Faults::none());
    after(1).await;
    drop(group);
    after(1).await;
    assert_eq!(ends(&journal), REVERSED);
}
