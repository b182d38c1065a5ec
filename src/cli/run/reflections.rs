use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kubeflect::Runtime;
use kubeflect::client::HttpCluster;
use kubeflect::config::{Config, ReflectorSettings, SinkSettings};
use kubeflect::reflector::{Freshness, ReflectorStatus};

use super::page::{STARTING, Shower};
use super::reflection::{Reflection, Sinks};
use super::reload::Source;
use crate::cli::failure::Failure;
use crate::cli::screen::Screen;
use crate::cli::sinks::{Sink, WrongSetting};

/// What runs, as the configuration in force says.
pub(super) struct Reflections {
    world: World,
    /// The configuration in force; none before the first.
    config: Option<Config>,
    sinks: Sinks,
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
    pub(super) source: Source,
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
        let world = World { cluster, runtime, page, screen, source: Source::default() };
        let (sinks, reflections) = (BTreeMap::new(), BTreeMap::new());
        Self { world, config: None, sinks, reflections, told: 0 }
    }

    /// Does what another configuration says. What it does not change keeps running.
    pub(super) async fn change_to(
        &mut self,
        config: Config,
        source: Source,
    ) -> Result<Changes, Failure> {
        self.check_what_needs_a_restart(&config)?;
        let sinks = self.sinks_for(&config, &source).await?;
        self.world.source = source;
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
                self.world.page.set_pending(name, "looking for its kind");
                let reflection = Reflection::start(&self.world, name, settings.clone(), told);
                self.reflections.insert(name.clone(), reflection);
                changes.started.push(name.clone());
            }
        }
        self.world.page.clear_pending(STARTING);
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
    async fn sinks_for(&mut self, config: &Config, source: &Source) -> Result<Sinks, Failure> {
        let is_running = |(name, settings): &(&String, &SinkSettings)| {
            self.sinks.get(*name).is_some_and(|sink| sink.settings() == *settings)
        };
        let (kept, new): (Vec<_>, Vec<_>) = config.sinks.iter().partition(is_running);
        let is_in_the_way = |settings: &SinkSettings| {
            self.sinks.values().any(|sink| sink.is_in_the_way_of(settings))
        };
        // Those that need another one stopped come last, when nothing else can go wrong.
        let (last, first): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|(_, settings)| is_in_the_way(settings));
        let (mut started, mut stopped) = (Sinks::new(), Vec::new());
        for (name, settings) in first.into_iter().chain(last) {
            for (name, sink) in &self.sinks {
                if sink.is_in_the_way_of(settings) {
                    sink.stop().await;
                    stopped.push(name.clone());
                }
            }
            match Sink::start(settings.clone(), &self.world.screen).await {
                Ok(sink) => drop(started.insert(name.clone(), Arc::new(sink))),
                Err(WrongSetting { key, problem }) => {
                    for sink in started.values() {
                        sink.stop().await;
                    }
                    self.start_again(&stopped).await;
                    return Err(Failure::new(source.invalid(&["sinks", name, key], &problem)));
                }
            }
        }
        started.extend(
            kept.into_iter().map(|(name, _)| (name.clone(), Arc::clone(&self.sinks[name]))),
        );
        Ok(started)
    }

    /// Starts sinks again that were stopped for others that can not be. One that can not be started either is gone
    /// until the next configuration.
    async fn start_again(&mut self, stopped: &[String]) {
        for name in stopped {
            let Some(sink) = self.sinks.remove(name) else { continue };
            match Sink::start(sink.settings().clone(), &self.world.screen).await {
                Ok(sink) => drop(self.sinks.insert(name.clone(), Arc::new(sink))),
                Err(WrongSetting { problem, .. }) => {
                    self.world.screen.note(&format!("kubeflect: {name}: {problem}"));
                }
            }
        }
        for reflection in self.reflections.values_mut() {
            let settings = reflection.settings().clone();
            reflection.tell(&settings, chosen(&self.sinks, &settings));
        }
    }

    fn check_what_needs_a_restart(&self, config: &Config) -> Result<(), Failure> {
        let Some(running) = &self.config else { return Ok(()) };
        let what = if running.cluster != config.cluster {
            "another cluster"
        } else if running.page != config.page {
            "another page"
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
        let pending = self.world.page.pending();
        let objects = statuses.iter().map(|status| {
            let kind = status.kind.to_string();
            format!("{} {}", status.name.as_deref().unwrap_or(&kind), status.objects)
        });
        let waiting = pending.iter().map(|(name, _)| format!("{name} –"));
        let objects: Vec<String> = objects.chain(waiting).collect();
        let state = trouble(&statuses, &pending).unwrap_or_else(|| "fresh".to_owned());
        format!("{} │ {rate} changes/s │ {state}", objects.join(" · "))
    }
}

/// What the first one says that is not as it should be.
fn trouble(statuses: &[ReflectorStatus], pending: &[(String, String)]) -> Option<String> {
    let waiting = || pending.first().map(|(name, reason)| format!("{name}: {reason}"));
    let troubled = statuses.iter().find(|status| status.freshness != Freshness::Fresh);
    let troubled = troubled.map(|status| match &status.condition {
        Some(condition) => condition.to_string(),
        None => format!("{}: {}", status.kind, status.phase),
    });
    troubled.or_else(waiting)
}

/// The sinks that a reflector tells, by name.
fn chosen(sinks: &Sinks, settings: &ReflectorSettings) -> Sinks {
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
