use std::io;

use rustls::{AlertDescription, CertificateError};

use super::tls::Trust;

/// Why there is no TLS with a server. Says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TlsError {
    #[error(
        "the certificate of the server is signed by nobody we trust: give the authority of the cluster (certificate-authority)"
    )]
    UnknownIssuer,
    #[error(
        "the certificate of the server is for {presented}, not for {expected}: use one of these as the address, or set tls-server-name"
    )]
    WrongName { expected: String, presented: String },
    #[error(
        "the certificate of the server has expired, or is not valid yet: renew it, or set the clock of this machine"
    )]
    Expired,
    #[error("the certificate of the server is not acceptable ({problem})")]
    Unacceptable { problem: String },
    #[error(
        "the server asks for a client certificate and we have none: set client-certificate and client-key"
    )]
    IdentityRequired,
    #[error(
        "the server hung up right after the handshake, in which it asked for a client certificate and got none: if it needs one, set client-certificate and client-key"
    )]
    IdentityMissed,
    #[error("the server does not accept our client certificate ({problem}): renew it")]
    IdentityRefused { problem: String },
    #[error("the server does not speak TLS here: is the address meant to be http://?")]
    NotTls,
    #[error("TLS failed: {problem}")]
    Other { problem: String },
}

impl TlsError {
    /// Why a handshake failed.
    pub(super) fn in_handshake(error: &io::Error, trust: &Trust) -> Self {
        match cause(error) {
            Some(cause) => Self::from_cause(cause, trust),
            None if trust.misses_identity() => Self::IdentityMissed,
            None => Self::Other { problem: error.to_string() },
        }
    }

    /// Why a connection broke right after its handshake, if TLS is why.
    pub(super) fn after_handshake(error: &io::Error, trust: &Trust) -> Option<Self> {
        match cause(error) {
            Some(cause) => Some(Self::from_cause(cause, trust)),
            None => trust.misses_identity().then_some(Self::IdentityMissed),
        }
    }

    fn from_cause(cause: &rustls::Error, trust: &Trust) -> Self {
        match cause {
            rustls::Error::InvalidCertificate(problem) => Self::from_certificate(problem, trust),
            rustls::Error::AlertReceived(alert) => Self::from_alert(*alert, trust),
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            other => Self::Other { problem: other.to_string() },
        }
    }

    fn from_certificate(problem: &CertificateError, trust: &Trust) -> Self {
        match problem {
            // Another authority of the same name: its signature does not fit.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            CertificateError::NotValidForName => Self::WrongName {
                expected: trust.server_name().to_owned(),
                presented: "another name".to_owned(),
            },
            CertificateError::NotValidForNameContext { presented, .. } => Self::WrongName {
                expected: trust.server_name().to_owned(),
                presented: names(presented),
            },
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            other => Self::Unacceptable { problem: other.to_string() },
        }
    }

    /// The server speaks of our certificate, since its own is its own affair.
    fn from_alert(alert: AlertDescription, trust: &Trust) -> Self {
        match alert {
            AlertDescription::CertificateRequired => Self::IdentityRequired,
            _ if trust.misses_identity() => Self::IdentityRequired,
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied => {
                Self::IdentityRefused { problem: format!("{alert:?}") }
            }
            other => Self::Other { problem: format!("the server refused with {other:?}") },
        }
    }
}

fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// What the certificate is for: rustls says `DnsName("a")` and `IpAddress(1.2.3.4)`.
fn names(presented: &[String]) -> String {
    const SHOWN: usize = 5;
    if presented.is_empty() {
        return "no name at all".to_owned();
    }
    let plain = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let mut shown: Vec<String> = presented.iter().take(SHOWN).map(plain).collect();
    if presented.len() > SHOWN {
        shown.push(format!("{} more", presented.len() - SHOWN));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_certificate_are_plain() {
        let presented =
            ["DnsName(\"kubernetes.default\")".to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        assert_eq!(names(&presented), "kubernetes.default, 10.0.0.1");
        assert_eq!(names(&[]), "no name at all");
        assert!(names(&vec!["a".to_owned(); 9]).ends_with("4 more"));
    }
}
