use std::time::Duration;

/// How long a [`KubernetesSource`](super::KubernetesSource) waits for answers, and how large they may be.
///
/// ```
/// use kubeflect::client::SourceOptions;
///
/// let patient = SourceOptions { list_timeout: std::time::Duration::from_secs(900), ..SourceOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceOptions {
    /// How long a list that has begun may pause. 30 s.
    pub list_idle_timeout: Duration,
    /// How long one page of a list may take to begin, and then to end. 5 min: it may have to wait for its turn, and a
    /// transport has shorter limits of its own.
    pub list_timeout: Duration,
    /// How large one page of a list may be, in bytes. 2 GiB: only its objects are kept in memory.
    pub list_cap: u64,
    /// How large one object of a list may be, in bytes. 16 MiB.
    pub item_cap: usize,
    /// How large a list may be without its objects, in bytes. 1 MiB.
    pub envelope_cap: usize,
    /// How large one watch event may be, in bytes. 16 MiB: client-go's limit.
    pub event_cap: usize,
    /// How long a watch is waited for beyond the end it asked for. 15 s, and a reflector waits no longer than that.
    pub watch_grace: Duration,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            list_idle_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(300),
            list_cap: 2 << 30,
            item_cap: 16 << 20,
            envelope_cap: 1 << 20,
            event_cap: 16 << 20,
            watch_grace: Duration::from_secs(15),
        }
    }
}
