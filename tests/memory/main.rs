//! What an object and an event cost in memory, in each representation, held to the numbers of `expected.rs`.
//!
//! Counted, not timed: from the bytes of an API server to a subscriber, on one thread, through the public API. Whoever
//! makes it worse by a tenth is told, and so is whoever makes it better: then the number is lowered.

mod expected;
#[path = "../bench/feed.rs"]
mod feed;
#[path = "../bench/placement.rs"]
mod placement;
#[path = "../bench/pods.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod pods;
mod run;

use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kubeflect::Options;
use kubeflect::object::{DynamicObject, Lazy, Prune};

use self::expected::{Costs, EXPECTED};
use self::placement::Placement;
use self::run::costs;

/// Better or worse by more than this part is told.
const TOLERANCE: f64 = 0.1;

fn measure(representation: &str) -> Costs {
    match representation {
        "typed" => costs::<Pod>(&Options::all()),
        "typed-pruned" => costs::<Pod>(&Options::all().prune(Prune::ManagedFields)),
        "lazy" => costs::<Lazy<Pod>>(&Options::all()),
        "lazy-pruned" => costs::<Lazy<Pod>>(&Options::all().prune(Prune::ManagedFields)),
        "dynamic" => costs::<DynamicObject>(&Options::all()),
        "metadata" => costs::<PartialObjectMeta<Pod>>(&Options::all()),
        "projection" => costs::<Placement>(&Options::all()),
        other => panic!("nobody knows how to measure {other}"),
    }
}

fn check(representation: &str) {
    let (_, expected) =
        EXPECTED.iter().find(|(name, _)| *name == representation).expect("it is in the table");
    let measured = measure(representation);
    println!("{representation}: {measured:#?}");
    let problems: Vec<String> = expected
        .named()
        .into_iter()
        .zip(measured.named())
        .filter_map(|((what, expected), (_, measured))| {
            let change = measured / expected - 1.0;
            let word = if change > 0.0 { "worse" } else { "better: lower the number" };
            (change.abs() > TOLERANCE)
                .then(|| format!("{what}: {measured:.1} instead of {expected:.1}, {word}"))
        })
        .collect();
    assert!(
        problems.is_empty(),
        "{representation} in tests/memory/expected.rs\n{}",
        problems.join("\n")
    );
}

#[test]
fn a_typed_object_costs_what_it_did() {
    check("typed");
}

#[test]
fn a_typed_object_without_managed_fields_costs_what_it_did() {
    check("typed-pruned");
}

#[test]
fn a_lazy_object_costs_what_it_did() {
    check("lazy");
}

#[test]
fn a_lazy_object_without_managed_fields_costs_what_it_did() {
    check("lazy-pruned");
}

#[test]
fn a_dynamic_object_costs_what_it_did() {
    check("dynamic");
}

#[test]
fn metadata_alone_costs_what_it_did() {
    check("metadata");
}

#[test]
fn a_projection_costs_what_it_did() {
    check("projection");
}

#[test]
fn the_same_costs_the_same_again() {
    let (one, other) = (measure("projection"), measure("projection"));
    assert_eq!(one.named(), other.named());
}
