use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::{Actor, Context, Handler};
use k8s_openapi::jiff::Timestamp;
use kubeflect::object::{DynamicObject, Scope};
use kubeflect::reflector::ResourceEvents;
use kubeflect::{Kind, ObjectKey, ResourceEvent};
use tokio::sync::Notify;

use super::{Format, WatchArguments};
use crate::cli::columns::Columns;
use crate::cli::line::{colour_of, event_name, object_of, push_json};
use crate::cli::screen::{Screen, one_line};
use crate::cli::table::Table;

/// Prints what it is told of one kind.
#[allow(clippy::struct_excessive_bools, reason = "what is printed and what is not")]
pub(super) struct Printer {
    kind: Kind,
    format: Format,
    /// Whether the snapshot is all that is printed. Then a row need not say what happened.
    once: bool,
    is_done: bool,
    with_namespaces: bool,
    columns: Columns,
    /// The rows of the first snapshot, until all of them are there.
    first: Option<BTreeMap<ObjectKey, Vec<String>>>,
    table: Table,
    /// Whether one object was asked for by its name.
    pub(super) is_one: bool,
    /// ` in shop`, or nothing where there is no namespace or any will do.
    pub(super) place: String,
    pub(super) synced: Arc<Notify>,
    pub(super) printed: Arc<AtomicU64>,
    screen: Arc<Screen>,
}

impl Actor for Printer {
    type Context = Context<Self>;
}

impl Handler<ResourceEvents<DynamicObject>> for Printer {
    type Result = ();

    fn handle(&mut self, events: ResourceEvents<DynamicObject>, _: &mut Context<Self>) {
        if self.is_done {
            return;
        }
        let synced = events.iter().position(|event| matches!(event, ResourceEvent::Synced));
        // What comes behind the snapshot was not asked for.
        self.is_done = self.once && synced.is_some();
        let asked_for = match synced {
            Some(synced) if self.once => &events[..=synced],
            _ => &events[..],
        };
        let mut lines = Vec::new();
        for event in asked_for {
            match self.format {
                Format::Json => push_json(&mut lines, &self.kind, event),
                Format::Name => self.push_name(&mut lines, event),
                Format::Table => self.push_row(&mut lines, event),
            }
        }
        self.printed.fetch_add(asked_for.len() as u64, Ordering::Relaxed);
        self.screen.print(&lines);
        if synced.is_some() {
            self.synced.notify_one();
        }
    }
}

impl Printer {
    pub(super) fn new(
        kind: &Kind,
        columns: Columns,
        arguments: &WatchArguments,
        screen: &Arc<Screen>,
    ) -> Self {
        Self {
            columns,
            format: arguments.output,
            once: arguments.once,
            is_done: false,
            with_namespaces: arguments.all_namespaces && kind.scope != Scope::Cluster,
            first: Some(BTreeMap::new()),
            table: Table::new(&[], &[]),
            is_one: false,
            place: String::new(),
            synced: Arc::default(),
            printed: Arc::default(),
            kind: kind.clone(),
            screen: Arc::clone(screen),
        }
    }

    /// `pod/web-1`, `deployment.apps/web`.
    fn push_name(&self, lines: &mut Vec<u8>, event: &ResourceEvent<DynamicObject>) {
        let Some(key) = event.key() else { return };
        let mut kind = self.kind.kind.to_lowercase();
        if !self.kind.group.is_empty() {
            kind = format!("{kind}.{}", self.kind.group);
        }
        lines.extend_from_slice(format!("{kind}/{}\n", one_line(key.name())).as_bytes());
    }

    fn push_row(&mut self, lines: &mut Vec<u8>, event: &ResourceEvent<DynamicObject>) {
        let colour = colour_of(event);
        let row = object_of(event).map(|object| self.row(object, event_name(event)));
        match (&mut self.first, row, event.key()) {
            (Some(first), Some(row), Some(key)) => {
                match event {
                    ResourceEvent::Deleted { .. } => first.remove(&key),
                    _ => first.insert(key, row),
                };
            }
            (Some(_), ..) => self.begin(lines),
            (None, Some(row), _) => {
                let screen = &self.screen;
                let paint = |at: usize, cell: &str| match at {
                    0 if !self.once => screen.paint(colour, cell),
                    _ => cell.to_owned(),
                };
                lines.extend_from_slice(self.table.line(&row, paint).as_bytes());
            }
            (None, None, _) => {}
        }
    }

    /// Prints the first snapshot, by namespace and name.
    fn begin(&mut self, lines: &mut Vec<u8>) {
        let rows: Vec<Vec<String>> =
            self.first.take().into_iter().flatten().map(|(_, row)| row).collect();
        if rows.is_empty() && !(self.once && self.is_one) {
            self.screen.note(&format!("kubeflect: no {} found{}", self.kind, self.place));
        }
        let titles = self.titles();
        // No event is longer, and there will be one.
        let longest = (!self.once).then(|| vec!["UPDATED".to_owned()]);
        self.table = Table::new(&titles, rows.iter().chain(&longest));
        for row in std::iter::once(&titles).filter(|_| !rows.is_empty() || !self.once).chain(&rows)
        {
            lines.extend_from_slice(self.table.line(row, |_, cell| cell.to_owned()).as_bytes());
        }
    }

    fn titles(&self) -> Vec<String> {
        self.cells("EVENT", "NAMESPACE", self.columns.titles().to_vec())
    }

    fn row(&self, object: &DynamicObject, event: &str) -> Vec<String> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        self.cells(event, namespace, self.columns.cells(object, Timestamp::now()))
    }

    fn cells(&self, event: &str, namespace: &str, cells: Vec<String>) -> Vec<String> {
        let before = [(event, !self.once), (namespace, self.with_namespaces)];
        let before = before.into_iter().filter(|(_, shown)| *shown);
        before.map(|(cell, _)| cell.to_owned()).chain(cells).collect()
    }
}
