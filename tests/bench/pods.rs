//! Pods as an API server writes them: two containers, five conditions, and the managedFields of who made and ran them.
//!
//! The same seed gives the same pods. Their version is always as wide, so that it can be written over in place.

use std::fmt::Write as _;
use std::ops::Range;

/// Where versions begin: all of them have 19 digits.
pub(crate) const FIRST_VERSION: u64 = 1_000_000_000_000_000_000;

/// How large pods are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// 6.1 KiB, 2.1 of them managedFields.
    Typical,
    /// 1.6 KiB, without managedFields.
    Small,
}

/// One pod, as it stands among the items of a list: without its kind.
#[derive(Debug)]
pub(crate) struct PodText {
    pub(crate) bytes: Vec<u8>,
    version: Range<usize>,
    /// The value of `metadata`.
    pub(crate) metadata: Range<usize>,
}

impl PodText {
    pub(crate) fn set_version(&mut self, version: u64) {
        write_digits(&mut self.bytes[self.version.clone()], version);
    }
}

/// Writes a number of as many digits.
pub(crate) fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

pub(crate) fn namespace_of(number: usize) -> String {
    format!("team-{:02}", number % 40)
}

/// Pod `number` of a cluster.
pub(crate) fn pod(seed: u64, number: usize, shape: Shape) -> PodText {
    let mut parts = Parts::new(seed, number);
    let uid = parts.uid();
    let before_version = format!(
        r#""name":"{name}","generateName":"{owner}-","namespace":"{namespace}","uid":"{uid}","resourceVersion":""#,
        name = parts.name,
        owner = parts.owner,
        namespace = parts.namespace,
    );
    let mut metadata = format!("{{{before_version}{FIRST_VERSION}\"");
    parts.metadata(&mut metadata, shape);
    metadata.push('}');
    let mut text = r#"{"metadata":"#.to_owned();
    let start = text.len();
    let version = start + 1 + before_version.len();
    text.push_str(&metadata);
    let end = text.len();
    parts.spec(&mut text, shape);
    parts.status(&mut text, shape);
    text.push('}');
    PodText { bytes: text.into_bytes(), version: version..version + 19, metadata: start..end }
}

/// What several fields of a pod agree about.
struct Parts {
    random: u64,
    application: &'static str,
    namespace: String,
    owner: String,
    name: String,
    node: u64,
    address: String,
}

const APPLICATIONS: [&str; 8] =
    ["checkout", "catalogue", "payments", "sessions", "search", "invoices", "shipping", "accounts"];

/// Writes into a text.
macro_rules! put {
    ($text:expr, $($arguments:tt)*) => { write!($text, $($arguments)*).expect("a String takes anything") };
}

impl Parts {
    fn new(seed: u64, number: usize) -> Self {
        let mut parts = Self {
            random: seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            application: APPLICATIONS[number % APPLICATIONS.len()],
            namespace: namespace_of(number),
            owner: String::new(),
            name: String::new(),
            node: 0,
            address: String::new(),
        };
        let hash = parts.next() >> 24;
        parts.owner = format!("{}-{hash:010x}", parts.application);
        parts.name = format!("{}-{number:06}", parts.owner);
        parts.node = parts.next() % 500;
        let host = parts.next();
        parts.address = format!("10.{}.{}.{}", host % 200, host >> 8 & 0xff, host >> 16 & 0xff);
        parts
    }

