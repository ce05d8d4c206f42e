//! Errors as C programs see them: a code, and a message that is kept for the calling thread.

use divi_runtime::Error;
use std::{
    cell::RefCell,
    ffi::{CString, c_char, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Codes of `divi_status` in the header.
pub(crate) const OK: c_int = 0;
pub(crate) const ERROR: c_int = -1;
pub(crate) const TIMEOUT: c_int = -2;
pub(crate) const CANCELLED: c_int = -3;
pub(crate) const INVALID: c_int = -4;
pub(crate) const CLOSED: c_int = -5;

/// A call that failed.
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

/// Converts text for C; what follows a NUL is lost.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Runs a call and keeps its error message for the thread. A panic is an error, and does not cross into C.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("divi panicked: this is a bug".into()));
    let message = result.as_ref().err().map_or("", |failure| &failure.message);
    MESSAGE.with_borrow_mut(|kept| *kept = c_string(message));
    result.map_err(|failure| failure.code)
}

/// As [`guarded`], for calls that return nothing but a code.
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    guarded(call).map_or_else(|code| code, |()| OK)
}

#[unsafe(no_mangle)]
pub extern "C" fn divi_error() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}
