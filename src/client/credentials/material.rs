use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::Offset;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// Which half of a pair is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Certificate,
    Key,
}

/// Whether there are certificates in a file of authorities.
pub(crate) fn check_authority(pem: &[u8]) -> Result<(), &'static str> {
    certificates(pem).map(|_certificates| ())
}

/// Whether a certificate and a key are readable and belong together. Gives the time until which the certificate holds.
pub(crate) fn check_identity(
    certificate: &[u8],
    key: &[u8],
) -> Result<Option<Timestamp>, (Half, &'static str)> {
    let chain = certificates(certificate).map_err(|problem| (Half::Certificate, problem))?;
    let expires = chain.first().and_then(|certificate| expiry(certificate));
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_malformed| {
        (Half::Key, "holds no private key: it must be PEM with BEGIN PRIVATE KEY, not encrypted")
    })?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => (Half::Key, "does not belong to the certificate"),
        rustls::Error::InvalidCertificate(_) => (Half::Certificate, "holds no valid certificate"),
        _ => (
            Half::Key,
            "holds a private key of a kind that is not supported: use RSA, ECDSA or Ed25519",
        ),
    })?;
    Ok(expires)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    const NONE: &str = "holds no certificate: it must be PEM with BEGIN CERTIFICATE";
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|_malformed| NONE)?;
    if certificates.is_empty() { Err(NONE) } else { Ok(certificates) }
}

/// `notAfter` of a certificate, found by walking the DER: nothing we depend on shows it.
fn expiry(certificate: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let expect =
        |wanted: u8, (tag, content, rest): (u8, _, _)| (tag == wanted).then_some((content, rest));
    let (certificate, _) = expect(SEQUENCE, element(certificate)?)?;
    let (mut signed, _): (&[u8], &[u8]) = expect(SEQUENCE, element(certificate)?)?;
    if signed.first() == Some(&VERSION) {
        signed = element(signed)?.2;
    }
    // The serial number, the signature's algorithm and the issuer come before.
    for _ in 0..3 {
        signed = element(signed)?.2;
    }
    let (validity, _) = expect(SEQUENCE, element(signed)?)?;
    let (_, _not_before, rest) = element(validity)?;
    let (tag, not_after, _) = element(rest)?;
    time(tag, std::str::from_utf8(not_after).ok()?)
}

/// The tag and the content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// `UTCTime` (two digits of the year) or `GeneralizedTime` (four), both ending in `Z`.
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let digits =
        text.strip_suffix('Z').filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let date = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Offset::UTC.to_timestamp(date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_forms_of_time_are_read() {
        assert_eq!(time(0x17, "260102030405Z"), "2026-01-02T03:04:05Z".parse().ok());
        assert_eq!(time(0x17, "991231235959Z"), "1999-12-31T23:59:59Z".parse().ok());
        assert_eq!(time(0x18, "20500102030405Z"), "2050-01-02T03:04:05Z".parse().ok());
        for (tag, text) in
            [(0x17, "2601"), (0x17, "26010203040Z"), (0x18, "x"), (0x02, "260102030405Z")]
        {
            assert_eq!(time(tag, text), None, "{text}");
        }
    }

    #[test]
    fn a_certificate_tells_until_when_it_holds() {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let checked = check_identity(certificate.pem().as_bytes(), key.serialize_pem().as_bytes());
        assert_eq!(checked, Ok("2031-05-06T00:00:00Z".parse().ok()));
    }

    #[test]
    fn any_bytes_are_survived() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        for length in 0..certificate.der().len() {
            assert_eq!(expiry(&certificate.der()[..length]), None);
        }
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..1000 {
            let mut bytes = certificate.der().to_vec();
            bytes[rng.usize(..certificate.der().len())] = rng.u8(..);
            let _: Option<Timestamp> = expiry(&bytes);
        }
    }
}
