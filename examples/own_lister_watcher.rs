//! A source that is not Kubernetes: a table in memory that counts its changes. Whatever can be listed at a version, and
//! can tell what changed since, can be reflected.
//!
//! Run with `cargo run --example own_lister_watcher`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use kubeflect::api::{self, Item, ListFuture, ListPage, ListRequest, WatchEvent, WatchFuture};
use kubeflect::object::{DecodeError, Scope};
use kubeflect::{Kind, ObjectKey, Options, Resource, ResourceVersion, Runtime, RuntimeOptions};
use tokio::sync::watch;

/// A row as one change left it: without an address it is deleted.
struct User {
    name: &'static str,
    address: Option<&'static str>,
    version: String,
}

impl Resource for User {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped(self.name)
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> Option<&str> {
        Some(&self.version)
    }
    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Err(DecodeError::new("users do not come as JSON"))
    }
}

/// All changes there ever were. The version of the table is their number.
struct Table(watch::Receiver<Vec<Arc<User>>>);

impl api::ListerWatcher<User> for Table {
    fn list(&self, _: ListRequest) -> ListFuture<User> {
        let changes = self.0.borrow().clone();
        let resource_version = ResourceVersion::new(&changes.len().to_string());
        let rows: BTreeMap<_, _> = changes.into_iter().map(|row| (row.name, row)).collect();
        let rows = rows.into_values().filter(|row| row.address.is_some());
        let items = rows.map(Item::Object).collect();
        async { Ok(ListPage { items, resource_version, continue_token: None }) }.boxed_local()
    }

    fn watch(&self, request: api::WatchRequest) -> WatchFuture<User> {
        let from: usize = match &request.start {
            api::WatchStart::After(version) => version.as_str().parse().unwrap_or(0),
            api::WatchStart::InitialEvents { .. } => 0, // Not asked for: see below.
        };
        let changes = stream::unfold((self.0.clone(), from), async |(mut table, from)| {
            let row = Arc::clone(&table.wait_for(|all| all.len() > from).await.ok()?[from]);
            let event = match row.address {
                Some(_) => WatchEvent::Modified(Item::Object(row)),
                None => WatchEvent::Deleted(Item::Object(row)),
            };
            Some((Ok(event), (table, from + 1)))
        });
        let end = tokio::time::sleep(request.timeout);
        async { Ok(changes.take_until(end).boxed_local()) }.boxed_local()
    }

    fn has_streaming_lists(&self) -> bool {
        false
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let (table, rows) = watch::channel(Vec::new());
    let runtime = Runtime::without_cluster(RuntimeOptions::default());
    let kind = Kind::new("", "v1", "User", "users", Scope::Cluster);
    let users = runtime.reflect_from(kind, || Table(rows), Options::all()).await?;
    users.synced().await?;

    let [ada, bob, countess] = ["ada@shop", "bob@shop", "countess@shop"].map(Some);
    for (name, address) in [("ada", ada), ("bob", bob), ("ada", countess), ("bob", None)] {
        let version = (table.borrow().len() + 1).to_string();
        let written = ResourceVersion::new(&version);
        table.send_modify(|all| all.push(Arc::new(User { name, address, version })));
        while users.store().resource_version() != written {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let cached = users.store().list();
        let cached: Vec<_> = cached.iter().map(|user| user.address.unwrap_or("?")).collect();
        println!("version {}: {}", table.borrow().len(), cached.join(", "));
    }
    runtime.stop().await;
    Ok(())
}
