//! Raw modules of MLIR, on their way to LLVM.

use crate::emit::call;
use inkwell::{
    context::{AsContextRef, Context as LlvmContext},
    module::Module as LlvmModule,
};
use melior::{Context, StringRef, ir::Module};
use mlir_sys::*;
use std::{ffi::c_void, ptr::null_mut};

/// A module that one thread at a time works on.
pub(super) struct Shared<'c>(pub(super) Module<'c>);
// SAFETY: MLIR's contexts may be used by several threads, and each module is used by one.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

/// Moves the last operation of a module, which is given as text, to the end of another one.
pub(crate) fn append_last(context: &Context, module: &Module<'_>, text: &str) {
    let parsed = Module::parse(context, text).expect("generated text is well-formed");
    let parsed_body = call!(mlirModuleGetBody(parsed.to_raw()));
    let mut last = call!(mlirBlockGetFirstOperation(parsed_body));
    loop {
        let next = call!(mlirOperationGetNextInBlock(last));
        if next.ptr.is_null() {
            break;
        }
        last = next;
    }
    call!(mlirOperationRemoveFromParent(last));
    let body = call!(mlirModuleGetBody(module.to_raw()));
    call!(mlirBlockAppendOwnedOperation(body, last));
}

/// Runs MLIR's passes on a module, which this thread alone works on. Returns false if they fail.
pub(super) fn run_passes(module: &Module<'_>, pipeline: &str) -> bool {
    unsafe extern "C" fn ignore(_: MlirStringRef, _: *mut c_void) {}
    let context = call!(mlirModuleGetContext(module.to_raw()));
    let manager = call!(mlirPassManagerCreate(context));
    let passes = call!(mlirPassManagerGetAsOpPassManager(manager));
    let pipeline = StringRef::new(pipeline).to_raw();
    let parsed = call!(mlirParsePassPipeline(passes, pipeline, Some(ignore), null_mut()));
    let outcome = call!(mlirPassManagerRunOnOp(manager, module.as_operation().to_raw()));
    call!(mlirPassManagerDestroy(manager));
    parsed.value != 0 && outcome.value != 0
}

/// Translates a module in LLVM's dialect; `None` if that fails.
pub(super) fn translate<'c>(module: &Module<'_>, context: &'c LlvmContext) -> Option<LlvmModule<'c>> {
    let raw = call!(mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), context.as_ctx_ref().cast()));
    // SAFETY: the module is new, and its context outlives it.
    (!raw.is_null()).then(|| unsafe { LlvmModule::new(raw.cast()) })
}
