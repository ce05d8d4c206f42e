//! Functions: what a kernel's buffers are, and where its body goes.

use super::{Builder, V};
use melior::{Context, StringRef};
use mlir_sys::*;
use sha2::{Digest as _, Sha256};
use std::{
    cell::{Cell, RefCell},
    ffi::c_void,
};

/// A kernel that was built.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// Comes from what it does: equal kernels have one name.
    pub(crate) name: String,
    pub(crate) function: MlirOperation,
    pub(crate) form: Form,
    /// Buffers it takes.
    pub(crate) buffers: usize,
    /// Whether it may return another status than that it is done.
    pub(crate) can_fail: bool,
    /// Bytes of the memory that the threads of a GPU's block share.
    pub(crate) shared: u64,
    /// About how long it takes to compile, in characters of its text.
    pub(crate) length: usize,
}

/// What a kernel is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Elements of `f32` in a register.
    pub(crate) lanes: usize,
    /// Whether it may call the C library, which GPUs do not have.
    pub(crate) has_library: bool,
    /// What GPUs do with it.
    pub(crate) grid: Option<Grid>,
    /// Whether all numbers that are divided fit into 32 bits, which some processors divide faster.
    pub(crate) is_narrow: bool,
}

/// How the threads of a GPU run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// Each does some of its iterations.
    Iterations,
    /// Each does all of it, and knows which one it is; this many of them are a block.
    Blocks(u32),
}

/// What a kernel's body is given.
pub(crate) struct Signature<'a> {
    /// Pointers to its buffers, which do not overlap where one of them is written.
    pub(crate) buffers: &'a [V],
    /// The iterations of its outermost loop that are to be done.
    pub(crate) begin: V,
    pub(crate) end: V,
}

impl Builder {
    /// Builds a function `(pointers, begin, end) -> status`.
    pub(crate) fn kernel(
        context: &Context,
        form: Form,
        buffers: usize,
        body: impl FnOnce(&Builder, Signature<'_>),
    ) -> Kernel {
        // SAFETY: the context is alive; the block is given to the region, the region to the function.
        unsafe {
            let raw = context.to_raw();
            let location = mlirLocationUnknownGet(raw);
            let builder = |block| Builder {
                context: raw,
                location,
                block: Cell::new(block),
                constants: RefCell::default(),
                entry: Cell::new(block),
                last_constant: Cell::new(None),
                form,
                shared: Cell::new(0),
                status: Cell::new(None),
                streamed: RefCell::default(),
                has_streamed: Cell::new(false),
            };
            // The types come from a builder, which needs a block.
            let nowhere = mlirBlockCreate(0, std::ptr::null(), std::ptr::null());
            let types = builder(nowhere);
            let mut arguments = vec![types.pointer().0; buffers];
            arguments.extend([types.i64().0; 2]);
            let locations = vec![location; arguments.len()];
            let region = mlirRegionCreate();
            let block = mlirBlockCreate(arguments.len() as isize, arguments.as_ptr(), locations.as_ptr());
            mlirRegionAppendOwnedBlock(region, block);
            let b = builder(block);
            let values: Vec<_> = (0..arguments.len()).map(|i| V(mlirBlockGetArgument(block, i as isize))).collect();
            let (begin, end) = (values[buffers], values[buffers + 1]);
            body(&b, Signature { buffers: &values[..buffers], begin, end });
            b.end_streams();
            let status = b.final_status();
            b.append("func.return", &[status], &[], &[], vec![]);

            let result = types.int(32).0;
            let ty = mlirFunctionTypeGet(raw, arguments.len() as isize, arguments.as_ptr(), 1, &result);
            let alone = mlirAttributeParseGet(raw, StringRef::new("{llvm.noalias, llvm.nocapture}").to_raw());
            let none = mlirAttributeParseGet(raw, StringRef::new("{}").to_raw());
            let mut argument_attributes = vec![alone; buffers];
            argument_attributes.extend([none; 2]);
            let attributes = [
                b.named("sym_name", mlirStringAttrGet(raw, StringRef::new("kernel").to_raw())),
                b.named("function_type", mlirTypeAttrGet(ty)),
                b.named("sym_visibility", mlirStringAttrGet(raw, StringRef::new("private").to_raw())),
                b.named(
                    "arg_attrs",
                    mlirArrayAttrGet(raw, argument_attributes.len() as isize, argument_attributes.as_ptr()),
                ),
            ];
            let function = b.create("func.func", &[], &[], &attributes, vec![region]);
            mlirBlockDestroy(nowhere);
            let (hash, length) = fingerprint(function);
            let (can_fail, shared) = (b.status.get().is_some(), b.shared.get());
            Kernel { name: format!("k{hash}"), function, form, buffers, can_fail, shared, length }
        }
    }
}

/// A hash of the text of an operation, and the length of that.
fn fingerprint(operation: MlirOperation) -> (String, usize) {
    struct Digest(Sha256, usize);
    unsafe extern "C" fn write(text: MlirStringRef, digest: *mut c_void) {
        // SAFETY: MLIR hands over what it was given, and text that outlives the call.
        let (digest, bytes) =
            unsafe { (&mut *digest.cast::<Digest>(), std::slice::from_raw_parts(text.data.cast(), text.length)) };
        digest.0.update(bytes);
        digest.1 += bytes.len();
    }
    let mut digest = Digest(Sha256::new(), 0);
    // SAFETY: the operation is alive, and the digest outlives the call.
    unsafe { mlirOperationPrint(operation, Some(write), (&raw mut digest).cast()) };
    let hash: [u8; 32] = digest.0.finalize().into();
    (hash[..12].iter().map(|byte| format!("{byte:02x}")).collect(), digest.1)
}
