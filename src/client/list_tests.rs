use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::*;

const LIMITS: ListLimits = ListLimits { item: 512, envelope: 512, total: 1 << 20 };

/// Feeds `text` in pieces of `size` bytes; gives the items, and what stood around them.
fn read(text: &[u8], size: usize) -> Result<(Vec<String>, ListEnvelope), ListProblem> {
    let mut decoder = ListDecoder::new(LIMITS);
    let mut items = Vec::new();
    for piece in text.chunks(size) {
        decoder.push(piece)?;
        while let Some(found) = decoder.next_item()? {
            items.push(match found {
                Found::Item(item) => item.to_owned(),
                Found::Large(beginning) => format!("large: {}", String::from_utf8_lossy(beginning)),
            });
        }
    }
    Ok((items, decoder.finish()?))
}

fn problem(text: &str) -> String {
    let whole = read(text.as_bytes(), text.len().max(1)).unwrap_err();
    assert_eq!(read(text.as_bytes(), 1).unwrap_err(), whole, "in any pieces");
    whole.to_string()
}

#[test]
fn the_parts_of_a_list_may_come_in_any_order() {
    let before = r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t"},"items":[{"a":1}, {"b":[]}]}"#;
    let after = r#" { "items" : [ {"a":1} ,{"b":[]} ] , "metadata":{"continue":"t","resourceVersion":"7"},"kind":"PodList" } "#;
    for text in [before, after] {
        for size in 1..=text.len() {
            let (items, envelope) = read(text.as_bytes(), size).unwrap();
            assert_eq!(items, [r#"{"a":1}"#, r#"{"b":[]}"#], "{size}");
            assert_eq!(envelope.metadata.resource_version, "7");
            assert_eq!(envelope.metadata.r#continue, "t");
        }
    }
}

#[test]
fn no_items_come_as_an_empty_array_or_as_null() {
    for items in ["[]", "[ ]", "null"] {
        let text = format!(r#"{{"kind":"PodList","items":{items}}}"#);
        assert!(read(text.as_bytes(), 3).unwrap().0.is_empty());
    }
}

#[test]
fn a_list_cut_short_anywhere_is_an_error() {
    let text = r#"{"kind":"PodList","metadata":{},"items":[{"a":"}]}"},{"b":2}]}"#;
    for end in 0..text.len() {
        let error = read(&text.as_bytes()[..end], 5).unwrap_err();
        assert_eq!(error, ListProblem::CutShort(end as u64));
    }
}

#[test]
fn what_is_no_list_is_refused_with_its_problem() {
    for (text, expected) in [
        (r#"{"kind":"PodList","metadata":{}}"#, "has no items"),
        (r#"{"kind":"Table","rows":[]}"#, r#"came as "Table""#),
        (r#"{"kind":"Pod","items":[]}"#, r#"came as "Pod""#),
        (r#"{"items":[]}"#, r#"came as """#),
        (r#"{"kind":"PodList","items":{}}"#, "has items that are not in an array"),
        (r#"{"kind":"PodList","items":nil}"#, "has items that are not in an array"),
        (r#"{"kind":"PodList","items":[],"it\u0065ms":[]}"#, "has its items twice"),
        (r#"{"kind":"PodList","items":[]}x"#, "can not be read: no JSON at byte 29"),
        (r#"{"kind":"PodList","items":[{},]}"#, "can not be read: no JSON at byte 30"),
        (r#"{"kind":"PodList","items":[{}{}]}"#, "can not be read: no JSON at byte 29"),
        (r#"{"kind":"PodList",}"#, "can not be read: no JSON at byte 18"),
        ("<html>", "can not be read: no JSON at byte 0"),
        ("[]", "can not be read: no JSON at byte 0"),
        ("", "was cut short after 0 bytes"),
    ] {
        assert_eq!(problem(text), expected, "{text}");
    }
    let latin = b"{\"kind\":\"PodList\",\"items\":[{\"a\":\"\xe9\"}]}";
    assert_eq!(read(latin, 7), Err(ListProblem::NoJson(36)));
    let bad = r#"{"kind":"PodList","metadata":{"resourceVersion":hunter2},"items":[]}"#;
    assert!(problem(bad).starts_with("can not be read: ") && !problem(bad).contains("hunter2"));
}

#[test]
fn each_part_has_a_cap_that_holds_before_the_part_is_whole() {
    let long = "x".repeat(600);
    for (text, expected) in [
        (format!(r#"{{"metadata":"{long}"#), "has more than 512 bytes beside its items"),
        (format!(r#"{{"{long}"#), "has more than 512 bytes beside its items"),
        (format!(r#"{{"items":[{}1]"#, "1,".repeat(600_000)), "is larger than 1048576 bytes"),
    ] {
        let error = read(text.as_bytes(), 100).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn many_small_parts_are_not_above_the_cap_of_one() {
    let items = vec![json!({ "name": "x".repeat(400) }); 500];
    let text = json!({ "kind": "PodList", "items": items }).to_string();
    assert_eq!(read(text.as_bytes(), 1000).unwrap().0.len(), 500);
}

/// What serde makes of the same document.
fn expected(text: &[u8]) -> Option<(Vec<Value>, ListEnvelope)> {
    #[derive(Deserialize)]
    struct Whole {
        // Null is fine, absence is not.
        #[serde(deserialize_with = "Option::deserialize")]
        items: Option<Vec<Value>>,
        #[serde(flatten)]
        _rest: std::collections::BTreeMap<String, IgnoredAny>,
    }
    let whole: Whole = serde_json::from_slice(text).ok()?;
    let envelope: ListEnvelope = serde_json::from_slice(text).ok()?;
    envelope.kind.ends_with("List").then(|| (whole.items.unwrap_or_default(), envelope))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\{}\\[\\],: \n\u{e9}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\{}]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_in_any_pieces_is_what_serde_makes_of_the_whole(
        items in prop::collection::vec(any_json(), 0..5),
        extra in any_json(),
        size in 1..60_usize,
        pretty: bool,
    ) {
        let list = json!({
            "kind": "WidgetList", "apiVersion": "v1", "items": items, "extra": extra, "zzz": 1,
            "metadata": { "resourceVersion": "12", "continue": "" },
        });
        let text = if pretty { serde_json::to_string_pretty(&list).unwrap() } else { list.to_string() };
        let (raw, envelope) = read(text.as_bytes(), size).unwrap();
        let parsed: Vec<Value> = raw.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
        prop_assert_eq!(Some((parsed, envelope)), expected(text.as_bytes()));
    }

    #[test]
    fn a_damaged_list_is_refused_or_read_as_serde_reads_it(
        items in prop::collection::vec(any_json(), 0..3),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"{}[]\",:\\ nx1".to_vec()),
        size in 1..60_usize,
    ) {
        let mut text = json!({ "kind": "WidgetList", "metadata": {}, "items": items }).to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let whole = read(&text, text.len());
        prop_assert_eq!(&read(&text, size), &whole);
        let parsed = whole.ok().and_then(|(raw, envelope)| {
            let items: Result<Vec<Value>, _> = raw.iter().map(|raw| serde_json::from_str(raw)).collect();
            Some((items.ok()?, envelope))
        });
        prop_assert_eq!(parsed, expected(&text));
    }
}

#[test]
fn an_item_above_its_cap_is_passed_over_and_only_its_beginning_is_kept() {
    let large = format!(r#"{{"name":"l","data":"{}"}}"#, "\\\"]}".repeat(300));
    let text = format!(r#"{{"kind":"PodList","items":[{{"a":1}},{large},{{"b":2}}]}}"#);
    let beginning = format!("large: {}", &large[..LIMITS.item]);
    for size in (1..50).chain([511, 512, 513, 1000, text.len()]) {
        let (items, _) = read(text.as_bytes(), size).unwrap();
        assert_eq!(items, [r#"{"a":1}"#, &beginning, r#"{"b":2}"#], "{size}");
    }
    for end in (text.len() - 100)..text.len() {
        let error = read(&text.as_bytes()[..end], 7).unwrap_err();
        assert_eq!(error, ListProblem::CutShort(end as u64));
    }
}
