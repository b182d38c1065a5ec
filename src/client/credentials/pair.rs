use std::sync::Arc;

use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::client::{ClientIdentity, CredentialError, Credentials};

/// The token of one and the certificate of the other. Either may be the only one that has any.
#[derive(Debug)]
pub(crate) struct CredentialPair {
    pub(crate) token: Arc<dyn Credentials>,
    pub(crate) identity: Arc<dyn Credentials>,
}

impl Credentials for CredentialPair {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        self.token.token()
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        self.identity.identity()
    }

    fn rejected(&self) {
        self.token.rejected();
        self.identity.rejected();
    }
}
