//! Native code: the shared object of a bundle, and its kernels.

use crate::{
    bundle::{Call, SIGNATURE_COMMENT, SIGNATURES, Target},
    cpu,
    error::{Error, Result},
};
use divi_threads::Kernel;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::{
    collections::HashSet,
    ffi::{CStr, c_char},
    ops::Range,
    path::{Path, PathBuf},
};

/// The code of a bundle. Kernels must not be called when it is gone.
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

/// The calls that code was compiled for; `None` in code of the oldest bundles.
pub(crate) struct Signatures(Option<HashSet<String>>);

impl Signatures {
    /// From the comments of PTX.
    pub(crate) fn of_text(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let lines: HashSet<_> =
            text.lines().filter_map(|line| line.strip_prefix(SIGNATURE_COMMENT)).map(str::to_owned).collect();
        Self((!lines.is_empty()).then_some(lines))
    }

    /// Checks that code was compiled for a call of a bundle that `has_extents`.
    pub(crate) fn check(&self, call: &Call, has_extents: bool, path: &Path) -> Result<()> {
        let known = match (&self.0, has_extents) {
            (Some(known), true) => call.signatures().iter().all(|signature| known.contains(signature)),
            (Some(_), false) => false,
            (None, has_extents) => !has_extents,
        };
        if known {
            return Ok(());
        }
        let reason = format!("its kernel '{}' was not compiled for a call of the description", call.kernel);
        Err(Error::Code { path: path.to_owned(), reason })
    }
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
        // SAFETY: code that has the symbol has text there that ends with a NUL.
        let signatures = unsafe {
            let text = library.get::<*const c_char>(SIGNATURES).ok();
            text.map(|text| {
                CStr::from_ptr(text.into_raw().cast()).to_string_lossy().lines().map(str::to_owned).collect()
            })
        };
        Ok(Self { path, library, signatures: Signatures(signatures) })
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
        self.signatures.check(call, has_extents, &self.path)?;
        let name = &call.kernel[..];
        // SAFETY: the compiler gives all kernels this type.
        let symbol = unsafe { self.library.get::<Kernel>(name) };
        let missing = |_| Error::Code { path: self.path.clone(), reason: format!("it has no kernel '{name}'") };
        symbol.map(|symbol| *symbol).map_err(missing)
    }
}
