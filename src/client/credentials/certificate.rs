use std::fmt;
use std::path::PathBuf;

use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::{Half, check_identity, read_credential};
use crate::client::{ClientIdentity, CredentialError, Credentials};

/// A client certificate and its key, each in a file or given.
///
/// Files are read again whenever a connection is made; a pair that differs gets the next generation. A pair that can
/// not be used, such as one of which only a half is written, leaves the last one in place, and that is logged.
pub struct ClientCertificate {
    certificate: Material,
    key: Material,
    last: Mutex<LastRead>,
}

/// Where half of a pair comes from.
pub(crate) enum Material {
    File(PathBuf),
    Pem(SecretString),
}

#[derive(Default)]
struct LastRead {
    identity: Option<ClientIdentity>,
    /// So that a lasting problem is logged once.
    problem: Option<CredentialError>,
}

impl ClientCertificate {
    /// The pair in these files, as PEM.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::new(Material::File(certificate.into()), Material::File(key.into()))
    }

    /// This pair, as PEM.
    pub fn from_pem(certificate: &str, key: SecretString) -> Self {
        Self::new(Material::Pem(certificate.into()), Material::Pem(key))
    }

    pub(crate) fn new(certificate: Material, key: Material) -> Self {
        Self { certificate, key, last: Mutex::new(LastRead::default()) }
    }

    async fn read(&self) -> Result<ClientIdentity, CredentialError> {
        let mut last = self.last.lock().await;
        let certificate = self.certificate.read("client certificate").await;
        let key = self.key.read("client key").await;
        let read = certificate.and_then(|certificate| Ok((certificate, key?)));
        let read = read.and_then(|(certificate, key)| {
            if let Some(identity) = &last.identity
                && identity.certificates == *certificate
                && identity.key.expose_secret().as_bytes() == key.as_slice()
            {
                return Ok(identity.clone());
            }
            let generation = last.identity.as_ref().map_or(1, |last| last.generation + 1);
            self.checked(&certificate, &key, generation)
        });
        match read {
            Ok(identity) => {
                if last.identity.as_ref().is_some_and(|last| last.generation != identity.generation)
                {
                    info!(generation = identity.generation, "the client certificate has changed");
                }
                *last = LastRead { identity: Some(identity.clone()), problem: None };
                Ok(identity)
            }
            Err(problem) => {
                let Some(identity) = last.identity.clone() else { return Err(problem) };
                if last.problem.as_ref() != Some(&problem) {
                    warn!(%problem, "keeping the last client certificate");
                    last.problem = Some(problem);
                }
                Ok(identity)
            }
        }
    }

    fn checked(
        &self,
        certificate: &[u8],
        key: &[u8],
        generation: u64,
    ) -> Result<ClientIdentity, CredentialError> {
        check_identity(certificate, key).map_err(|(half, problem)| {
            let what = match half {
                Half::Certificate => self.certificate.name("client certificate"),
                Half::Key => self.key.name("client key"),
            };
            CredentialError { what, problem: problem.to_owned() }
        })?;
        let text = std::str::from_utf8(key).map_err(|_not_utf8| CredentialError {
            what: self.key.name("client key"),
            problem: "is not PEM".to_owned(),
        })?;
        Ok(ClientIdentity {
            certificates: certificate.to_vec(),
            key: SecretString::from(text),
            generation,
        })
    }
}

impl Material {
    fn name(&self, given: &str) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Pem(_) => given.to_owned(),
        }
    }

    async fn read(&self, given: &str) -> Result<Zeroizing<Vec<u8>>, CredentialError> {
        match self {
            Self::Pem(pem) => Ok(Zeroizing::new(pem.expose_secret().as_bytes().to_vec())),
            Self::File(path) => read_credential(path.clone())
                .await
                .map_err(|problem| CredentialError { what: self.name(given), problem }),
        }
    }
}

impl Credentials for ClientCertificate {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(async { self.read().await.map(Some) })
    }

    fn rejected(&self) {}
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Pem(_) => f.write_str("given"),
        }
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate")
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::config::{Folder, self_signed};

    async fn generation(certificate: &ClientCertificate) -> u64 {
        certificate.identity().await.unwrap().unwrap().generation
    }

    #[tokio::test]
    async fn a_pair_that_changes_gets_the_next_generation() {
        let folder = Folder::new();
        let (certificate, key) = self_signed(2050);
        let files = ClientCertificate::from_files(
            folder.write("tls.crt", &certificate),
            folder.write("tls.key", &key),
        );
        assert_eq!(generation(&files).await, 1);
        folder.write("tls.crt", &certificate);
        assert_eq!(generation(&files).await, 1);
        let (certificate, key) = self_signed(2050);
        folder.write("tls.crt", &certificate);
        assert_eq!(generation(&files).await, 1, "the key is still the old one");
        folder.write("tls.key", &key);
        assert_eq!(generation(&files).await, 2);
        std::fs::remove_file(folder.path("tls.key")).unwrap();
        assert_eq!(generation(&files).await, 2);
    }

    #[tokio::test]
    async fn a_pair_that_does_not_match_is_an_error() {
        let (certificate, _) = self_signed(2050);
        let (_, key) = self_signed(2050);
        let given = ClientCertificate::from_pem(&certificate, key.into());
        let error = given.identity().await.unwrap_err();
        assert_eq!(error.to_string(), "client key: does not belong to the certificate");
        assert!(!format!("{given:?}{error:?}").contains("PRIVATE"));
    }
}
