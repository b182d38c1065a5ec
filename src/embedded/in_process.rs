use std::io;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::faults::Switch;
use super::{ApiServer, lock};
use crate::api::ApiError;
use crate::client::{Cluster, Request, Response, Transport};

/// Reaches the server by calling it: no socket, no thread, and on whatever clock the caller runs.
struct InProcess(ApiServer);

impl Cluster for ApiServer {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        Ok(Rc::new(InProcess(self.clone())))
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let server = self.0.clone();
        async move {
            if lock(&server.model).faults.is_on(Switch::ConnectionsRefused) {
                return Err(ApiError::connection(io::Error::from(
                    io::ErrorKind::ConnectionRefused,
                )));
            }
            Ok(server.handle(request).await)
        }
        .boxed_local()
    }
}
