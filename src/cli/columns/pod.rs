use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::Seen;
use super::known::list;

/// How many of its containers are ready, what is most in its way, and how often they were restarted.
pub(super) fn pod(seen: &Seen<'_>) -> Vec<String> {
    let (spec, status) = (&seen.data["spec"], &seen.data["status"]);
    let sidecars = list(&spec["initContainers"]).filter(|it| it["restartPolicy"] == "Always");
    let wanted = list(&spec["containers"]).count() + sidecars.count();
    let mut tally = Tally::default();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let gated =
        condition(status, "PodScheduled").is_some_and(|it| it["reason"] == "SchedulingGated");
    let mut state = match text(&status["reason"]).or(text(&status["phase"])) {
        _ if gated => "SchedulingGated".to_owned(),
        state => state.unwrap_or_else(|| "<unknown>".to_owned()),
    };
    let preparing = tally.prepare(spec, status);
    let is_prepared = condition(status, "Initialized").is_some_and(|it| it["status"] == "True");
    match preparing {
        Some(preparing) if !is_prepared => state = preparing,
        _ => state = tally.run(status, state),
    }
    let has_ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if seen.is_going() && status["reason"] == "NodeLost" {
        "Unknown".clone_into(&mut state);
    } else if seen.is_going() && !has_ended {
        "Terminating".clone_into(&mut state);
    }
    vec![format!("{}/{wanted}", tally.ready), state, tally.restarts(seen)]
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    list(&status["conditions"]).find(|condition| condition["type"] == name)
}

/// What the containers of a pod come to.
#[derive(Default)]
struct Tally {
    ready: usize,
    restarts: u64,
    last_restart: Option<Timestamp>,
}

impl Tally {
    /// Goes through the containers that prepare the pod, up to the one it waits for, and says how far that is.
    fn prepare(&mut self, spec: &Value, status: &Value) -> Option<String> {
        let mut of_sidecars = Self::default();
        for (at, container) in list(&status["initContainerStatuses"]).enumerate() {
            self.count(container);
            let own = list(&spec["initContainers"]).find(|it| it["name"] == container["name"]);
            let is_sidecar = own.is_some_and(|own| own["restartPolicy"] == "Always");
            if is_sidecar {
                of_sidecars.count(container);
            }
            let (ended, waits) =
                (&container["state"]["terminated"], &container["state"]["waiting"]);
            if ended["exitCode"] == 0 {
                continue;
            }
            if is_sidecar && container["started"] == true {
                of_sidecars.ready += usize::from(container["ready"] == true);
                continue;
            }
            let reason =
                waits["reason"].as_str().filter(|it| !matches!(*it, "" | "PodInitializing"));
            let all = list(&spec["initContainers"]).count();
            let state = end_of(ended).or(reason.map(str::to_owned));
            self.ready = of_sidecars.ready;
            return Some(format!("Init:{}", state.unwrap_or_else(|| format!("{at}/{all}"))));
        }
        // What it took to prepare it is no more of interest.
        *self = of_sidecars;
        None
    }

    /// Goes through the containers that run. The first of those that do not says why.
    fn run(&mut self, status: &Value, mut state: String) -> String {
        let mut is_running = false;
        for container in list(&status["containerStatuses"]).rev() {
            self.count(container);
            let (ended, waits) =
                (&container["state"]["terminated"], &container["state"]["waiting"]);
            let reason = waits["reason"].as_str().filter(|reason| !reason.is_empty());
            match reason.map(str::to_owned).or(end_of(ended)) {
                Some(reason) => state = reason,
                None if container["ready"] == true => {
                    is_running = true;
                    self.ready += 1;
                }
                None => {}
            }
        }
        if state == "Completed" && is_running {
            let is_ready = condition(status, "Ready").is_some_and(|it| it["status"] == "True");
            return if is_ready { "Running" } else { "NotReady" }.to_owned();
        }
        state
    }

    fn count(&mut self, container: &Value) {
        self.restarts += container["restartCount"].as_u64().unwrap_or_default();
        let ended = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last_restart = self.last_restart.max(ended.and_then(|time| time.parse().ok()));
    }

    fn restarts(&self, seen: &Seen<'_>) -> String {
        match self.last_restart {
            Some(last) if self.restarts > 0 => {
                format!("{} ({} ago)", self.restarts, seen.since(last))
            }
            _ => self.restarts.to_string(),
        }
    }
}

/// How a container ended, if it has.
fn end_of(ended: &Value) -> Option<String> {
    ended.as_object()?;
    let code = |field: &str| ended[field].as_i64().unwrap_or_default();
    Some(match ended["reason"].as_str() {
        Some(reason) if !reason.is_empty() => reason.to_owned(),
        _ if code("signal") != 0 => format!("Signal:{}", code("signal")),
        _ => format!("ExitCode:{}", code("exitCode")),
    })
}
