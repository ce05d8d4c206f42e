//! Native code: the shared object of a bundle, and its kernels.

use crate::{
    bundle::Target,
    cpu,
    error::{Error, Result},
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::{Path, PathBuf};

/// See [`crate::bundle::Call`].
pub(crate) type Kernel = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64) -> i32;

/// The code of a bundle. Kernels must not be called when it is gone.
pub(crate) struct Code {
    path: PathBuf,
    library: Library,
}

/// Refuses code that this processor cannot run.
pub(crate) fn check_processor(target: &Target) -> Result<()> {
    let missing = cpu::missing(&target.features);
    if missing.is_empty() { Ok(()) } else { Err(Error::OtherProcessor { cpu: target.cpu.clone(), missing }) }
}

impl Code {
    pub(crate) fn load(folder: &Path, target: &Target) -> Result<Self> {
        let path = folder.join(&target.code);
        // A name without a slash would be looked for in the system's folders.
        let path = std::path::absolute(&path).map_err(Error::unreadable(&path))?;
        // SAFETY: the file is what the compiler wrote, by its hash; its kernels are plain functions, and nothing is run when
        // it is loaded.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| Error::Code { path: path.clone(), reason: error.to_string() })?;
        Ok(Self { path, library })
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        // SAFETY: the compiler gives all kernels this type.
        let symbol = unsafe { self.library.get::<Kernel>(name) };
        let missing = |_| Error::Code { path: self.path.clone(), reason: format!("it has no kernel '{name}'") };
        symbol.map(|symbol| *symbol).map_err(missing)
    }
}
