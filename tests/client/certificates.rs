//! Certificates of the tests' own.

use std::sync::Arc;

use kubeflect::client::ClientIdentity;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Signs certificates.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Whether a server wants to see who we are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientCertificates {
    Ignored,
    /// As kube-apiserver does: every client is asked, and may have none.
    Optional,
    Required,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    pub(crate) fn server(&self, names: &[&str], clients: ClientCertificates) -> Arc<ServerConfig> {
        self.server_with(names, clients, |_params| {})
    }

    pub(crate) fn expired_server(&self, names: &[&str]) -> Arc<ServerConfig> {
        self.server_with(names, ClientCertificates::Ignored, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    fn server_with(
        &self,
        names: &[&str],
        clients: ClientCertificates,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            ClientCertificates::Ignored => builder.with_no_client_auth(),
            ClientCertificates::Optional | ClientCertificates::Required => {
                let mut roots = RootCertStore::empty();
                roots.add(self.issuer.der().clone()).unwrap();
                let mut verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                if clients == ClientCertificates::Optional {
                    verifier = verifier.allow_unauthenticated();
                }
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }

    /// A client certificate, and its DER.
    pub(crate) fn client(&self, name: &str, generation: u64) -> (ClientIdentity, Vec<u8>) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let identity = ClientIdentity {
            certificates: certificate.pem().into_bytes(),
            key: key.serialize_pem().into(),
            generation,
        };
        (identity, certificate.der().to_vec())
    }
}
