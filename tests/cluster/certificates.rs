//! Who may talk to whom in a control plane: certificates and keys, as files.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

/// Writes to a folder: `ca.crt`, `server.crt` and `.key`, `admin.crt` and `.key`, and
/// `service-accounts.key` and `.pub`.
pub(crate) fn write(folder: &Path) {
    let mut params = named("test authority", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("ca.crt"), authority.pem()).unwrap();

    let mut server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    sign(folder, "server", &server, &authority);

    let mut admin = named("admin", Some("system:masters"));
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    sign(folder, "admin", &admin, &authority);

    let key = KeyPair::generate().unwrap();
    fs::write(folder.join("service-accounts.key"), key.serialize_pem()).unwrap();
    fs::write(folder.join("service-accounts.pub"), key.public_key_pem()).unwrap();
}

fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}

fn sign(
    folder: &Path,
    name: &str,
    params: &CertificateParams,
    authority: &CertifiedIssuer<'static, KeyPair>,
) {
    let key = KeyPair::generate().unwrap();
    let certificate = params.clone().signed_by(&key, authority).unwrap();
    fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}
