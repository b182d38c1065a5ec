use std::time::Duration;

use crate::client::BudgetOptions;

/// How patient a connection to an API server is, and how modest.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpOptions {
    /// For the name to be resolved and one of its addresses to answer; the same again for a proxy to agree.
    pub connect_timeout: Duration,
    /// For the TLS handshake.
    pub tls_timeout: Duration,
    /// From a request to the head of its answer. Not for a watch: some proxies hold its head back until the first event.
    pub head_timeout: Duration,
    /// Between two pieces of a body. Not for a watch, which may be silent.
    pub idle_timeout: Duration,
    /// How a dead peer is found out.
    pub keepalive: Keepalive,
    /// How often the files of certificates are looked at.
    pub reload_interval: Duration,
    /// The head of an answer may not be larger; 128 KiB at most.
    pub head_cap: usize,
    /// How much may be asked of the server.
    pub budget: BudgetOptions,
}

/// How a dead peer is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// After so long a silence it is asked.
    pub after: Duration,
    /// And again.
    pub every: Duration,
    /// So often.
    pub probes: u32,
    /// What we sent is acknowledged within this, or the connection is dead. On Linux.
    pub user_timeout: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            tls_timeout: Duration::from_secs(10),
            // The server gives up after 60 s.
            head_timeout: Duration::from_secs(65),
            idle_timeout: Duration::from_secs(30),
            keepalive: Keepalive::default(),
            reload_interval: Duration::from_secs(60),
            head_cap: 64 << 10,
            budget: BudgetOptions::default(),
        }
    }
}

impl Default for Keepalive {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(15),
            every: Duration::from_secs(5),
            probes: 3,
            user_timeout: Duration::from_secs(30),
        }
    }
}
