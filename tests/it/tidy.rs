//! Rules about the code itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up: each uses only those before it.
const LAYERS: [&str; 11] = [
    "object",
    "telemetry",
    "api",
    "cache",
    "supervision",
    "client",
    "reflector",
    "runtime",
    "config",
    "embedded",
    "dashboard",
];

/// What the program is made of: above all of them, and outside of the library.
const PROGRAM: [&str; 2] = ["main", "cli"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn modules_use_only_the_layers_below_them() {
    let mut violations = Vec::new();
    for (height, layer) in LAYERS.iter().enumerate() {
        let folder = root().join("src").join(layer);
        let files =
            if folder.is_dir() { rust_files(&folder) } else { vec![folder.with_extension("rs")] };
        for path in files {
            for line in code(&path).lines() {
                for used in line.split("crate::").skip(1) {
                    let used = used.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                    let depth = LAYERS.iter().position(|layer| Some(*layer) == used);
                    if depth.is_none_or(|depth| height < depth) {
                        violations.push(format!("{}: {}", path.display(), line.trim()));
                    }
                }
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn every_module_has_its_layer() {
    let modules: BTreeSet<String> = fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "lib" && !PROGRAM.contains(&name.as_str()))
        .collect();
    assert_eq!(modules, LAYERS.map(str::to_owned).into());
}

/// In ARCHITECTURE.md, `a/path.rs` and `a_folder/` are files, and `CamelCase` is a type of ours.
#[test]
fn what_the_architecture_names_exists() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let source: String = rust_files(&root().join("src")).iter().map(|path| code(path)).collect();
    let mut missing = Vec::new();
    for name in text.split('`').skip(1).step_by(2) {
        let is_path = !name.contains([' ', ':', '<', '(', '*'])
            && (name.ends_with(".rs") || name.ends_with('/'));
        let is_type = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(char::is_alphanumeric);
        if is_path && !root().join(name).exists() && !root().join("src").join(name).exists() {
            missing.push(name);
        }
        let declared =
            || ["struct", "enum", "trait", "type"].iter().any(|word| declares(&source, word, name));
        if is_type
            && !declared()
            && !source.contains(&format!("    {name},"))
            && !source.contains(&format!("    {name} "))
        {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}");
}

/// In README.md every promise ends with a link to a file, whose title is the name of a test in it. Other links lead to
/// files too.
#[test]
fn every_promise_of_the_readme_is_held_by_a_test() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let promises = text.split("| held by |").nth(1).unwrap().split("\n\n").next().unwrap();
    let promises: Vec<&str> = promises.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(promises.len() > 10, "{promises:#?}");
    for promise in promises {
        let link = promise.split("[test](").nth(1).and_then(|link| link.split_once(" \""));
        let Some((path, title)) = link else { panic!("no test holds: {promise}") };
        let name = title.split('"').next().unwrap_or_default();
        let source = fs::read_to_string(root().join(path)).unwrap();
        assert!(declares(&source, "fn", name), "{path} has no {name}");
    }
    for link in text.split("](").skip(1) {
        let path = link.split([')', '#', ' ']).next().unwrap_or_default();
        assert!(root().join(path).exists(), "{path}");
    }
}

/// In TROUBLESHOOTING.md, what is in a heading of the third level between backticks is a message, in which `…` stands for
/// anything: its other parts stand in one text of the source, in this order.
#[test]
fn what_troubleshooting_explains_is_said() {
    let texts = texts_of_the_source();
    let mut unsaid = messages_explained();
    unsaid.retain(|message| !texts.iter().any(|text| has_in_order(text, message)));
    assert!(unsaid.is_empty(), "TROUBLESHOOTING.md explains what is not said: {unsaid:#?}");
}

#[test]
fn every_answer_of_a_server_is_explained() {
    let explained = messages_explained();
    let source = code(&root().join("src/api/error.rs"));
    let mut missing = Vec::new();
    for declared in source.split("#[error(\"").skip(1) {
        let begin = declared.split(['{', '"']).next().unwrap_or_default();
        if !explained.iter().any(|message| message.starts_with(begin)) {
            missing.push(begin);
        }
    }
    assert!(missing.is_empty(), "TROUBLESHOOTING.md lacks {missing:?}");
}

#[test]
fn nothing_is_ignored_or_left_to_do() {
    let mut found = Vec::new();
    let (ignored, to_do) = (concat!("#[", "ignore"), concat!("todo", "!("));
    for folder in ["src", "tests", "examples"] {
        for path in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains(ignored) || text.contains(to_do) {
                found.push(path);
            }
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

fn messages_explained() -> Vec<String> {
    let text = fs::read_to_string(root().join("TROUBLESHOOTING.md")).unwrap();
    let headings = text.lines().filter(|line| line.starts_with("### "));
    headings.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The lines of shipped code that hold a text, each text on one line and without escapes.
fn texts_of_the_source() -> Vec<String> {
    let is_test = |path: &PathBuf| {
        path.strip_prefix(root()).is_ok_and(|path| path.to_string_lossy().contains("test"))
    };
    let files = rust_files(&root().join("src")).into_iter().filter(|path| !is_test(path));
    let whole: String = files.map(|path| code(&path)).collect();
    let mut parts = whole.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |joined, part| joined + part.trim_start());
    let lines = joined.lines().filter(|line| line.contains('"'));
    lines.map(|line| line.replace("\\\"", "\"")).collect()
}

fn has_in_order(text: &str, message: &str) -> bool {
    let mut rest = text;
    message.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn declares(source: &str, word: &str, name: &str) -> bool {
    source.match_indices(&format!("{word} {name}")).any(|(at, found)| {
        !source[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// The text of a file without its comments and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
