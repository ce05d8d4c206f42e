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

/// A loaded shared object. Kernels must not be called when it is dropped.
pub(crate) struct Code {
    path: PathBuf,
    library: Library,
    signatures: Signatures,
}

/// A call with its kernel.
pub(crate) struct PlannedCall {
    pub(crate) kernel: Kernel,
    pub(crate) extent: i64,
    pub(crate) grain: i64,
    pub(crate) task: usize,
    /// Its part of the buffers of all calls.
    pub(crate) buffers: Range<usize>,
}

impl Code {
    pub(crate) fn load(folder: &Path, executable: &bundle::Executable) -> Result<Self> {
        let path = folder.join(&executable.file);
        // A name without a slash would be looked for in the system's folders.
        let path = std::path::absolute(&path).map_err(Error::unreadable(&path))?;
        // SAFETY: the file is what the compiler wrote, by its hash; its kernels are plain functions, and nothing is run when
        // it is loaded.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| Error::Code { path: path.clone(), reason: error.to_string() })?;
        // SAFETY: the type is that of the symbol.
        let text = unsafe { library.get::<*const c_char>(SIGNATURES) }.ok();
        let signatures = text.map(|text| {
            // SAFETY: code that has the symbol has text there that ends with a NUL.
            let text = unsafe { CStr::from_ptr(text.into_raw().cast()) };
            text.to_string_lossy().lines().map(str::to_owned).collect()
        });
        Ok(Self { path, library, signatures: Signatures::new(signatures) })
    }

    /// Finds the kernels of calls of a bundle that `has_extents`.
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

    /// The kernel of a call of a bundle that `has_extents`, if the code was compiled for the call.
    fn kernel(&self, call: &Call, has_extents: bool) -> Result<Kernel> {
        self.signatures.check(&[signature(call)], &call.kernel, has_extents, &self.path)?;
        let name = &call.kernel[..];
        // SAFETY: the compiler gives all kernels this type.
        let symbol = unsafe { self.library.get::<Kernel>(name) };
        let missing = |_| Error::Code { path: self.path.clone(), reason: format!("it has no kernel '{name}'") };
        symbol.map(|symbol| *symbol).map_err(missing)
    }
}
