//! The kernels of a bundle, each built once.

use crate::{
    emit::{Builder, Form, Grid, Kernel, Signature},
    target::Target,
};
use melior::{Context, dialect::DialectRegistry, utility::register_all_dialects};
use rustc_hash::FxHashSet;

/// Threads of a GPU's block that share iterations.
pub(crate) const THREADS: u32 = 128;

pub(crate) struct Kernels {
    /// `None` if kernels are only checked, and not built.
    context: Option<Context>,
    lanes: usize,
    registers: usize,
    /// Whether kernels may call the C library.
    pub(crate) has_library: bool,
    built: Vec<Kernel>,
    names: FxHashSet<String>,
}

impl Kernels {
    pub(crate) fn new(target: &Target) -> Self {
        Self::with(target.lanes, target.registers, true)
    }

    /// Kernels of a SIMT device, whose registers hold one element.
    pub(crate) fn simt() -> Self {
        Self::with(1, 255, false)
    }

    fn with(lanes: usize, registers: usize, has_library: bool) -> Self {
        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        let context = Context::new();
        context.append_dialect_registry(&registry);
        // Those that kernels are made of; loading all that there are takes longer than compiling a small kernel.
        for dialect in ["arith", "cf", "func", "llvm", "math", "nvvm", "scf", "ub", "vector"] {
            context.get_or_load_dialect(dialect);
        }
        Self { context: Some(context), lanes, registers, has_library, built: vec![], names: FxHashSet::default() }
    }

    /// Kernels of a CPU that are not built, to check whether a node can be lowered.
    pub(crate) fn unbuilt() -> Self {
        Self::without_context(8, 16)
    }

    /// Kernels of a SIMT device that are not built.
    pub(crate) fn unbuilt_simt() -> Self {
        Self::without_context(1, 255)
    }

    fn without_context(lanes: usize, registers: usize) -> Self {
        Self { context: None, lanes, registers, has_library: true, built: vec![], names: FxHashSet::default() }
    }

    /// Elements of `f32` that a register holds.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    pub(crate) fn registers(&self) -> usize {
        self.registers
    }

    pub(crate) fn context(&self) -> &Context {
        self.context.as_ref().expect("only kernels that are built are compiled")
    }

    /// The kernel with this body: its name, and whether it can fail.
    pub(crate) fn add(
        &mut self,
        grid: Option<Grid>,
        is_narrow: bool,
        buffers: usize,
        body: impl FnOnce(&Builder, Signature<'_>),
    ) -> (String, bool) {
        let Some(context) = &self.context else { return (String::new(), false) };
        let form = Form { lanes: self.lanes, has_library: self.has_library, grid, is_narrow };
        let kernel = Builder::kernel(context, form, buffers, body);
        let (name, can_fail) = (kernel.name.clone(), kernel.can_fail);
        if self.names.insert(name.clone()) {
            self.built.push(kernel);
        } else {
            kernel.function.erase();
        }
        (name, can_fail)
    }

    #[cfg(test)]
    pub(crate) fn built(&self) -> &[Kernel] {
        &self.built
    }

    /// Hands the functions over.
    pub(crate) fn take(&mut self) -> Vec<Kernel> {
        std::mem::take(&mut self.built)
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for kernel in self.take() {
            kernel.function.erase();
        }
    }
}
