//! The client over real sockets: TLS, credentials, proxies and limits, against the embedded API server behind a front
//! that can do what real ones do. On the real clock: a test waits for what it is told, never for time.

mod answers;
mod broken;
mod certificates;
mod credentials;
mod exhausted;
mod front;
mod kubeconfig;
mod oidc;
mod patience;
mod proxies;
mod secrets;
mod support;
mod tls;
