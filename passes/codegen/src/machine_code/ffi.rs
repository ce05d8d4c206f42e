//! Raw MLIR modules: construction from text, pass pipelines, translation to LLVM IR.

use crate::emit::call;
use inkwell::{
    context::{AsContextRef, Context as LlvmContext},
    module::Module as LlvmModule,
};
use melior::{Context, StringRef, ir::Module};
use mlir_sys::*;
use std::{ffi::c_void, ptr::null_mut};

/// A module that is used by one thread at a time.
pub(super) struct Shared<'c>(pub(super) Module<'c>);
// SAFETY: MLIR contexts are thread-safe, and each module is used by one thread.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

/// Parses a module and appends its last operation to another module.
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

/// Runs a pass pipeline on a module, which no other thread may use meanwhile. Returns false on failure.
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

/// Translates a module in the `llvm` dialect to LLVM IR; `None` on failure.
pub(super) fn translate<'c>(module: &Module<'_>, context: &'c LlvmContext) -> Option<LlvmModule<'c>> {
    let raw = call!(mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), context.as_ctx_ref().cast()));
    // SAFETY: the module is new, and its context outlives it.
    (!raw.is_null()).then(|| unsafe { LlvmModule::new(raw.cast()) })
}
