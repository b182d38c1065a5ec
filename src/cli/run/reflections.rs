use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kubeflect::Runtime;
use kubeflect::client::HttpCluster;
use kubeflect::config::{Config, ReflectorSettings};
use kubeflect::reflector::Freshness;

use super::page::Shower;
use super::reflection::Reflection;
use crate::cli::failure::Failure;
use crate::cli::screen::Screen;
use crate::cli::sinks::Sink;

/// What runs, as the configuration in force says.
pub(super) struct Reflections {
    world: World,
    /// The configuration in force; none before the first.
    config: Option<Config>,
    sinks: BTreeMap<String, Arc<Sink>>,
    reflections: BTreeMap<String, Reflection>,
    /// How many changes had been told a second ago.
    told: u64,
}

/// What reflections need of the rest.
#[derive(Clone)]
pub(super) struct World {
    pub(super) cluster: HttpCluster,
    pub(super) runtime: Runtime,
    pub(super) page: Shower,
    pub(super) screen: Arc<Screen>,
}

/// What a new configuration changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    started: Vec<String>,
    stopped: Vec<String>,
    kept: Vec<String>,
}

impl Reflections {
    pub(super) fn new(
        cluster: HttpCluster,
        runtime: Runtime,
        page: Shower,
        screen: Arc<Screen>,
    ) -> Self {
        let world = World { cluster, runtime, page, screen };
        let (sinks, reflections) = (BTreeMap::new(), BTreeMap::new());
        Self { world, config: None, sinks, reflections, told: 0 }
    }

    /// Does what another configuration says. What it does not change keeps running.
    pub(super) async fn change_to(&mut self, config: Config) -> Result<Changes, Failure> {
        self.check_what_needs_a_restart(&config)?;
        let sinks = self.sinks_for(&config).await?;
        let mut changes = Changes::default();
        let before = std::mem::take(&mut self.reflections);
        // Those that end go first: another one may reflect the same.
        for (name, mut reflection) in before {
            let settings = config.reflectors.get(&name);
            match settings.filter(|settings| reflection.settings().reflects_the_same(settings)) {
                Some(settings) => {
                    reflection.tell(settings, chosen(&sinks, settings));
                    changes.kept.push(name.clone());
                    self.reflections.insert(name, reflection);
                }
                None => {
                    reflection.stop().await;
                    changes.stopped.push(name);
                }
            }
        }
        for (name, settings) in &config.reflectors {
            if !self.reflections.contains_key(name) {
                let told = chosen(&sinks, settings);
                let reflection = Reflection::start(&self.world, name, settings.clone(), told);
                self.reflections.insert(name.clone(), reflection);
                changes.started.push(name.clone());
            }
        }
        let before = std::mem::replace(&mut self.sinks, sinks);
        for (name, sink) in before {
            let is_kept = self.sinks.get(&name).is_some_and(|kept| Arc::ptr_eq(kept, &sink));
            if !is_kept {
                sink.stop().await;
            }
        }
        self.config = Some(config);
        Ok(changes)
    }

    /// The sinks of a configuration: those that stay as they are, and new ones.
    async fn sinks_for(&self, config: &Config) -> Result<BTreeMap<String, Arc<Sink>>, Failure> {
        let (mut sinks, mut started) = (BTreeMap::new(), Vec::new());
        for (name, settings) in &config.sinks {
            let running = self.sinks.get(name).filter(|sink| sink.settings() == settings);
            if let Some(sink) = running {
                sinks.insert(name.clone(), Arc::clone(sink));
                continue;
            }
            for sink in self.sinks.values().filter(|sink| sink.is_in_the_way_of(settings)) {
                sink.stop().await;
            }
            match Sink::start(settings.clone(), &self.world.screen).await {
                Ok(sink) => {
                    let sink = Arc::new(sink);
                    started.push(Arc::clone(&sink));
                    sinks.insert(name.clone(), sink);
                }
                Err(failure) => {
                    for sink in started {
                        sink.stop().await;
                    }
                    return Err(failure);
                }
            }
        }
        Ok(sinks)
    }

    fn check_what_needs_a_restart(&self, config: &Config) -> Result<(), Failure> {
        let Some(running) = &self.config else { return Ok(()) };
        let what = if running.cluster != config.cluster {
            "another cluster"
        } else if running.page != config.page {
            "another address of the page"
        } else {
            return Ok(());
        };
        Err(Failure::new(format!("{what} needs a restart: stop kubeflect and start it again")))
    }

    pub(super) async fn stop_sinks(&self) {
        for sink in self.sinks.values() {
            sink.stop().await;
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let name = |(name, reflection): (&String, &Reflection)| {
            let kind = reflection.settings().full_kind();
            if *name == kind { kind } else { format!("{name} ({kind})") }
        };
        self.reflections.iter().map(name).collect()
    }

    /// The sinks that can be asked, and where.
    pub(super) fn sink_urls(&self) -> Vec<(&str, String)> {
        self.sinks.iter().filter_map(|(name, sink)| Some((name.as_str(), sink.url()?))).collect()
    }

    /// `nodes 3 · pods 21 │ 5 changes/s │ fresh`, for the second since it was asked last.
    pub(super) fn status_line(&mut self) -> String {
        let statuses = self.world.runtime.status();
        // The page is told too: a change that several are told of is one.
        let told = statuses.iter().map(|status| {
            status.subscribers.iter().map(|it| it.delivered).max().unwrap_or_default()
        });
        let told: u64 = told.sum();
        let rate = told.saturating_sub(self.told);
        self.told = told;
        let objects: Vec<String> =
            statuses.iter().map(|status| format!("{} {}", status.kind, status.objects)).collect();
        let troubled = statuses.iter().find(|status| status.freshness != Freshness::Fresh);
        let state = match troubled {
            None => "fresh".to_owned(),
            Some(status) => match &status.condition {
                Some(condition) => condition.to_string(),
                None => format!("{}: {:?}", status.kind, status.phase),
            },
        };
        format!("{} │ {rate} changes/s │ {state}", objects.join(" · "))
    }
}

/// The sinks that a reflector tells, by name.
fn chosen(
    sinks: &BTreeMap<String, Arc<Sink>>,
    settings: &ReflectorSettings,
) -> BTreeMap<String, Arc<Sink>> {
    let named = settings.sinks.iter().filter_map(|name| sinks.get_key_value(name));
    named.map(|(name, sink)| (name.clone(), Arc::clone(sink))).collect()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("started", &self.started), ("stopped", &self.stopped), ("kept", &self.kept)];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> =
            parts.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
        f.write_str(&parts.join("; "))
    }
}
