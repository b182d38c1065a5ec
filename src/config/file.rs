use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{InvalidConfig, InvalidSetting};

/// A configuration as it is written. Whoever reads it is given defaults for what is wrong, which is noted down: one
/// reading finds everything.
pub(super) struct File<'a> {
    name: String,
    text: &'a str,
    problems: RefCell<Vec<InvalidSetting>>,
}

/// One table of the file, from which settings are asked by name.
pub(super) struct Section<'a> {
    file: &'a File<'a>,
    /// `reflectors.pods`; empty for the whole file.
    path: String,
    line: Option<usize>,
    table: Option<&'a DeTable<'a>>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> File<'a> {
    /// Has `read` read the file.
    pub(super) fn read<T>(
        name: &Path,
        text: &'a str,
        read: impl for<'f> FnOnce(&Section<'f>) -> T,
    ) -> Result<T, InvalidConfig> {
        let file = File { name: name.display().to_string(), text, problems: RefCell::default() };
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map(|span| file.line_at(span.start));
            let problem = format!("is not TOML: {}", error.message().replace('\n', " "));
            InvalidConfig { problems: vec![file.problem(line, String::new(), problem)] }
        })?;
        let table = table.into_inner();
        let section = Section {
            file: &file,
            path: String::new(),
            line: None,
            table: Some(&table),
            asked: RefCell::default(),
        };
        let read = read(&section);
        section.finish();
        let mut problems = file.problems.take();
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(read) } else { Err(InvalidConfig { problems }) }
    }

    /// What is wrong with a setting of a file that could be read.
    pub(super) fn problem_at(
        name: &Path,
        text: &str,
        keys: &[&str],
        problem: &str,
    ) -> InvalidSetting {
        let file = File { name: name.display().to_string(), text, problems: RefCell::default() };
        let table = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
        file.located(&table, keys, problem)
    }

    /// With the line of the setting, or of the nearest table if it is left out.
    fn located(&self, table: &DeTable<'_>, keys: &[&str], problem: &str) -> InvalidSetting {
        let (mut table, mut line, mut found) = (Some(table), None, None);
        for key in keys {
            found = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == key));
            line = found.map(|(_, value)| self.line_at(value.span().start)).or(line);
            table = found.and_then(|(_, value)| value.get_ref().as_table());
        }
        let problem = match found {
            Some((_, value)) => format!("found {}, {problem}", shown(value.get_ref())),
            None => problem.to_owned(),
        };
        self.problem(line, keys.join("."), problem)
    }

    fn line_at(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn problem(&self, line: Option<usize>, key: String, problem: String) -> InvalidSetting {
        InvalidSetting { file: self.name.clone(), line, key, problem }
    }
}