    /// Splitmix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0xfff,
            low & 0xffff_ffff_ffff
        )
    }

    fn time(&mut self) -> String {
        let chance = self.next();
        format!(
            "2026-0{}-{:02}T{:02}:{:02}:{:02}Z",
            1 + chance % 9,
            1 + chance / 9 % 28,
            chance >> 8 & 15,
            chance >> 16 & 31,
            chance >> 24 & 31
        )
    }

    fn metadata(&mut self, text: &mut String, shape: Shape) {
        let created = self.time();
        let (application, owner) = (self.application, self.owner.clone());
        put!(text, r#","generation":1,"creationTimestamp":"{created}""#);
        put!(
            text,
            r#","labels":{{"app.kubernetes.io/name":"{application}","app.kubernetes.io/part-of":"shop","app.kubernetes.io/version":"1.{}.{}","pod-template-hash":"{}","tier":"backend"}}"#,
            self.next() % 40,
            self.next() % 10,
            &owner[owner.len() - 10..],
        );
        if shape == Shape::Typical {
            put!(
                text,
                r#","annotations":{{"checksum/config":"{:016x}{:016x}{:016x}{:016x}","prometheus.io/port":"9090","prometheus.io/scrape":"true"}}"#,
                self.next(),
                self.next(),
                self.next(),
                self.next(),
            );
        }
        put!(
            text,
            r#","ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{owner}","uid":"{}","controller":true,"blockOwnerDeletion":true}}]"#,
            self.uid(),
        );
        if shape == Shape::Typical {
            self.managed_fields(text, &created);
        }
    }

    fn managed_fields(&mut self, text: &mut String, created: &str) {
        let owner = self.uid();
        let container = |name: &str, more: &str| {
            format!(
                r#""k:{{\"name\":\"{name}\"}}":{{".":{{}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:name":{{}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}},"f:terminationMessagePath":{{}},"f:terminationMessagePolicy":{{}}{more}}}"#
            )
        };
        let main = container(
            self.application,
            r#","f:env":{".":{},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}}"#,
        );
        let sidecar = container("proxy", "");
        put!(
            text,
            r#","managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{created}","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:checksum/config":{{}}}},"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/name":{{}},"f:pod-template-hash":{{}},"f:tier":{{}}}},"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{owner}\"}}":{{}}}}}},"f:spec":{{"f:containers":{{{main},{sidecar}}},"f:dnsPolicy":{{}},"f:enableServiceLinks":{{}},"f:restartPolicy":{{}},"f:schedulerName":{{}},"f:securityContext":{{}},"f:terminationGracePeriodSeconds":{{}}}}}}}}"#,
        );
        let condition = |kind: &str| {
            format!(
                r#""k:{{\"type\":\"{kind}\"}}":{{".":{{}},"f:lastTransitionTime":{{}},"f:status":{{}},"f:type":{{}}}}"#
            )
        };
        put!(
            text,
            r#",{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{}","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{{},{},{}}},"f:containerStatuses":{{}},"f:hostIP":{{}},"f:phase":{{}},"f:podIP":{{}},"f:podIPs":{{".":{{}},"k:{{\"ip\":\"{}\"}}":{{".":{{}},"f:ip":{{}}}}}},"f:startTime":{{}}}}}},"subresource":"status"}}]"#,
            self.time(),
            condition("ContainersReady"),
            condition("Initialized"),
            condition("Ready"),
            self.address,
        );
    }

    fn spec(&mut self, text: &mut String, shape: Shape) {
        let token = format!("kube-api-access-{:05x}", self.next() & 0xf_ffff);
        let application = self.application;
        text.push_str(r#","spec":{"#);
        if shape == Shape::Typical {
            put!(
                text,
                r#""volumes":[{{"name":"config","configMap":{{"name":"{application}-config","defaultMode":420}}}},{{"name":"{token}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"#
            );
        }
        let mount = format!(
            r#"{{"name":"{token}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}"#
        );
        let tail = r#""terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent""#;
        put!(
            text,
            r#""containers":[{{"name":"{application}","image":"registry.example.com/shop/{application}:1.{}.0","ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"LOG_LEVEL","value":"info"}},{{"name":"DATABASE_URL","valueFrom":{{"secretKeyRef":{{"name":"{application}-database","key":"url"}}}}}}],"resources":{{"limits":{{"memory":"512Mi"}},"requests":{{"cpu":"{}m","memory":"256Mi"}}}}"#,
            self.next() % 40,
            50 + self.next() % 8 * 50,
        );
        match shape {
            Shape::Small => text.push_str("}]"),
            Shape::Typical => put!(
                text,
                r#","volumeMounts":[{{"name":"config","mountPath":"/etc/{application}"}},{mount}],"readinessProbe":{{"httpGet":{{"path":"/ready","port":"http","scheme":"HTTP"}},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}},{tail}}},{{"name":"proxy","image":"registry.example.com/mesh/proxy:2.7.1","resources":{{"limits":{{"memory":"128Mi"}},"requests":{{"cpu":"10m","memory":"64Mi"}}}},{tail}}}]"#
            ),
        }
        put!(
            text,
            r#","restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"{application}","nodeName":"worker-{:03}.example.com","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true}}"#,
            self.node,
        );
    }

    fn status(&mut self, text: &mut String, shape: Shape) {
        let conditions: &[&str] = match shape {
            Shape::Small => &["Ready"],
            Shape::Typical => &[
                "PodReadyToStartContainers",
                "Initialized",
                "Ready",
                "ContainersReady",
                "PodScheduled",
            ],
        };
        let time = self.time();
        let condition = |kind: &&str| {
            format!(
                r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"{time}"}}"#
            )
        };
        let conditions: Vec<String> = conditions.iter().map(condition).collect();
        put!(
            text,
            r#","status":{{"phase":"Running","conditions":[{}],"hostIP":"10.250.{}.{}","podIP":"{address}","podIPs":[{{"ip":"{address}"}}],"startTime":"{time}","#,
            conditions.join(","),
            self.node % 4,
            self.node % 250,
            address = self.address,
        );
        if shape == Shape::Typical {
            let main = self.container_status(self.application, &time);
            let proxy = self.container_status("proxy", &time);
            put!(text, r#""containerStatuses":[{main},{proxy}],"#);
        }
        text.push_str(r#""qosClass":"Burstable"}"#);
    }

    fn container_status(&mut self, name: &str, started: &str) -> String {
        let mut digest = || format!("{:016x}{:016x}{:016x}{:016x}", self.next(), 1, 2, self.next());
        format!(
            r#"{{"name":"{name}","state":{{"running":{{"startedAt":"{started}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"registry.example.com/shop/{name}","imageID":"registry.example.com/shop/{name}@sha256:{}","containerID":"containerd://{}","started":true}}"#,
            digest(),
            digest(),
        )
    }
}
