use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use kubeflect::config::{ReflectorSettings, Representation};
use kubeflect::kube_core::PartialObjectMeta;
use kubeflect::object::{DynamicObject, Lazy, Scope};
use kubeflect::{Kind, Options, Reflector, Subscription};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reflections::World;
use crate::cli::cluster::try_resolve;
use crate::cli::failure::chain;
use crate::cli::line::Shown;
use crate::cli::sinks::Sink;

/// One reflector of the configuration, from finding its kind to its end. A task of its own carries it out.
pub(super) struct Reflection {
    settings: ReflectorSettings,
    /// Whom to tell; none to end.
    sinks: watch::Sender<Option<Sinks>>,
    task: JoinHandle<()>,
}

/// By name.
pub(super) type Sinks = BTreeMap<String, Arc<Sink>>;

/// What sinks have not taken by then they are not told any more.
const GRACE: Duration = Duration::from_secs(5);
/// How often a kind is looked for that is not served.
const RETRY: Duration = Duration::from_secs(5);

impl Reflection {
    pub(super) fn start(
        world: &World,
        name: &str,
        settings: ReflectorSettings,
        sinks: Sinks,
    ) -> Self {
        let (sender, receiver) = watch::channel(Some(sinks));
        let reflecting = Reflecting {
            world: world.clone(),
            name: name.to_owned(),
            settings: settings.clone(),
            sinks: receiver,
        };
        let task = match settings.representation {
            Representation::Dynamic => actix_rt::spawn(reflecting.run::<DynamicObject>(value_of)),
            Representation::Lazy => {
                actix_rt::spawn(reflecting.run::<Lazy<DynamicObject>>(value_of))
            }
            Representation::Metadata => {
                actix_rt::spawn(reflecting.run::<PartialObjectMeta<DynamicObject>>(value_of))
            }
        };
        Self { settings, sinks: sender, task }
    }

    pub(super) fn settings(&self) -> &ReflectorSettings {
        &self.settings
    }

    /// Tells these sinks from now on; those it told before notice nothing.
    pub(super) fn tell(&mut self, settings: &ReflectorSettings, sinks: Sinks) {
        self.settings = settings.clone();
        self.sinks.send_replace(Some(sinks));
    }

    pub(super) async fn stop(self) {
        self.sinks.send_replace(None);
        // It ends by itself; if it panicked, there is nothing left to end.
        self.task.await.ok();
    }
}

struct Reflecting {
    world: World,
    name: String,
    settings: ReflectorSettings,
    sinks: watch::Receiver<Option<Sinks>>,
}

impl Reflecting {
    async fn run<K: Shown>(mut self, value_of: fn(&K) -> serde_json::Value) {
        let mut sinks = self.sinks.clone();
        let ended = async {
            // Nobody is left to end it if the sender is gone.
            sinks.wait_for(Option::is_none).await.map(drop).unwrap_or_default();
        };
        let mut ended = std::pin::pin!(ended);
        let kind = tokio::select! {
            kind = self.kind() => kind,
            () = &mut ended => return self.world.page.clear_pending(&self.name),
        };
        let reflector = match self.reflect(kind, value_of).await {
            Ok(reflector) => reflector,
            Err(problem) => {
                self.world.screen.note(&format!("kubeflect: {problem}"));
                self.world.page.set_pending(&self.name, &problem);
                ended.await;
                return self.world.page.clear_pending(&self.name);
            }
        };
        self.world.page.clear_pending(&self.name);
        self.world.page.show(&reflector).await;
        self.tell_sinks(&reflector).await;
        reflector.stop(GRACE).await;
    }

    /// Reflects the kind that was found, if it can be as the settings say.
    async fn reflect<K: Shown>(
        &self,
        kind: Kind,
        value_of: fn(&K) -> serde_json::Value,
    ) -> Result<Reflector<K>, String> {
        let invalid = |key: &str, problem: &str| {
            self.world.source.invalid(&["reflectors", &self.name, key], problem)
        };
        if kind.scope == Scope::Cluster && self.settings.namespace.is_some() {
            let problem = format!("a {} is in no namespace: leave it out", kind.kind);
            return Err(invalid("namespace", &problem));
        }
        let options = options_of(&self.settings, value_of).name(&*self.name);
        let reflector = self.world.runtime.reflect_kind(kind, options).await;
        reflector.map_err(|error| invalid("kind", &chain(&error)))
    }

    /// Finds the kind, however long it takes to be there.
    async fn kind(&self) -> Kind {
        let mut told = String::new();
        loop {
            let problem = match try_resolve(&self.world.cluster, &self.settings.full_kind()).await {
                Ok(Ok(served)) => return served.kind,
                Ok(Err(unknown)) => unknown.to_string(),
                Err(problem) => problem.reason,
            };
            if problem != told {
                let name = &self.name;
                self.world.screen.note(&format!("kubeflect: {name}: {problem}; trying again"));
                self.world.page.set_pending(name, &problem);
                told = problem;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Tells whom it is to tell, until it is to tell nobody.
    async fn tell_sinks<K: Shown>(&mut self, reflector: &Reflector<K>) {
        let mut told: BTreeMap<String, (Arc<Sink>, Option<Subscription<K>>)> = BTreeMap::new();
        loop {
            let wanted = self.sinks.borrow_and_update().clone();
            let is_over = wanted.is_none();
            let wanted = wanted.unwrap_or_default();
            let is_wanted = |name: &String, sink: &Arc<Sink>| {
                wanted.get(name).is_some_and(|wanted| Arc::ptr_eq(wanted, sink))
            };
            let gone: Vec<String> = told
                .iter()
                .filter(|(name, (sink, _))| !is_wanted(name, sink))
                .map(|(name, _)| name.clone())
                .collect();
            if is_over {
                for (sink, _) in told.values() {
                    sink.leave(&self.name);
                }
                return;
            }
            for name in gone {
                if let Some((sink, subscription)) = told.remove(&name) {
                    sink.leave(&self.name);
                    if let Some(subscription) = subscription {
                        subscription.unsubscribe().await;
                    }
                }
            }
            for (name, sink) in wanted {
                if let Entry::Vacant(place) = told.entry(name) {
                    let subscription = sink.join(place.key(), &self.name, reflector).await;
                    place.insert((sink, subscription));
                }
            }
            if self.sinks.changed().await.is_err() {
                return;
            }
        }
    }
}

fn options_of<K: Shown>(
    settings: &ReflectorSettings,
    value_of: fn(&K) -> serde_json::Value,
) -> Options<K> {
    let mut options = Options::all();
    if let Some(namespace) = &settings.namespace {
        options = options.namespace(namespace);
    }
    if let Some(labels) = &settings.labels {
        options = options.labels(labels);
    }
    if let Some(fields) = &settings.fields {
        options = options.fields(fields);
    }
    if let Some(resync) = settings.resync {
        options = options.resync(resync);
    }
    for (name, path) in settings.indices.clone() {
        options = options.index(name, move |object: &K| path.values(&value_of(object)));
    }
    options
}

fn value_of<K: Shown>(object: &K) -> serde_json::Value {
    serde_json::to_value(object).unwrap_or_default()
}
