//! Strings that MLIR owns.

use mlir_sys::MlirStringRef;

/// The text of a string; what is not UTF-8 is left out from there on.
///
/// # Safety
/// The string must be alive for `'a`.
pub unsafe fn text<'a>(string: MlirStringRef) -> &'a str {
    if string.length == 0 {
        return "";
    }
    // SAFETY: the caller's promise.
    let bytes: &'a [u8] = unsafe { std::slice::from_raw_parts(string.data.cast(), string.length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
