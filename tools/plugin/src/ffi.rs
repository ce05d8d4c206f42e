//! Entry points that MLIR looks up.

use std::{ffi::c_char, mem::MaybeUninit};

/// Layout of MLIR's `PassPluginLibraryInfo` and `DialectPluginLibraryInfo`.
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

/// Entry point of `mlir-opt --load-pass-plugin`.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> PluginInfo {
    divi_papers::register();
    let mut info = MaybeUninit::uninit();
    // SAFETY: the pointer refers to memory for the structure.
    unsafe { diviPassPluginInfo(info.as_mut_ptr()) };
    // SAFETY: the function has initialized the structure.
    unsafe { info.assume_init() }
}

/// Entry point of `mlir-opt --load-dialect-plugin`.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetDialectPluginInfo() -> PluginInfo {
    let mut info = MaybeUninit::uninit();
    // SAFETY: the pointer refers to memory for the structure.
    unsafe { diviDialectPluginInfo(info.as_mut_ptr()) };
    // SAFETY: the function has initialized the structure.
    unsafe { info.assume_init() }
}
