//! Every test of client-go that is about this crate is ported here or named in README.md with the reason why not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Before the name of a ported test, in the comment of the test that ports it.
const CITATION: &str = "/// client-go: `";

/// client-go's tests by file. What is after a slash is one case of a test; a file without tests beside it is taken as
/// a whole.
const CATALOGUE: [(&str, &[&str]); 9] = [
    ("reflector_test.go", REFLECTOR),
    ("reflector_watchlist_test.go", STREAMING_LIST),
    ("delta_fifo_test.go", DELTA_FIFO),
    ("the_real_fifo_test.go", REAL_FIFO),
    ("shared_informer_test.go", SHARED_INFORMER),
    ("controller_test.go", CONTROLLER),
    ("store, index and what holds them", STORE),
    ("smaller files", SMALLER),
    ("outside tools/cache", OUTSIDE),
];

const REFLECTOR: &[&str] = &[
    "TestCloseWatchChannelOnError",
    "TestRunUntil",
    "TestReflectorResyncChan",
    "TestReflectorWatchStoppedBefore",
    "TestReflectorWatchStoppedAfter",
    "TestReflectorHandleWatchStoppedBefore",
    "TestReflectorHandleWatchStoppedAfter",
    "TestReflectorHandleWatchResultChanClosedBefore",
    "TestReflectorHandleWatchResultChanClosedAfter",
    "TestReflectorWatchHandler",
    "TestReflectorStopWatch",
    "TestReflectorListAndWatch/watch-list on",
    "TestReflectorListAndWatch/watch-list off",
    "TestReflectorListAndWatchWithErrors",
    "TestReflectorListAndWatchInitConnBackoff",
    "TestNewReflectorWithCustomBackoff/default",
    "TestNewReflectorWithCustomBackoff/custom",
    "TestBackoffOnTooManyRequests",
    "TestNoRelistOnTooManyRequests",
    "TestRetryInternalError/none",
    "TestRetryInternalError/30 s",
    "TestRetryInternalError/30 s with a jump",
    "TestReflectorResync",
    "TestReflectorWatchListPageSize",
    "TestReflectorNotPaginatingNotConsistentReads",
    "TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled",
    "TestReflectorResyncWithResourceVersion",
    "TestReflectorExpiredExactResourceVersion",
    "TestReflectorFullListIfExpired",
    "TestReflectorFullListIfTooLarge",
    "TestGetTypeDescriptionFromObject",
    "TestGetExpectedGVKFromObject",
    "TestWatchTimeout/unset",
    "TestWatchTimeout/1 s",
    "TestWatchTimeout/30 min",
    "TestReflectorResourceVersionUpdate",
    "TestReflectorListExtract",
    "TestReflectorReplacesStoreOnUnsafeDelete",
    "TestReflectorRespectStoreTransformer/RealFIFO",
    "TestReflectorRespectStoreTransformer/DeltaFIFO",
    "TestIsUnsupportedTableObject",
    "BenchmarkReflectorResyncChanMany",
    "BenchmarkExtractList",
    "BenchmarkExtractListWithAlloc",
    "BenchmarkEachListItem",
    "BenchmarkEachListItemWithAlloc",
    "BenchmarkReflectorList",
];

const STREAMING_LIST: &[&str] = &[
    "TestNewReflectorWithDisablementWatchList/off, supported",
    "TestNewReflectorWithDisablementWatchList/on, supported",
    "TestNewReflectorWithDisablementWatchList/on, unsupported",
    "TestNewReflectorWithDisablementWatchList/on, undeclared",
    "TestInitialEventsEndBookmarkTicker",
    "TestWatchListResourceVersion/no events",
    "TestWatchListResourceVersion/only ADDED",
    "TestWatchListResourceVersion/with the marker",
    "TestWatchList/no bookmark",
    "TestWatchList/gate off",
    "TestWatchList/any other error forces fallback",
    "TestWatchList/server without streaming",
    "TestWatchList/synced after bookmark",
    "TestWatchList/updates and deletes during streaming",
    "TestWatchList/429 retried",
    "TestWatchList/stream stopped before sync",
    "TestWatchList/stream stopped after sync",
    "TestWatchList/expiry after sync",
    "TestWatchList/annotation value \"false\"",
];

const DELTA_FIFO: &[&str] = &[
    "TestDeltaFIFO_basic",
    "TestDeltaFIFO_replaceWithDeleteDeltaIn",
    "TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue",
    "TestDeltaFIFO_addUpdate",
    "TestDeltaFIFO_transformer",
    "TestDeltaFIFO_enqueueingNoLister",
    "TestDeltaFIFO_enqueueingWithLister",
    "TestDeltaFIFO_addReplace",
    "TestDeltaFIFO_ResyncNonExisting",
    "TestDeltaFIFO_Resync",
    "TestDeltaFIFO_DeleteExistingNonPropagated",
    "TestDeltaFIFO_ReplaceMakesDeletions",
    "TestDeltaFIFO_ReplaceMakesDeletionsReplaced",
    "TestDeltaFIFO_ReplaceDeltaType",
    "TestDeltaFIFO_UpdateResyncRace",
    "TestDeltaFIFO_HasSyncedCorrectOnDeletion",
    "TestDeltaFIFO_detectLineJumpers",
    "TestDeltaFIFO_KeyOf",
    "TestDeltaFIFO_HasSynced",
    "TestDeltaFIFO_PopShouldUnblockWhenClosed",
    "BenchmarkDeltaFIFOListKeys",
];

