mod printer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::Actor as _;
use actix_rt::Arbiter;
use clap::{Args, ValueEnum};
use kubeflect::client::HttpCluster;
use kubeflect::object::{DynamicObject, Scope};
use kubeflect::reflector::{Freshness, NotSynced, ReflectorStatus};
use kubeflect::{Kind, Options, Reflector, Runtime, RuntimeOptions, SubscribeOptions, Threads};

use self::printer::Printer;
use super::cluster::{ClusterArguments, resolve, try_resolve};
use super::columns::Columns;
use super::failure::{Failure, chain};
use super::screen::Screen;
use super::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  kubeflect watch pods                        of the namespace kubectl would take
  kubeflect watch po -A -l app=web
  kubeflect watch deployments.apps -n shop --once
  kubeflect watch pod/web-1 --field-selector status.phase=Running
  kubeflect watch widgets.example.com -A -o json | jq -r 'select(.event == \"DELETED\") | .name'

Lines of -o json, one per change, each with all of these keys, null where there is nothing to say:
  {\"event\":\"ADDED|UPDATED|DELETED|SYNCED\",\"cause\":\"InitialList|Watch|Relist|Rewind|Resync\",\"apiVersion\":…,
   \"kind\":…,\"namespace\":…,\"name\":…,\"uid\":…,\"resourceVersion\":…,\"object\":{…}}
SYNCED comes once, when every object there was has been printed. Relist: seen by comparing after a lost connection.
Rewind: the server went back to an earlier state, as from a backup.";

/// Prints the objects of a kind and every change, for as long as it takes: kubectl get -w that never gives up
///
/// A server that goes away is asked again until it is back, and what happened meanwhile is printed then.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools, reason = "a flag that is there or not is a bool to clap")]
pub(crate) struct WatchArguments {
    /// Of which kind, by any name kubectl takes: pods, po, Pod, deployments.apps, KIND/NAME for one object
    resource: String,

    /// Only the object of this name
    name: Option<String>,

    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// In this namespace, instead of that of the context
    #[arg(short, long)]
    namespace: Option<String>,

    /// Only objects with these labels: app=web,tier!=test
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    /// Only objects with these fields: spec.nodeName=node-1
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,

    /// Print what is there, and end
    #[arg(long)]
    once: bool,

    /// What it does anyway; kubectl's habit
    #[arg(short = 'w', long, hide = true, conflicts_with = "once")]
    watch: bool,

    /// What is printed of each object
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

    #[command(flatten)]
    cluster: ClusterArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Columns for people
    Table,
    /// One JSON object per line and change
    Json,
    /// KIND/NAME
    Name,
}

/// How long the last lines may take when we are told to end.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) async fn watch(arguments: WatchArguments, screen: &Arc<Screen>) -> Result<(), Failure> {
    let cluster = arguments.cluster.clone().connect()?;
    let asked = Asked::of(&arguments)?;
    let mut signals = Signals::listen()?;
    let served = tokio::select! {
        served = find(&cluster, &asked.kind, arguments.once, screen) => served?,
        () = signals.received() => return interrupted(arguments.once),
    };
    if !served.can_be_watched() {
        return Err(Failure::new(format!("{} can not be watched, only asked for", served.kind)));
    }
    let options = asked.options(&arguments, &served.kind, &cluster)?;
    let columns = tokio::select! {
        columns = Columns::of(&served.kind, &cluster) => columns,
        () = signals.received() => return interrupted(arguments.once),
    };
    let trouble = Arc::new(Trouble::new(screen));
    let options = options.on_error({
        let trouble = Arc::clone(&trouble);
        move |condition| trouble.tell(chain(condition))
    });
    let threads = Threads::Own { count: 1 };
    let runtime = Runtime::with_options(
        cluster,
        RuntimeOptions { threads, grace: GRACE, ..Default::default() },
    );
    let objects = runtime.reflect_kind::<DynamicObject>(served.kind.clone(), options).await?;
    let namespace = objects.status().selection.namespace.clone();
    let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
    let mut printer = Printer::new(&served.kind, columns, &arguments, screen);
    printer.is_one = asked.name.is_some();
    printer.place.clone_from(&place);
    let (synced, printed) = (Arc::clone(&printer.synced), Arc::clone(&printer.printed));
    // On a thread of its own: whoever reads what it prints may take their time.
    let printer = Printer::start_in_arbiter(&Arbiter::new().handle(), move |_| printer);
    let without_resync = SubscribeOptions::default().no_resync();
    objects.subscribe_batches(printer, without_resync).await.map_err(kubeflect::Error::from)?;
    let ended = tokio::select! {
        stopped = runtime.run() => {
            stopped?;
            return interrupted(arguments.once);
        }
        // One that came before the runtime listened.
        () = signals.received() => interrupted(arguments.once),
        closed = screen.closed() => {
            closed.map_err(|error| Failure::stdout(&error))
        }
        () = synced.notified(), if arguments.once => asked.check_found(&printed, &place),
        problem = first_problem(&objects) => Err(Failure::new(problem)),
        never = show_status(&objects, &printed, &trouble, screen) => match never {},
    };
    runtime.stop().await;
    ended
}

