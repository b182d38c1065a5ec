use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that is put aside when it has become too large: `changes.jsonl`, `changes.jsonl.1`, and so on.
///
/// What was written is whole lines, whatever failed in between: a write that fails is undone.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    rotate_size: u64,
    keep: usize,
    file: File,
    length: u64,
}

impl Rotating {
    pub(super) fn open(path: &Path, rotate_size: u64, keep: usize) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        // Whole objects are written there, Secrets perhaps.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotate_size, keep, file, length })
    }

    /// Writes whole lines, all or none of them.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.length >= self.rotate_size {
            self.rotate()?;
        }
        let written = self.file.write_all(lines).and_then(|()| self.file.flush());
        if written.is_err() {
            // The next attempt begins where this one did.
            self.file.set_len(self.length)?;
            return written;
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        // Somebody may have taken it away, or an attempt before this one has put it aside and got no further.
        if fs::metadata(&self.path).is_ok_and(|file| file.is_file()) {
            let is_free = |number: &usize| !self.aside(*number).exists();
            let free = (1..=self.keep).find(is_free).unwrap_or(self.keep);
            for number in (1..free).rev() {
                fs::rename(self.aside(number), self.aside(number + 1))?;
            }
            fs::rename(&self.path, self.aside(1))?;
        }
        *self = Self::open(&self.path, self.rotate_size, self.keep)?;
        Ok(())
    }

    fn aside(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_full_is_put_aside_and_the_oldest_goes() {
        let folder =
            std::env::temp_dir().join(format!("kubeflect-rotating-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("changes.jsonl");
        let mut file = Rotating::open(&path, 8, 2).unwrap();
        for number in 0..7 {
            file.write(format!("line {number}\n").as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(read("changes.jsonl"), "line 6\n");
        assert_eq!(read("changes.jsonl.1"), "line 4\nline 5\n");
        assert_eq!(read("changes.jsonl.2"), "line 2\nline 3\n");
        assert_eq!(read("changes.jsonl.3"), "");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "for nobody else");
        }
        // Another process goes on where this one ended.
        Rotating::open(&path, 8, 2).unwrap().write(b"line 7\n").unwrap();
        assert_eq!(read("changes.jsonl"), "line 6\nline 7\n");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_somebody_took_away_is_begun_anew_and_nothing_put_aside_moves() {
        let folder =
            std::env::temp_dir().join(format!("kubeflect-taken-away-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("changes.jsonl");
        let mut file = Rotating::open(&path, 8, 3).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        for number in 0..4 {
            file.write(format!("line {number}\n").as_bytes()).unwrap();
        }
        fs::remove_file(&path).unwrap();
        file.write(b"line 4\n").unwrap();
        assert_eq!(read("changes.jsonl"), "line 4\n");
        assert_eq!(read("changes.jsonl.1"), "line 0\nline 1\n");
        // Where it can not be begun anew, what was put aside stays where it is, however often that is tried.
        file.write(b"line 5\n").unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for _ in 0..3 {
            assert!(file.write(b"line 6\n").is_err());
        }
        assert_eq!(read("changes.jsonl.1"), "line 0\nline 1\n");
        fs::remove_dir(&path).unwrap();
        file.write(b"line 6\n").unwrap();
        assert_eq!(read("changes.jsonl"), "line 6\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