impl<'a> Section<'a> {
    /// A table below this one. One that is not there has nothing in it.
    pub(super) fn section(&self, key: &'static str) -> Self {
        let found = self.find(key);
        let table = found.and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.refuse(key, &format!("write a table: [{}]", self.full(key)));
                None
            }
        });
        Section {
            file: self.file,
            path: self.full(key),
            line: found.map(|value| self.file.line_at(value.span().start)),
            table,
            asked: RefCell::default(),
        }
    }

    /// The tables below a key, by the names their writer gave them; none if the key is not there.
    pub(super) fn sections(&self, key: &'static str) -> Option<Vec<(String, Self)>> {
        let group = self.section(key);
        let mut sections = Vec::new();
        for (name, value) in group.table? {
            let name = name.get_ref().to_string();
            let path = format!("{}.{name}", group.path);
            let line = Some(self.file.line_at(value.span().start));
            let DeValue::Table(table) = value.get_ref() else {
                let problem = format!("found {}, write a table: [{path}]", shown(value.get_ref()));
                self.note(line, path, problem);
                continue;
            };
            let asked = RefCell::default();
            sections
                .push((name, Section { file: self.file, path, line, table: Some(table), asked }));
        }
        Some(sections)
    }

    /// A text that `read` understands; none if it is not there or empty.
    pub(super) fn text<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = match self.find(key)?.get_ref() {
            DeValue::String(text) if text.is_empty() => return None,
            DeValue::String(text) => read(text),
            _ => None,
        };
        if value.is_none() {
            self.refuse(key, allowed);
        }
        value
    }

    /// As [`text`](Self::text), where an empty one says nothing.
    pub(super) fn word<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        match self.find(key)?.get_ref() {
            DeValue::String(text) if text.is_empty() => {
                self.refuse(key, allowed);
                None
            }
            _ => self.text(key, allowed, read),
        }
    }

    /// A whole number of this range.
    pub(super) fn count(
        &self,
        key: &'static str,
        allowed: std::ops::RangeInclusive<usize>,
    ) -> Option<usize> {
        let number = match self.find(key)?.get_ref() {
            DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| allowed.contains(number));
        if number.is_none() {
            self.refuse(
                key,
                &format!("write a number from {} to {}", allowed.start(), allowed.end()),
            );
        }
        number
    }

    /// A list of texts, each of which `read` understands.
    pub(super) fn list<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.find(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.refuse(key, allowed);
            return None;
        };
        let mut list = Vec::new();
        for item in items {
            match item.get_ref().as_str().and_then(&read) {
                Some(value) => list.push(value),
                None => self.refuse_value(key, item, allowed),
            }
        }
        Some(list)
    }

    /// A table of texts by names of the writer's choice, each of which `read` understands.
    pub(super) fn map<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Vec<(String, T)> {
        let section = self.section(key);
        let mut map = Vec::new();
        for (name, value) in section.table.into_iter().flatten() {
            let name = name.get_ref().to_string();
            match value.get_ref().as_str().and_then(&read) {
                Some(read) => map.push((name, read)),
                None => {
                    let problem = format!("found {}, {allowed}", shown(value.get_ref()));
                    let line = Some(self.file.line_at(value.span().start));
                    self.note(line, format!("{}.{name}", section.path), problem);
                }
            }
        }
        map
    }

    /// As [`text`](Self::text), and has to be there.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if self.find(key).is_none() {
            self.note(self.line, self.full(key), format!("found nothing, {allowed}"));
        }
        self.word(key, allowed, read)
    }

    /// Refuses a setting of a table somewhere below this one.
    pub(super) fn refuse_below(&self, keys: &[&str], problem: &str) {
        if let Some(table) = self.table {
            let problem = self.file.located(table, keys, problem);
            self.file.problems.borrow_mut().push(problem);
        }
    }

    /// Refuses what a key has, saying what it may have.
    pub(super) fn refuse(&self, key: &'static str, allowed: &str) {
        match self.find(key) {
            Some(value) => self.refuse_value(key, value, allowed),
            None => self.note(self.line, self.full(key), allowed.to_owned()),
        }
    }

    /// Refuses the keys that nobody asked for.
    pub(super) fn finish(&self) {
        let asked = self.asked.borrow();
        for (key, value) in self.table.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if asked.contains(name) {
                continue;
            }
            let known: Vec<&str> = asked.iter().copied().collect();
            let line = Some(self.file.line_at(key.span().start));
            let problem = match value.get_ref() {
                DeValue::Table(_) => "found a table that is not known".to_owned(),
                _ => "found a setting that is not known".to_owned(),
            };
            let problem = format!("{problem}, write one of {}", known.join(", "));
            self.note(line, self.full(name), problem);
        }
    }

    fn find(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().insert(key);
        self.table?.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn refuse_value(&self, key: &str, value: &Spanned<DeValue<'_>>, allowed: &str) {
        let line = Some(self.file.line_at(value.span().start));
        let problem = format!("found {}, {allowed}", shown(value.get_ref()));
        self.note(line, self.full(key), problem);
    }

    fn note(&self, line: Option<usize>, key: String, problem: String) {
        let problem = self.file.problem(line, key, problem);
        self.file.problems.borrow_mut().push(problem);
    }

    fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A value as somebody would write it, in one short line.
fn shown(value: &DeValue<'_>) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
