use std::rc::Rc;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;

use super::budget::Budget;
use super::purpose::Purpose;
use super::{BodyStream, BudgetOptions, Cluster, Request, Response, Transport};
use crate::api::ApiError;

/// Any cluster, asked no more than a budget allows. All its connections share it.
///
/// [`HttpCluster`](super::HttpCluster) has one of its own.
#[derive(Debug)]
pub struct Budgeted<C> {
    cluster: C,
    budget: Arc<Budget>,
}

struct BudgetedTransport {
    transport: Rc<dyn Transport>,
    budget: Arc<Budget>,
}

impl<C: Cluster> Budgeted<C> {
    /// Asks `cluster` no more than this.
    pub fn new(cluster: C, options: BudgetOptions) -> Self {
        Self { cluster, budget: Arc::new(Budget::new(options)) }
    }
}

impl<C: Cluster> Cluster for Budgeted<C> {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        let transport = self.cluster.connect()?;
        Ok(Rc::new(BudgetedTransport { transport, budget: Arc::clone(&self.budget) }))
    }
}

impl Transport for BudgetedTransport {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let (transport, budget) = (Rc::clone(&self.transport), Arc::clone(&self.budget));
        async move {
            let permit = match Purpose::of(&request) {
                Purpose::List => Some(budget.list().await),
                Purpose::Watch | Purpose::Other => None,
            };
            budget.admit().await;
            let response = transport.send(request).await?;
            Ok(Response { body: holding(permit, response.body), ..response })
        }
        .boxed_local()
    }
}

/// The same body. The permit is given back when it ends.
fn holding(permit: Option<OwnedSemaphorePermit>, body: BodyStream) -> BodyStream {
    stream::unfold((body, permit), |(mut body, permit)| async {
        let chunk = body.next().await?;
        Some((chunk, (body, permit)))
    })
    .boxed_local()
}