const REAL_FIFO: &[&str] = &[
    "TestRealFIFO_basic",
    "TestRealFIFO_replaceWithDeleteDeltaIn",
    "TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue",
    "TestRealFIFO_addUpdate",
    "TestRealFIFO_transformer",
    "TestRealFIFO_enqueueingNoLister",
    "TestRealFIFO_enqueueingWithLister",
    "TestRealFIFO_addReplace",
    "TestRealFIFO_ResyncNonExisting",
    "TestRealFIFO_Resync",
    "TestRealFIFO_DeleteExistingNonPropagated",
    "TestRealFIFO_UpdateResyncRace",
    "TestRealFIFO_ReplaceMakesDeletions",
    "TestRealFIFO_ReplaceMakesDeletionsReplaced",
    "TestRealFIFO_HasSyncedCorrectOnDeletion",
    "TestRealFIFO_detectLineJumpers",
    "TestRealFIFO_KeyOf",
    "TestRealFIFO_HasSynced",
    "TestRealFIFO_PopShouldUnblockWhenClosed",
    "TestRealFIFO_PopMultipleDeltaInBatch",
    "TestRealFIFO_PopBrokenItemsInBatch",
    "TestRealFIFO_ReplaceAtomic",
    "TestRealFIFO_ReplaceAtomicPop",
    "TestRealFIFO_ResyncAtomic",
];

const SHARED_INFORMER: &[&str] = &[
    "TestIndexer",
    "TestListenerResyncPeriods",
    "TestListenerResyncPeriodsDelayed",
    "TestResyncCheckPeriod",
    "TestSharedInformerInitializationRace",
    "TestSharedInformerWatchDisruption",
    "TestSharedInformerErrorHandling",
    "TestSharedInformerStartRace",
    "TestSharedInformerTransformer",
    "TestSharedInformerRemoveHandler",
    "TestSharedInformerRemoveForeignHandler",
    "TestSharedInformerMultipleRegistration",
    "TestRemovingRemovedSharedInformer",
    "TestSharedInformerHandlerAbuse",
    "TestStateSharedInformer",
    "TestAddOnStoppedSharedInformer",
    "TestRemoveOnStoppedSharedInformer",
    "TestRemoveWhileActive",
    "TestAddWhileActive",
    "TestShutdown/before run",
    "TestShutdown/after sync",
    "TestShutdown/never run",
    "TestEventPanics",
    "TestRemoveEventHandler_AsynchronousPanic",
    "TestRemoveEventHandler_SynchronousShutdown",
    "TestShutDownEventHandler_Lifecycles/never started",
    "TestShutDownEventHandler_Lifecycles/added after start",
    "TestShutDownEventHandler_Lifecycles/added before start",
];

const CONTROLLER: &[&str] = &[
    "Example",
    "ExampleNewInformer",
    "TestHammerController",
    "TestUpdate",
    "TestPanicPropagated",
    "TestTransformingInformer",
    "TestTransformingInformerRace",
    "TestDeletionHandlingObjectToName",
    "TestDeletedObjectGetObjectName",
    "TestDeletedObjectGetKey",
    "TestProcessDeltasInBatch",
    "TestReplaceEvents/create",
    "TestReplaceEvents/delete all",
    "TestReplaceEvents/mixed",
    "TestResetWatch/atomic",
    "TestResetWatch/not atomic",
    "TestStoreResourceVersion",
    "TestStoreResourceVersionWithNonMetaTransform",
];

const STORE: &[&str] = &[
    "TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex",
    "TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex",
    "TestThreadSafeStoreIndexingFunctionsWithMultipleValues",
    "TestThreadSafeStoreRV",
    "BenchmarkIndexer",
    "TestGetIndexFuncValues",
    "TestMultiIndexKeys",
    "TestCache",
    "TestCacheWithTransformer",
    "TestFIFOCache",
    "TestUndeltaStore",
    "TestIndex",
    "TestKeyError",
    "TestCacheTransactionShouldIndexErrors",
    "TestWithStoreMetricsDefaulting",
    "undelta_store_test",
    "expiration_cache_test",
    "mutation_cache_test",
    "fifo_test",
    "heap_test",
    "listers_test: TestListAll",
];

