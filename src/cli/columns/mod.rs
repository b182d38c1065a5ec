//! What kubectl users are used to see of each kind, taken from the object itself.

mod definition;
mod known;
mod path;
mod pod;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kubeflect::Kind;
use kubeflect::client::HttpCluster;
use kubeflect::object::DynamicObject;
use serde_json::Value;

use self::definition::Defined;
use self::known::KNOWN;

/// The columns of a kind behind the namespace. One that is called NAME or AGE needs no cell: every object has those.
pub(crate) struct Columns {
    titles: Vec<String>,
    cells: Cells,
}

enum Cells {
    Known(fn(&Seen<'_>) -> Vec<String>),
    /// As its definition in the cluster says.
    Defined(Vec<Defined>),
}

/// An object, and when it is looked at.
struct Seen<'a> {
    metadata: &'a ObjectMeta,
    data: &'a Value,
    now: Timestamp,
}

const NAME: &str = "NAME";
const AGE: &str = "AGE";

impl Columns {
    /// Those of a kind: what kubectl has for it, else what its definition says, if that may be read.
    pub(crate) async fn of(kind: &Kind, cluster: &HttpCluster) -> Self {
        if let Some(known) = Self::known(kind) {
            return known;
        }
        match definition::columns(kind, cluster).await {
            Some(columns) => {
                let titles = columns.iter().map(|column| column.title.clone());
                let titles = std::iter::once(NAME.to_owned()).chain(titles).collect();
                Self { titles, cells: Cells::Defined(columns) }
            }
            None => {
                let titles = [NAME, AGE].map(str::to_owned).to_vec();
                Self { titles, cells: Cells::Defined(Vec::new()) }
            }
        }
    }

    fn known(kind: &Kind) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.0 == kind.group && known.1 == kind.kind)?;
        let titles = known.2.iter().map(|&title| title.to_owned()).collect();
        Some(Self { titles, cells: Cells::Known(known.3) })
    }

    pub(crate) fn titles(&self) -> &[String] {
        &self.titles
    }

    /// The cells of an object, one for each title.
    pub(crate) fn cells(&self, object: &DynamicObject, now: Timestamp) -> Vec<String> {
        let seen = Seen { metadata: &object.metadata, data: &object.data, now };
        let cells = match &self.cells {
            Cells::Known(cells) => cells(&seen),
            Cells::Defined(columns) => columns.iter().map(|column| column.cell(&seen)).collect(),
        };
        let mut cells = cells.into_iter();
        let is_defined = matches!(&self.cells, Cells::Defined(columns) if !columns.is_empty());
        let cell = |title: &String| match title.as_str() {
            NAME => object.metadata.name.clone().unwrap_or_default(),
            AGE if !is_defined => seen.age(),
            _ => cells.next().unwrap_or_default(),
        };
        self.titles.iter().map(cell).collect()
    }
}

impl Seen<'_> {
    /// How long ago it was created.
    fn age(&self) -> String {
        match &self.metadata.creation_timestamp {
            Some(created) => self.since(created.0),
            None => "<unknown>".to_owned(),
        }
    }

    fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// How long ago a time of the object was; none if it has none there.
    fn ago(&self, time: &Value) -> Option<String> {
        time.as_str()?.parse().ok().map(|time| self.since(time))
    }

    fn since(&self, time: Timestamp) -> String {
        human(self.now.as_second().saturating_sub(time.as_second()).max(0))
    }
}

