//! Who we are: tokens, token files, client certificates and plugins, each of which keeps itself fresh.

mod certificate;
mod lease;
mod leased;
mod material;
mod oidc;
mod pair;
mod plugin;
mod token;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;

pub use self::certificate::ClientCertificate;
pub(super) use self::certificate::Material;
pub(super) use self::material::{Half, check_authority, check_identity};
pub(super) use self::oidc::expiry;
pub use self::oidc::{OidcOptions, OidcToken};
pub(super) use self::pair::CredentialPair;
pub use self::plugin::{CredentialPlugin, PluginOptions, PluginVersion};
pub use self::token::{BearerToken, TokenFile};

/// No token, certificate or key is longer.
pub(super) const LONGEST_FILE: u64 = 1024 * 1024;

/// Reads a whole file that is not longer than `longest`. The error is a text like `can not be read: entity not found`.
pub(super) fn read_capped(path: &Path, longest: u64) -> Result<Zeroizing<Vec<u8>>, String> {
    let unreadable = |error: std::io::Error| format!("can not be read: {}", error.kind());
    // Opening a pipe would wait for a writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("is not a file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut content = Zeroizing::new(Vec::new());
    file.take(longest.saturating_add(1)).read_to_end(&mut content).map_err(unreadable)?;
    match u64::try_from(content.len()).is_ok_and(|length| length <= longest) {
        true => Ok(content),
        false => Err(format!("is longer than {} KiB", longest / 1024)),
    }
}

/// The same, off the arbiter.
async fn read_credential(path: PathBuf) -> Result<Zeroizing<Vec<u8>>, String> {
    tokio::task::spawn_blocking(move || read_capped(&path, LONGEST_FILE))
        .await
        .unwrap_or_else(|_stopped| Err("can not be read: the runtime is stopping".to_owned()))
}

/// What may follow `Bearer `: no space inside, no control character, nothing that ends a header.
pub(super) fn check_token(token: &str) -> Result<SecretString, &'static str> {
    let token = token.trim();
    if token.is_empty() {
        return Err("is empty");
    }
    match token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(SecretString::from(token)),
        false => Err("holds characters that no token has"),
    }
}
