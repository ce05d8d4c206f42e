//! `libdivi.so`: divi's dialects and passes as a plugin of `mlir-opt`.
//!
//! rustc exports only Rust functions from a shared library, so the entry points that MLIR looks for are trampolines.

// Nothing here calls them, but their C++ sides must be linked in.
use divi_dialect as _;
use divi_passes as _;

use std::{ffi::c_char, mem::MaybeUninit};

/// The layout of MLIR's `PassPluginLibraryInfo` and `DialectPluginLibraryInfo`.
#[repr(C)]
pub struct PluginInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: *const (),
}

unsafe extern "C" {
    fn diviPassPluginInfo(info: *mut PluginInfo);
    fn diviDialectPluginInfo(info: *mut PluginInfo);
}

/// Asked for by `mlir-opt --load-pass-plugin`.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> PluginInfo {
    divi_papers::register();
    let mut info = MaybeUninit::uninit();
    // SAFETY: the function fills the structure.
    unsafe {
        diviPassPluginInfo(info.as_mut_ptr());
        info.assume_init()
    }
}

/// Asked for by `mlir-opt --load-dialect-plugin`.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetDialectPluginInfo() -> PluginInfo {
    let mut info = MaybeUninit::uninit();
    // SAFETY: the function fills the structure.
    unsafe {
        diviDialectPluginInfo(info.as_mut_ptr());
        info.assume_init()
    }
}