fn interrupted(once: bool) -> Result<(), Failure> {
    if once { Err(Failure::Interrupted) } else { Ok(()) }
}

async fn find(
    cluster: &HttpCluster,
    name: &str,
    once: bool,
    screen: &Screen,
) -> Result<kubeflect::client::ServedKind, Failure> {
    if once {
        let found = try_resolve(cluster, name).await?;
        return found.map_err(|unknown| Failure::new(unknown.to_string()));
    }
    resolve(cluster, name, screen).await
}

/// What was asked for, taken apart.
struct Asked {
    kind: String,
    name: Option<String>,
}

impl Asked {
    fn of(arguments: &WatchArguments) -> Result<Self, Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if arguments.resource.contains(',') {
            return usage("one kind at a time: start one `kubeflect watch` for each");
        }
        match (arguments.resource.split_once('/'), &arguments.name) {
            (Some((kind, name)), None) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.to_owned(), name: Some(name.to_owned()) })
            }
            (None, name) => Ok(Self { kind: arguments.resource.clone(), name: name.clone() }),
            (Some(_), _) => usage("name one object, as KIND/NAME or as KIND NAME"),
        }
    }

    /// Whether the one that was asked for is there. Of many, none is an answer too.
    fn check_found(&self, printed: &AtomicU64, place: &str) -> Result<(), Failure> {
        match &self.name {
            // The end of the snapshot is all there was.
            Some(name) if printed.load(Ordering::Relaxed) <= 1 => {
                Err(Failure::new(format!("there is no {} {name}{place}", self.kind)))
            }
            _ => Ok(()),
        }
    }

    fn options(
        &self,
        arguments: &WatchArguments,
        kind: &Kind,
        cluster: &HttpCluster,
    ) -> Result<Options<DynamicObject>, Failure> {
        let mut options = Options::all();
        // As kubectl, which does not mind a namespace where there is none.
        if kind.scope != Scope::Cluster && !arguments.all_namespaces {
            let default = cluster.connection().default_namespace.as_deref().unwrap_or("default");
            options = options.namespace(arguments.namespace.as_deref().unwrap_or(default));
        }
        if let Some(labels) = &arguments.selector {
            options = options.labels(labels);
        }
        let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
        let fields: Vec<String> = arguments.field_selector.iter().cloned().chain(name).collect();
        if !fields.is_empty() {
            options = options.fields(fields.join(","));
        }
        Ok(options)
    }
}

/// What stands in the way of the first list, if somebody has to help. Later on it is waited for.
async fn first_problem(objects: &Reflector<DynamicObject>) -> String {
    match objects.synced().await {
        Err(NotSynced::NeedsHelp(condition)) => chain(&*condition),
        // It is being stopped, and who stops it says how that ends.
        Err(_) | Ok(()) => std::future::pending().await,
    }
}

enum Never {}

/// What stands in the way, told once, and once more when it is gone.
struct Trouble {
    told: Mutex<Option<String>>,
    screen: Arc<Screen>,
}

impl Trouble {
    fn new(screen: &Arc<Screen>) -> Self {
        Self { told: Mutex::default(), screen: Arc::clone(screen) }
    }

    fn tell(&self, problem: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref() != Some(&problem) {
            self.screen.note(&format!("kubeflect: {problem}; trying again"));
            *told = Some(problem);
        }
    }

    fn is_over(&self, kind: &Kind) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        if told.is_some() {
            self.screen.note(&format!("kubeflect: {kind} are fresh again"));
        }
    }
}

/// Draws the status line every second.
async fn show_status(
    objects: &Reflector<DynamicObject>,
    printed: &AtomicU64,
    trouble: &Trouble,
    screen: &Screen,
) -> Never {
    let mut before = 0;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let now = printed.load(Ordering::Relaxed);
        let status = objects.status();
        if status.freshness == Freshness::Fresh {
            trouble.is_over(&status.kind);
        }
        screen.set_status(&status_line(&status, now - before));
        before = now;
    }
}

/// `pods: 21 objects · watching · fresh · 3/s`.
fn status_line(status: &ReflectorStatus, rate: u64) -> String {
    let freshness = match &status.freshness {
        Freshness::Unknown => "not listed yet".to_owned(),
        Freshness::Fresh => "fresh".to_owned(),
        Freshness::Stale { since, reason } => {
            format!("stale for {}s: {reason}", since.elapsed().as_secs())
        }
    };
    let (kind, phase) = (&status.kind, &status.phase);
    format!("{kind}: {} objects · {phase} · {freshness} · {rate}/s", status.objects)
}
