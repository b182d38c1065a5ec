use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler, Recipient, ResponseFuture};
use actix_rt::ArbiterHandle;
use bytes::Bytes;
use kubeflect::api::ApiError;
use kubeflect::client::{
    Anonymous, Cluster as _, Connection, Credentials, HttpCluster, HttpOptions, Method, Request,
    TlsOptions, TokenFile, Transport,
};
use kubeflect::config::WebhookSettings;

use super::Lines;
use crate::cli::failure::chain;

/// Posts lines until they are accepted. Those of one reflector are posted one batch after the other.
pub(super) struct Webhook {
    settings: WebhookSettings,
}

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

impl Webhook {
    pub(super) fn new(settings: WebhookSettings) -> Self {
        Self { settings }
    }

    pub(super) fn start_on(self, arbiter: &ArbiterHandle) -> Recipient<Lines> {
        Running::start_in_arbiter(arbiter, move |_| Running(Rc::new(Post::new(self.settings))))
            .recipient()
    }
}

struct Running(Rc<Post>);

impl Actor for Running {
    type Context = Context<Self>;
}

impl Handler<Lines> for Running {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, lines: Lines, _: &mut Context<Self>) -> ResponseFuture<()> {
        let post = Rc::clone(&self.0);
        Box::pin(async move { post.until_accepted(lines.0).await })
    }
}

/// One receiver, asked with the client that Kubernetes is asked with: TLS, connections, and no token without TLS.
struct Post {
    settings: WebhookSettings,
    cluster: HttpCluster,
}

impl Post {
    fn new(settings: WebhookSettings) -> Self {
        let credentials: Arc<dyn Credentials> = match &settings.token_file {
            Some(file) => Arc::new(TokenFile::new(file)),
            None => Arc::new(Anonymous),
        };
        let connection = Connection {
            server: settings.server.clone(),
            tls: TlsOptions::default(),
            proxy: None,
            credentials,
            impersonation: None,
            default_namespace: None,
        };
        let options = HttpOptions { head_timeout: settings.timeout, ..HttpOptions::default() };
        Self { settings, cluster: HttpCluster::with_options(connection, options) }
    }

    async fn until_accepted(&self, lines: Bytes) {
        let (mut delay, mut transport) = (FIRST_RETRY, None);
        loop {
            let problem = match self.attempt(&mut transport, lines.clone()).await {
                Ok(status) if (200..300).contains(&status) => return,
                Ok(status) => format!("answered {status}"),
                Err(error) => chain(&error),
            };
            let server = &self.settings.server;
            tracing::warn!(%server, problem, ?delay, "a webhook does not take changes; trying again");
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(LONGEST_RETRY);
        }
    }

    async fn attempt(
        &self,
        transport: &mut Option<Rc<dyn Transport>>,
        lines: Bytes,
    ) -> Result<u16, ApiError> {
        let transport = match transport {
            Some(transport) => transport,
            None => transport.insert(self.cluster.connect()?),
        };
        let request = Request {
            method: Method::Post,
            content_type: Some("application/x-ndjson"),
            body: lines,
            ..Request::get(self.settings.path.clone())
        };
        Ok(transport.send(request).await?.status)
    }
}
