use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Secret};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// What `serde_json` makes of it.
fn expected<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Unread> {
    serde_json::from_str(json).map_err(|_error| Unread)
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Everything<'a> {
    text: &'a str,
    owned: Option<String>,
    numbers: Vec<i64>,
    small: Option<u8>,
    float: Option<f64>,
    is_it: Option<bool>,
    pair: Option<(u8, String)>,
    unit: Option<()>,
    letter: Option<char>,
    wrapped: Option<Wrapped>,
    choice: Option<Choice>,
    by_number: Option<BTreeMap<u8, u8>>,
    by_choice: Option<BTreeMap<Choice, u8>>,
    any: Option<Value>,
    #[serde(default)]
    tagged: Vec<Tagged>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(Vec<u32>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Choice {
    One,
    Many(Vec<u8>),
    Pair(u8, u8),
    Named { value: u8 },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    First { value: u8 },
    Second,
}

#[test]
fn every_type_is_read_as_serde_json_reads_it() {
    for member in [
        r#""owned":"a\nb\u0041""#,
        r#""owned":null,"small":0"#,
        r#""owned":7"#,
        r#""numbers":[3]"#,
        r#""small":255"#,
        r#""small":256"#,
        r#""small":-1"#,
        r#""small":01"#,
        r#""small":1.0"#,
        r#""float":1.5e3"#,
        r#""float":-0"#,
        r#""float":7"#,
        r#""float":1e999"#,
        r#""float":1.e"#,
        r#""isIt":true"#,
        r#""isIt":tru"#,
        r#""isIt":"true""#,
        r#""pair":[1,"x"]"#,
        r#""pair":[1]"#,
        r#""pair":[1,"x",2]"#,
        r#""unit":null"#,
        r#""letter":"é""#,
        r#""letter":"ab""#,
        r#""wrapped":[1,2,3]"#,
        r#""choice":"One""#,
        r#""choice":"Two""#,
        r#""choice":"\u004fne""#,
        r#""choice":{"Many":[1,2]}"#,
        r#""choice":{"Pair":[1,2]}"#,
        r#""choice":{"Named":{"value":1}}"#,
        r#""choice":{"One":null}"#,
        r#""choice":{"Many":[1],"One":null}"#,
        r#""byNumber":{"1":2}"#,
        r#""byChoice":{"One":2}"#,
        r#""any":[1,-2,3.5,"x",{"a":[]},null,18446744073709551615,123456789012345678901234567890]"#,
        r#""tagged":[{"type":"First","value":1},{"value":2,"type":"First"},{"type":"Second"}]"#,
        r#""unknown":{"a":["]}"]},"small":1"#,
        r#""small":1,"small":2"#,
        r#""small" : 1 "#,
        r#""small":1,"#,
        r#""small":1 2"#,
        r#"small:1"#,
    ] {
        let json = format!(r#"{{"text":"plain","numbers":[1,-2],{member}}}"#)
            .replace(r#""numbers":[1,-2],"numbers""#, r#""numbers""#);
        let read = read::<Everything<'_>>(&json);
        let expected = expected::<Everything<'_>>(&json);
        // What is unusual may be left to serde_json; what is read has to be the same.
        let is_left = [r#""byNumber""#].iter().any(|unusual| member.contains(unusual));
        assert!(read == expected || (is_left && read.is_err()), "{json}: {read:?}, {expected:?}");
    }
}

#[test]
fn a_document_is_one_value_and_no_more() {
    for json in [
        "1",
        " 1 ",
        "1 2",
        "",
        " ",
        "[1]]",
        "{}{}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "[1,2",
        r#"{"a":1,}"#,
        "nul",
    ] {
        assert_eq!(read::<Value>(json), expected::<Value>(json), "{json}");
    }
}

#[test]
fn what_nobody_asks_for_is_passed_over_unread() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Small {
        a: u8,
    }
    assert_eq!(read(r#"{"b":{[no json]},"a":1}"#), Ok(Small { a: 1 }));
    assert_eq!(read::<Small>(r#"{"b":{,"a":1}"#), Err(Unread), "it has no end");
}

#[test]
fn what_is_nested_too_deep_is_left_alone() {
    for (depth, is_read) in [(DEPTH, true), (DEPTH + 1, false), (100_000, false)] {
        let json = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(read::<Value>(&json).is_ok(), is_read, "{depth}");
    }
}

/// `serde_json` can not know how many come, and makes room for more.
#[test]
fn an_array_takes_no_more_room_than_it_needs() {
    let numbers: Vec<u64> = read("[1,2,3,4,5]").unwrap();
    assert_eq!((numbers.len(), numbers.capacity()), (5, 5));
    let none: Vec<u64> = read("[]").unwrap();
    assert_eq!(none.capacity(), 0);
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "main", "args": ["x"] }] },
        "status": { "podIPs": [{ "ip": "::1" }] },
    });
    let pod: Pod = read(&pod.to_string()).unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!(spec.containers[0].args.as_ref().unwrap().capacity(), 1);
    assert_eq!(pod.status.unwrap().pod_ips.unwrap().capacity(), 1);
}

#[test]
fn kubernetes_types_are_read_as_serde_json_reads_them() {
    let secret = r#"{"metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"key":"aGVsbG8="}}"#;
    assert_eq!(read::<Secret>(secret), expected::<Secret>(secret));
    let pod = json!({
        "metadata": {
            "name": "a", "generation": 3, "labels": { "a\"b": "c" },
            "managedFields": [{ "fieldsV1": { "f:metadata": { "k:{\"uid\":\"1\"}": {} } } }],
        },
        "spec": { "containers": [{
            "name": "main", "ports": [{ "containerPort": 80 }],
            "livenessProbe": { "httpGet": { "port": "http" }, "periodSeconds": 10 },
            "readinessProbe": { "httpGet": { "port": 8080 } },
            "resources": { "limits": { "cpu": "1", "memory": 1 } },
        }] },
    });
    let pod = pod.to_string();
    assert_eq!(read::<Pod>(&pod), expected::<Pod>(&pod));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\\\é\n\u{1}/{}\\[\\],: ]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\é]{0,20}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_read_as_serde_json_reads_it(value in any_value(), pretty: bool) {
        let json = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(read::<Value>(&json), expected::<Value>(&json));
    }

    /// Where nothing is passed over, it reads what `serde_json` reads and nothing else.
    #[test]
    fn a_broken_document_is_not_read(value in any_value(), place: prop::sample::Index, with in "[\"\\\\{}\\[\\],:0-9a-z ]") {
        let mut json = value.to_string();
        let places: Vec<usize> = json.char_indices().map(|(at, _)| at).collect();
        let at = places[place.index(places.len())];
        let end = at + json[at..].chars().next().map_or(0, char::len_utf8);
        json.replace_range(at..end, &with);
        prop_assert_eq!(read::<Value>(&json), expected::<Value>(&json));
    }
}