/// Two units where one would be too rough.
fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, smaller: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{smaller}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use kubeflect::object::{Resource as _, Scope};
    use serde_json::json;

    use super::*;

    /// At ten minutes past.
    fn cells(group: &str, kind: &str, mut object: Value) -> Vec<String> {
        let kind = Kind::new(group.to_owned(), "v1", kind.to_owned(), "x", Scope::Unknown);
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!("a");
        }
        let object = DynamicObject::decode(object.to_string().as_bytes(), &kind).unwrap();
        let columns = Columns::known(&kind).unwrap();
        let cells = columns.cells(&object, "2026-01-01T00:10:00Z".parse().unwrap());
        assert_eq!(cells.len(), columns.titles().len(), "{kind}");
        cells
    }

    fn pod(object: Value) -> [String; 3] {
        let [_, ready, status, restarts, _] =
            <[String; 5]>::try_from(cells("", "Pod", object)).unwrap();
        [ready, status, restarts]
    }

    #[test]
    fn a_pod_has_the_status_of_what_is_most_in_its_way() {
        let containers = json!([{ "name": "a" }, { "name": "b" }]);
        let running = json!({ "ready": true, "state": { "running": {} } });
        let waiting = |reason: &str| json!({ "restartCount": 1, "state": { "waiting": { "reason": reason } } });
        let ended = |reason: &str, code: u8| json!({ "state": { "terminated": { "reason": reason, "exitCode": code } } });
        let of = |statuses: Value| {
            pod(
                json!({ "spec": { "containers": containers }, "status": { "phase": "Running", "containerStatuses": statuses } }),
            )
        };
        assert_eq!(of(json!([running, running])), ["2/2", "Running", "0"]);
        assert_eq!(
            of(json!([running, waiting("CrashLoopBackOff")])),
            ["1/2", "CrashLoopBackOff", "1"]
        );
        assert_eq!(of(json!([ended("Error", 1), running])), ["1/2", "Error", "0"]);
        assert_eq!(of(json!([ended("", 137), running])), ["1/2", "ExitCode:137", "0"]);
        // One that is done while others run is no end.
        assert_eq!(of(json!([ended("Completed", 0), running])), ["1/2", "NotReady", "0"]);
        assert_eq!(
            of(json!([ended("Completed", 0), ended("Completed", 0)])),
            ["0/2", "Completed", "0"]
        );
        let ready = json!({
            "spec": { "containers": containers },
            "status": {
                "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
                "containerStatuses": [ended("Completed", 0), running],
            },
        });
        assert_eq!(pod(ready), ["1/2", "Running", "0"]);
        let going = json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "status": { "phase": "Running" },
        });
        assert_eq!(pod(going), ["0/0", "Terminating", "0"]);
        let evicted = json!({ "status": { "phase": "Failed", "reason": "Evicted" } });
        assert_eq!(pod(evicted), ["0/0", "Evicted", "0"]);
        let gated = json!({ "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "reason": "SchedulingGated" }] } });
        assert_eq!(pod(gated), ["0/0", "SchedulingGated", "0"]);
    }

    #[test]
    fn a_pod_that_is_being_prepared_says_how_far_it_is() {
        let of = |statuses: Value| {
            let waits = json!({ "state": { "waiting": { "reason": "PodInitializing" } } });
            let [ready, status, restarts] = pod(json!({
                "spec": {
                    "containers": [{ "name": "main" }],
                    "initContainers": [{ "name": "first" }, { "name": "side", "restartPolicy": "Always" }],
                },
                "status": { "phase": "Pending", "initContainerStatuses": statuses, "containerStatuses": [waits] },
            }));
            format!("{ready} {status} {restarts}")
        };
        let done = json!({ "name": "first", "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } });
        let side = json!({ "name": "side", "started": true, "ready": true, "restartCount": 2, "state": { "running": {} } });
        assert_eq!(of(json!([{ "name": "first", "state": { "running": {} } }])), "0/2 Init:0/2 0");
        assert_eq!(
            of(json!([done, { "name": "side", "state": { "running": {} } }])),
            "0/2 Init:1/2 0"
        );
        assert_eq!(of(json!([done, side])), "1/2 PodInitializing 2");
        let failed = json!({ "name": "first", "restartCount": 3, "state": { "terminated": { "exitCode": 1, "reason": "Error" } } });
        assert_eq!(of(json!([failed])), "0/2 Init:Error 3");
        let crashing = json!({
            "name": "first", "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "finishedAt": "2026-01-01T00:08:00Z" } },
        });
        assert_eq!(of(json!([crashing])), "0/2 Init:CrashLoopBackOff 3 (2m ago)");
    }

    #[test]
    fn objects_are_shown_as_kubectl_shows_them() {
        let created = "2026-01-01T00:05:00Z";
        for (group, kind, object, expected) in [
            (
                "",
                "Node",
                json!({
                    "metadata": { "labels": { "node-role.kubernetes.io/control-plane": "" }, "creationTimestamp": created },
                    "spec": { "unschedulable": true },
                    "status": { "conditions": [{ "type": "Ready", "status": "True" }], "nodeInfo": { "kubeletVersion": "v1.34.0" } },
                }),
                &["a", "Ready,SchedulingDisabled", "control-plane", "5m", "v1.34.0"][..],
            ),
            (
                "apps",
                "Deployment",
                json!({ "spec": { "replicas": 3 }, "status": { "readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2 } }),
                &["a", "2/3", "3", "2", "<unknown>"],
            ),
            (
                "",
                "Service",
                json!({ "spec": { "type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{ "port": 80, "nodePort": 30080 }] } }),
                &["a", "NodePort", "10.0.0.1", "", "80:30080/TCP", "<unknown>"],
            ),
            (
                "",
                "Event",
                json!({
                    "type": "Warning", "reason": "BackOff", "message": "again\n", "lastTimestamp": created,
                    "involvedObject": { "kind": "Pod", "name": "web" },
                }),
                &["5m", "Warning", "BackOff", "pod/web", "again"],
            ),
            (
                "batch",
                "Job",
                json!({
                    "spec": { "completions": 2 },
                    "status": {
                        "succeeded": 2, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z",
                        "conditions": [{ "type": "Complete", "status": "True" }],
                    },
                }),
                &["a", "Complete", "2/2", "90s", "<unknown>"],
            ),
            (
                "batch",
                "CronJob",
                json!({ "spec": { "schedule": "* * * * *" }, "status": { "active": [{}], "lastScheduleTime": created } }),
                &["a", "* * * * *", "", "False", "1", "5m", "<unknown>"],
            ),
            (
                "networking.k8s.io",
                "Ingress",
                json!({
                    "spec": { "ingressClassName": "nginx", "rules": [{ "host": "a.example" }], "tls": [{}] },
                    "status": { "loadBalancer": { "ingress": [{ "ip": "10.0.0.9" }] } },
                }),
                &["a", "nginx", "a.example", "10.0.0.9", "80, 443", "<unknown>"],
            ),
            (
                "",
                "PersistentVolumeClaim",
                json!({
                    "spec": { "volumeName": "v", "storageClassName": "fast" },
                    "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": { "storage": "1Gi" } },
                }),
                &["a", "Bound", "v", "1Gi", "RWO,ROX", "fast", "<unknown>"],
            ),
            (
                "apps",
                "DaemonSet",
                json!({ "spec": { "template": { "spec": { "nodeSelector": { "disk": "ssd" } } } }, "status": { "numberReady": 1 } }),
                &["a", "0", "0", "1", "0", "0", "disk=ssd", "<unknown>"],
            ),
        ] {
            assert_eq!(cells(group, kind, object), expected, "{kind}");
        }
    }

    #[test]
    fn an_object_with_nothing_in_it_has_all_its_cells() {
        for (group, kind, ..) in KNOWN {
            cells(group, kind, json!({}));
        }
    }

    #[test]
    fn an_age_has_two_units_while_the_second_matters() {
        for (seconds, age) in
            [(119, "119s"), (125, "2m5s"), (10_799, "179m"), (11_000, "3h3m"), (700_000, "8d")]
        {
            assert_eq!(human(seconds), age);
        }
    }
}
