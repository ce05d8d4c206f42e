//! Shared objects and their kernels.

use super::{SIGNATURES, signature};
use crate::{
    bundle::{self, Call},
    drivers::signatures::Signatures,
    error::{Error, Result},
};
use divi_threads::Kernel;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::{
    ffi::{CStr, c_char},
    ops::Range,
    path::{Path, PathBuf},
};

/// Loaded shared object. Kernels must not be called after it is dropped.
pub(crate) struct Code {
    path: PathBuf,
    library: Library,
    signatures: Signatures,
}

/// Call with the address of its kernel.
pub(crate) struct PlannedCall {
    pub(crate) kernel: Kernel,
    pub(crate) extent: i64,
    pub(crate) grain: i64,
    pub(crate) task: usize,
    /// Range of its buffers in those of all calls of the stage.
    pub(crate) buffers: Range<usize>,
}

impl Code {
    pub(crate) fn load(folder: &Path, executable: &bundle::Executable) -> Result<Self> {
        let path = folder.join(&executable.file);
        // `dlopen` would search for a name without a slash in the system's folders.
        let path = std::path::absolute(&path).map_err(Error::unreadable(&path))?;
        // SAFETY: the hash of the file was checked; it was written by the compiler and has no initializers.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| Error::Code { path: path.clone(), reason: error.to_string() })?;
        // SAFETY: the symbol is an array of characters.
        let text = unsafe { library.get::<*const c_char>(SIGNATURES) }.ok();
        let signatures = text.map(|text| {
            // SAFETY: the compiler writes NUL-terminated text at this symbol.
            let text = unsafe { CStr::from_ptr(text.into_raw().cast()) };
            text.to_string_lossy().lines().map(str::to_owned).collect()
        });
        Ok(Self { path, library, signatures: Signatures::new(signatures) })
    }

    /// Looks up the kernels of calls. `has_extents` is that of the bundle.
    pub(crate) fn plan(&self, calls: &[Call], has_extents: bool) -> Result<Vec<PlannedCall>> {
        let mut first = 0;
        let plan = |call: &Call| {
            let buffers = first..first + call.buffers.len();
            first = buffers.end;
            let &Call { extent, grain, task, .. } = call;
            Ok(PlannedCall { kernel: self.kernel(call, has_extents)?, extent, grain, task, buffers })
        };
        calls.iter().map(plan).collect()
    }

    /// Returns the kernel of a call, or an error if the code was not compiled for the call.
    fn kernel(&self, call: &Call, has_extents: bool) -> Result<Kernel> {
        self.signatures.check(&[signature(call)], &call.kernel, has_extents, &self.path)?;
        let name = &call.kernel[..];
        // SAFETY: all kernels that the compiler writes have this type.
        let symbol = unsafe { self.library.get::<Kernel>(name) };
        let missing = |_| Error::Code { path: self.path.clone(), reason: format!("it has no kernel '{name}'") };
        symbol.map(|symbol| *symbol).map_err(missing)
    }
}
