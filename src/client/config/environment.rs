use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a configuration takes from around it: the variables, the home folder, the service account's folder.
///
/// It is a value, so that a program or a test can have one of its own.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    service_account: PathBuf,
}

impl Environment {
    /// That of this process, as it is now.
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            home: std::env::home_dir(),
            service_account: SERVICE_ACCOUNT.into(),
        }
    }

    /// No variable and no home.
    pub fn empty() -> Self {
        Self { variables: BTreeMap::new(), home: None, service_account: SERVICE_ACCOUNT.into() }
    }

    /// With this variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// With this home folder: `.kube/config` is below it.
    #[must_use]
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// With the `token`, `ca.crt` and `namespace` of the service account in this folder.
    #[must_use]
    pub fn service_account(mut self, folder: impl Into<PathBuf>) -> Self {
        self.service_account = folder.into();
        self
    }

    /// The value of a variable; none if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    pub(super) fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }

    pub(super) fn default_kubeconfig(&self) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(".kube").join("config"))
    }

    pub(super) fn service_account_folder(&self) -> &Path {
        &self.service_account
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::of_process()
    }
}

/// Names only: values may be secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("home", &self.home)
            .field("service_account", &self.service_account)
            .finish()
    }
}
