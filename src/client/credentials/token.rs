use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::warn;

use super::{check_token, read_credential};
use crate::client::{ClientIdentity, CredentialError, Credentials};

/// A kubelet writes a new token at 80 % of the life of the old one; client-go looks once a minute.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A token that stays the same.
pub struct BearerToken {
    token: SecretString,
    what: String,
    expires: Option<Timestamp>,
}

/// A token in a file that is written anew now and then, like that of a service account.
///
/// It is read again every 30 s and after a 401. If it can not be, the last token stays, and that is logged.
pub struct TokenFile {
    path: PathBuf,
    is_rejected: AtomicBool,
    last: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    token: Option<SecretString>,
    at: Option<Instant>,
}

impl BearerToken {
    /// This token, for ever.
    pub fn new(token: SecretString) -> Self {
        Self { token, what: "token".to_owned(), expires: None }
    }

    /// This token, until then. `what` names it in the error that follows.
    pub(crate) fn until(token: SecretString, what: String, expires: Option<Timestamp>) -> Self {
        Self { token, what, expires }
    }

    fn now(&self) -> Result<SecretString, CredentialError> {
        match self.expires {
            Some(expires) if expires <= Timestamp::now() => Err(CredentialError {
                what: self.what.clone(),
                problem: format!("has expired at {expires}: log in again, or use an exec plugin"),
            }),
            Some(_) | None => Ok(self.token.clone()),
        }
    }
}

impl Credentials for BearerToken {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(async { self.now().map(Some) })
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn rejected(&self) {}
}

impl TokenFile {
    /// The token in this file. It is not read before it is needed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            is_rejected: AtomicBool::new(false),
            last: Mutex::new(LastRead::default()),
        }
    }

    /// With a token to use as long as the file can not be read.
    #[must_use]
    pub fn starting_with(self, token: SecretString) -> Self {
        let last = Mutex::new(LastRead { token: Some(token), at: None });
        Self { last, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whoever comes while it is being read waits for that read.
    async fn read(&self) -> Result<SecretString, CredentialError> {
        let mut last = self.last.lock().await;
        let is_fresh = last.at.is_some_and(|at| at.elapsed() < READ_AGAIN_AFTER);
        if let Some(token) = &last.token
            && is_fresh
            && !self.is_rejected.load(Ordering::Acquire)
        {
            return Ok(token.clone());
        }
        self.is_rejected.store(false, Ordering::Release);
        let read = match read_credential(self.path.clone()).await {
            Ok(content) => match std::str::from_utf8(&content) {
                Ok(text) => check_token(text).map_err(str::to_owned),
                Err(_) => Err("holds characters that no token has".to_owned()),
            },
            Err(problem) => Err(problem),
        };
        last.at = Some(Instant::now());
        match (read, &last.token) {
            (Ok(token), _) => {
                last.token = Some(token.clone());
                Ok(token)
            }
            (Err(problem), Some(token)) => {
                warn!(file = %self.path.display(), problem, "keeping the last token");
                Ok(token.clone())
            }
            (Err(problem), None) => Err(CredentialError {
                what: self.path.display().to_string(),
                problem: format!("{problem}: write a token into it"),
            }),
        }
    }
}

impl Credentials for TokenFile {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(async { self.read().await.map(Some) })
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn rejected(&self) {
        self.is_rejected.store(true, Ordering::Release);
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::client::config::Folder;

    async fn token(file: &TokenFile) -> String {
        file.token().await.unwrap().unwrap().expose_secret().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_token_is_seen_within_a_minute() {
        let folder = Folder::new();
        let file = TokenFile::new(folder.write("token", "one\n"));
        assert_eq!(token(&file).await, "one");
        folder.write("token", "two\n");
        assert_eq!(token(&file).await, "one");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(token(&file).await, "two");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_token_is_read_again_at_once() {
        let folder = Folder::new();
        let file = TokenFile::new(folder.write("token", "one"));
        assert_eq!(token(&file).await, "one");
        folder.write("token", "two");
        file.rejected();
        assert_eq!(token(&file).await, "two");
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_missing_or_broken_file_keeps_the_last_token() {
        let folder = Folder::new();
        let file = TokenFile::new(folder.write("token", "one"));
        assert_eq!(token(&file).await, "one");
        for content in ["", " \n", "two three", "two\u{7}"] {
            folder.write("token", content);
            file.rejected();
            assert_eq!(token(&file).await, "one", "{content:?}");
        }
        std::fs::remove_file(file.path()).unwrap();
        file.rejected();
        assert_eq!(token(&file).await, "one");
        folder.write("token", "two");
        tokio::time::advance(READ_AGAIN_AFTER).await;
        assert_eq!(token(&file).await, "two");
    }

    /// As a kubelet writes: all files of a volume change at once.
    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_token_behind_a_link_is_read_where_the_link_leads_now() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new();
        for (name, content) in [("first", "one"), ("second", "two")] {
            std::fs::create_dir(folder.path(name)).unwrap();
            std::fs::write(folder.path(name).join("token"), content).unwrap();
        }
        let (data, next) = (folder.path("..data"), folder.path("..data_tmp"));
        symlink("first", &data).unwrap();
        symlink("..data/token", folder.path("token")).unwrap();
        let file = TokenFile::new(folder.path("token"));
        assert_eq!(token(&file).await, "one");
        symlink("second", &next).unwrap();
        std::fs::rename(&next, &data).unwrap();
        tokio::time::advance(READ_AGAIN_AFTER).await;
        assert_eq!(token(&file).await, "two");
    }

    #[tokio::test]
    async fn a_file_that_was_never_there_is_an_error() {
        let folder = Folder::new();
        let file = TokenFile::new(folder.path("token"));
        let expected = format!(
            "{}: can not be read: entity not found: write a token into it",
            file.path().display()
        );
        assert_eq!(file.token().await.unwrap_err().to_string(), expected);
        let file = file.starting_with(SecretString::from("given"));
        assert_eq!(token(&file).await, "given");
        assert!(!format!("{file:?}").contains("given"));
    }

    #[tokio::test]
    async fn a_token_is_not_used_after_its_time() {
        let expires = Timestamp::now();
        let token = BearerToken::until("secret".into(), "users[me]".to_owned(), Some(expires));
        let error = token.token().await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("users[me]: has expired at {expires}: log in again, or use an exec plugin")
        );
        assert!(!format!("{token:?}").contains("secret"));
    }
}
