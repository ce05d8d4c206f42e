//! The kernels of a bundle, each built once.

use crate::{
    emit::{Builder, Kernel, Signature},
    target::Target,
};
use melior::{Context, dialect::DialectRegistry, utility::register_all_dialects};
use mlir_sys::mlirOperationDestroy;
use rustc_hash::FxHashSet;

pub(crate) struct Kernels {
    context: Context,
    lanes: usize,
    registers: usize,
    built: Vec<Kernel>,
    names: FxHashSet<String>,
}

impl Kernels {
    pub(crate) fn new(target: &Target) -> Self {
        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        let context = Context::new();
        context.append_dialect_registry(&registry);
        // Those that kernels are made of; loading all that there are takes longer than compiling a small kernel.
        for dialect in ["arith", "cf", "func", "llvm", "math", "scf", "ub", "vector"] {
            context.get_or_load_dialect(dialect);
        }
        Self { context, lanes: target.lanes, registers: target.registers, built: vec![], names: FxHashSet::default() }
    }

    /// Elements of `f32` that a register holds.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(crate) fn registers(&self) -> usize {
        self.registers
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The kernel with this body, by name.
    pub(crate) fn add(&mut self, buffers: usize, body: impl FnOnce(&Builder, Signature<'_>)) -> String {
        let kernel = Builder::kernel(&self.context, self.lanes, buffers, body);
        let name = kernel.name.clone();
        if self.names.insert(name.clone()) {
            self.built.push(kernel);
        } else {
            // SAFETY: nobody else knows the function.
            unsafe { mlirOperationDestroy(kernel.function) };
        }
        name
    }

    /// Hands the functions over.
    pub(crate) fn take(&mut self) -> Vec<Kernel> {
        std::mem::take(&mut self.built)
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for kernel in self.take() {
            // SAFETY: nobody took the function.
            unsafe { mlirOperationDestroy(kernel.function) };
        }
    }
}
