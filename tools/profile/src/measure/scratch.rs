//! A folder for what nobody keeps.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// The folder; gone when dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("divi-profile-{}-{number}", process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    /// A place in it.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file in it, and says where that is.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody can be told any more; the name says what it is.
        let _ = fs::remove_dir_all(Path::new(&self.0));
    }
}
