use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test's own, gone after it.
pub(in crate::client) struct Folder(PathBuf);

impl Folder {
    pub(in crate::client) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kubeflect-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(in crate::client) fn root(&self) -> &Path {
        &self.0
    }

    pub(in crate::client) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(in crate::client) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What a killed plugin still writes may be in the way; the system clears its temporary folder.
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// A certificate that ends with the year before, and its key, as PEM.
pub(in crate::client) fn self_signed(year: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}