const SMALLER: &[&str] = &[
    "BenchmarkListener",
    "TestRetryWithDeadline",
    "TestMutationDetector",
    "TestWaitFor/none",
    "TestWaitFor/all finish",
    "TestWaitFor/one never",
    "TestWaitFor/already cancelled",
    "TestWaitFor/custom cause",
    "TestWaitFor/all never",
    "TestSyncResult",
    "reflector_data_consistency_detector_test",
    "consistencydetector",
    "identity_test",
    "event_handler_name_test",
    "typed_test",
    "listwatch_test: TestToListWatcherWithWatchListSemantics",
    "synctrack_test",
    "lazy_test",
    "fake_controller_source_test",
];

const OUTSIDE: &[&str] = &[
    "pager_test: TestListPager_List",
    "pager_test: TestListPager_EachListItem",
    "pager_test: TestListPager_eachListPageBuffered",
    "retrywatcher_test",
    "informerwatcher_test",
    "until_test",
    "dynamicinformer/informer_test",
    "workqueue/queue_test",
    "delaying_queue_test",
    "default_rate_limiters_test",
    "rate_limiting_queue_test",
    "metrics_test",
    "parallelizer_test",
    "leaderelection_test",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

fn text(file: &str) -> String {
    fs::read_to_string(folder().join(file)).unwrap()
}

/// The files of this folder that are compiled.
fn modules() -> Vec<String> {
    let main = text("main.rs");
    let modules = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let own = modules.filter(|module| folder().join(format!("{module}.rs")).exists());
    own.map(|module| format!("{module}.rs")).collect()
}

/// What each test cites: client-go's name to the names of tests.
fn cited() -> BTreeMap<String, Vec<String>> {
    let mut cited: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in modules() {
        let text = text(&file);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some(name) = line.strip_prefix(CITATION) else { continue };
            let name = name.trim_end_matches('`');
            let mut after = lines[number..].iter().skip_while(|line| line.starts_with("///"));
            assert_eq!(after.next(), Some(&"#[test]"), "{name} is cited by no test of {file}");
            let test = after.next().unwrap().trim_start_matches("fn ").to_owned();
            cited.entry(name.to_owned()).or_default().push(test);
        }
    }
    cited
}

/// The names in the first column of README.md's last table, each as often as it is there.
fn excused() -> Vec<String> {
    let text = text("README.md");
    let (_, table) = text.split_once("## What does not apply").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let columns = rows.map(|row| row.split(" | ").next().unwrap());
    columns.flat_map(|column| column.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_test_of_client_go_is_ported_or_excused() {
    let known: BTreeSet<&str> = CATALOGUE.iter().flat_map(|(_, names)| *names).copied().collect();
    let (cited, excused) = (cited(), excused());
    let excused_once: BTreeSet<&str> = excused.iter().map(String::as_str).collect();
    assert_eq!(excused_once.len(), excused.len(), "a name is in the table twice");
    let mut problems = Vec::new();
    for name in &known {
        match (cited.contains_key(*name), excused_once.contains(name)) {
            (true, false) | (false, true) => {}
            (true, true) => problems.push(format!("{name} is ported, and excused")),
            (false, false) => problems.push(format!("{name} is neither ported nor excused")),
        }
    }
    let named = cited.keys().map(String::as_str).chain(excused_once.iter().copied());
    problems.extend(
        named.filter(|name| !known.contains(name)).map(|name| format!("{name} is not known")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_catalogue_is_as_long_as_it_was_counted() {
    let (cited, excused) = (cited(), excused());
    let counts: Vec<(usize, usize)> = CATALOGUE
        .iter()
        .map(|(_, names)| {
            let ported = names.iter().filter(|name| cited.contains_key(**name)).count();
            let excused = names.iter().filter(|name| excused.iter().any(|other| other == *name));
            (ported, excused.count())
        })
        .collect();
    assert_eq!(
        counts,
        [(40, 7), (19, 0), (20, 1), (23, 1), (26, 2), (18, 0), (12, 9), (13, 6), (5, 9)],
        "ported and excused, by file"
    );
    let names: usize = CATALOGUE.iter().map(|(_, names)| names.len()).sum();
    assert_eq!((names, cited.len(), excused.len()), (211, 176, 35));
}

#[test]
fn the_tests_and_files_named_in_the_readme_exist() {
    let own = modules().into_iter().map(|file| text(&file));
    let others =
        ["bootstrap", "runtime", "subscribers"].map(|file| text(&format!("../it/{file}.rs")));
    let tests: String = own.chain(others).collect();
    let readme = text("README.md");
    let excused = excused();
    let mut missing = Vec::new();
    for name in readme.split('`').skip(1).step_by(2) {
        if excused.iter().any(|excused| excused == name) {
            continue;
        }
        let is_test = name.matches('_').count() > 3 && !name.contains(['.', ' ']);
        let is_file = name.ends_with(".rs");
        let root = folder().join("../..");
        if is_test && !tests.contains(&format!("fn {name}()"))
            || is_file && !folder().join(name).exists() && !root.join(name).exists()
        {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
