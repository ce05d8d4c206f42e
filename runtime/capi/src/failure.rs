//! Errors of the C API: a status code, and a message stored per thread.

use divi_runtime::Error;
use std::{
    cell::RefCell,
    ffi::{CString, c_char, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

// Codes of `divi_status` in the header.
pub(crate) const OK: c_int = 0;
pub(crate) const ERROR: c_int = -1;
pub(crate) const TIMEOUT: c_int = -2;
pub(crate) const CANCELLED: c_int = -3;
pub(crate) const INVALID: c_int = -4;
pub(crate) const CLOSED: c_int = -5;

/// Error of a call.
#[derive(Clone)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Cancelled => CANCELLED,
            Error::Closed => CLOSED,
            _ => ERROR,
        };
        Self::new(code, error.to_string())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(ERROR, message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new(ERROR, message)
    }
}

/// Converts text for C, truncated at the first NUL.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Runs a call and stores its error message for the calling thread. A panic becomes an error and does not unwind into C.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("divi panicked: this is a bug".into()));
    let message = result.as_ref().err().map_or("", |failure| &failure.message);
    MESSAGE.with_borrow_mut(|kept| *kept = c_string(message));
    result.map_err(|failure| failure.code)
}

/// As [`guarded`], for calls that return only a status code.
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guarded(call).map_or_else(|code| code, |()| OK)
}

/// Returns the error message of the calling thread's last call; valid until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn divi_error() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}
