use std::path::{Path, PathBuf};

use super::Environment;

/// Which credential plugins a kubeconfig may run, as `credentialPluginPolicy` of kubectl.
///
/// The default is to run all, as kubectl does: who may write the kubeconfig may also write what its user runs. A
/// program that takes kubeconfigs from others should deny them, or name those it knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PluginPolicy {
    /// All.
    #[default]
    AllowAll,
    /// These. A name without a slash stands for the program that `PATH` finds by it, and for no other of that name.
    AllowList(Vec<PathBuf>),
    /// None.
    Deny,
}

impl PluginPolicy {
    /// Whether a program may run; if not, what to do.
    pub(super) fn check(&self, command: &Path, environment: &Environment) -> Result<(), String> {
        match self {
            Self::AllowAll => Ok(()),
            Self::Deny => {
                Err("credential plugins are not allowed: allow them, or use a token".to_owned())
            }
            Self::AllowList(allowed) => {
                let is_this = |entry: &PathBuf| {
                    find(&entry.to_string_lossy(), environment).is_ok_and(|entry| entry == command)
                };
                match allowed.iter().any(is_this) {
                    true => Ok(()),
                    false => Err(format!(
                        "the credential plugin {} is not among those allowed: add it to them",
                        command.display()
                    )),
                }
            }
        }
    }
}

/// The absolute path of a program. Folders of `PATH` that are relative, such as `.`, are passed over.
pub(super) fn find(command: &str, environment: &Environment) -> Result<PathBuf, String> {
    let path = Path::new(command);
    if command.contains(std::path::MAIN_SEPARATOR) {
        return match (path.is_absolute(), is_program(path)) {
            (true, true) => Ok(path.to_owned()),
            (true, false) => Err(format!("there is no program {command}")),
            (false, _) => Err(format!("{command} is relative: give an absolute path")),
        };
    }
    let folders = environment.get("PATH").map(std::env::split_paths);
    let mut programs = folders.into_iter().flatten().map(|folder| folder.join(command));
    programs
        .find(|program| program.is_absolute() && is_program(program))
        .ok_or_else(|| format!("there is no program {command} in PATH"))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::empty().variable("PATH", ".:relative:/nonexistent:/bin")
    }

    #[test]
    fn a_program_is_found_in_the_absolute_folders_of_the_path() {
        assert_eq!(find("sh", &environment()), Ok("/bin/sh".into()));
        assert_eq!(find("/bin/sh", &environment()), Ok("/bin/sh".into()));
        assert_eq!(
            find("./sh", &environment()),
            Err("./sh is relative: give an absolute path".to_owned())
        );
        assert_eq!(
            find("Cargo.toml", &environment()),
            Err("there is no program Cargo.toml in PATH".to_owned())
        );
        assert_eq!(find("/bin", &environment()), Err("there is no program /bin".to_owned()));
        assert_eq!(
            find("sh", &Environment::empty()),
            Err("there is no program sh in PATH".to_owned())
        );
    }

    #[test]
    fn a_name_allows_only_the_program_that_the_path_finds() {
        let check = |allowed: &str, command: &str| {
            PluginPolicy::AllowList(vec![allowed.into()]).check(Path::new(command), &environment())
        };
        assert_eq!(check("sh", "/bin/sh"), Ok(()));
        assert_eq!(check("/bin/sh", "/bin/sh"), Ok(()));
        let refused = "the credential plugin /tmp/sh is not among those allowed: add it to them";
        assert_eq!(check("sh", "/tmp/sh"), Err(refused.to_owned()));
    }
}
