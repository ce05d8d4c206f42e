//! MLIR's contexts and strings.

use crate::ffi::call;
use melior::{
    Context, ContextRef, StringRef,
    ir::{Identifier, Location},
};
use mlir_sys::{MlirContext, MlirStringRef, mlirAttributeGetNull, mlirIdentifierGet, mlirLocationFusedGet};
use std::ffi::c_void;

/// Access to the pointer of a context, for this crate.
pub trait RawContext {
    /// Returns the pointer.
    #[doc(hidden)]
    fn raw(self) -> MlirContext;
}

impl RawContext for &Context {
    fn raw(self) -> MlirContext {
        self.to_raw()
    }
}

impl RawContext for ContextRef<'_> {
    fn raw(self) -> MlirContext {
        // SAFETY: the reference is used while this one is alive.
        unsafe { self.to_ref() }.to_raw()
    }
}

/// Reference to a context: `&Context` or [`ContextRef`].
pub trait ContextLike<'c>: Copy + RawContext {
    /// Returns the reference with the lifetime of the context.
    fn context(self) -> ContextRef<'c>;

    /// Returns an interned string.
    fn identifier(self, name: &str) -> Identifier<'c> {
        // SAFETY: the context is alive, and MLIR copies the name.
        let raw = unsafe { mlirIdentifierGet(self.raw(), StringRef::new(name).to_raw()) };
        // SAFETY: identifiers live as long as their context.
        unsafe { Identifier::from_raw(raw) }
    }
}

impl<'c> ContextLike<'c> for &'c Context {
    fn context(self) -> ContextRef<'c> {
        // SAFETY: the context is borrowed for `'c`.
        unsafe { ContextRef::from_raw(self.to_raw()) }
    }
}

impl<'c> ContextLike<'c> for ContextRef<'c> {
    fn context(self) -> ContextRef<'c> {
        self
    }
}

/// Returns a fused location.
pub fn fused_location<'c>(context: impl ContextLike<'c>, locations: &[Location<'c>]) -> Location<'c> {
    let raw: Vec<_> = locations.iter().map(|location| location.to_raw()).collect();
    let metadata = call!(mlirAttributeGetNull());
    let fused = call!(mlirLocationFusedGet(context.raw(), raw.len() as isize, raw.as_ptr(), metadata));
    // SAFETY: locations live as long as their context.
    unsafe { Location::from_raw(fused) }
}

/// Returns the longest prefix of a string that is valid UTF-8.
///
/// # Safety
/// The string must be alive for `'a`.
pub unsafe fn text<'a>(string: MlirStringRef) -> &'a str {
    if string.length == 0 {
        return "";
    }
    // SAFETY: guaranteed by the caller.
    let bytes: &'a [u8] = unsafe { std::slice::from_raw_parts(string.data.cast(), string.length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// Callback that receives printed text in chunks.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// Passes a chunk of text to the [`Sink`] that `sink` points to.
///
/// # Safety
/// `sink` must point to a [`Sink`], and the text must be alive.
pub(crate) unsafe extern "C" fn print_to_sink(text: MlirStringRef, sink: *mut c_void) {
    if text.length == 0 {
        return;
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    // SAFETY: guaranteed by the caller.
    let sink = unsafe { &mut *sink.cast::<Sink<'_>>() };
    sink(bytes);
}
