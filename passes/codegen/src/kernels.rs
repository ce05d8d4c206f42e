//! Set of the kernels of one executable. Equal kernels are built once.

use crate::{
    emit::{Builder, Grid, Kernel, KernelTarget, Signature, TILE_COLUMNS, Tiles},
    target::Target,
};
use melior::{Context, dialect::DialectRegistry, utility::register_all_dialects};
use rustc_hash::FxHashSet;

/// Threads per block of SIMT kernels whose iterations are distributed over threads.
pub(crate) const THREADS: u32 = 128;

/// Kernels of one executable, and the MLIR context that owns them.
pub(crate) struct Kernels {
    /// `None` if kernels are not built, but only checked for being supported.
    context: Option<Context>,
    lanes: usize,
    registers: usize,
    tiles: Tiles,
    /// True if kernels may call the C library.
    pub(crate) has_library: bool,
    /// True if packed weights may be larger than the model's and half-precision values may be stored in `f32`, both to save operations.
    pub(crate) has_spare_memory: bool,
    /// Number of threads of the device that kernels are built for.
    pub(crate) threads: u64,
    built: Vec<Kernel>,
    names: FxHashSet<String>,
}

impl Kernels {
    /// Creates the kernels of a CPU. `has_bf16` is true if stages have values of `bf16`.
    pub(crate) fn new(target: &Target, has_bf16: bool) -> Self {
        let mut kernels = Self::with(Some(context()), target.lanes, target.registers, Tiles::Absent, true);
        if target.has_tiles && has_bf16 {
            kernels.set_tiles(Tiles::Registers);
        }
        kernels
    }

    /// Lets kernels use tile registers. Several vector registers then count as one, so that a pixel of a blocked image has as many channels
    /// as a row of a tile.
    pub(crate) fn set_tiles(&mut self, tiles: Tiles) {
        self.tiles = tiles;
        self.registers = self.registers * self.lanes / TILE_COLUMNS;
        self.lanes = TILE_COLUMNS;
    }

    /// Creates the kernels of a SIMT device, whose registers hold one element.
    pub(crate) fn simt() -> Self {
        Self::with(Some(context()), 1, 255, Tiles::Absent, false)
    }

    /// Creates a set that builds no kernels, to check whether a node can be lowered for a CPU.
    pub(crate) fn unbuilt() -> Self {
        Self::with(None, 8, 16, Tiles::Absent, true)
    }

    /// Creates a set that builds no kernels, to check whether a node can be lowered for a SIMT device.
    pub(crate) fn unbuilt_simt() -> Self {
        Self::with(None, 1, 255, Tiles::Absent, false)
    }

    fn with(context: Option<Context>, lanes: usize, registers: usize, tiles: Tiles, has_library: bool) -> Self {
        Self {
            context,
            lanes,
            registers,
            tiles,
            has_library,
            has_spare_memory: true,
            threads: 1,
            built: vec![],
            names: FxHashSet::default(),
        }
    }

    /// Returns the number of `f32` lanes of a vector.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns the number of vector registers that kernels may use.
    pub(crate) fn registers(&self) -> usize {
        self.registers
    }

    /// Returns true if kernels may use tile registers of `bf16`.
    pub(crate) fn has_tiles(&self) -> bool {
        self.tiles != Tiles::Absent
    }

    /// Returns true if half-precision values are converted to `f32` once, not at every load: no kernel reads them, and memory has room.
    pub(crate) fn converts_once(&self) -> bool {
        !self.has_tiles() && self.has_spare_memory
    }

    /// Returns the target that the kernels need: one with tile registers only if a kernel uses these.
    pub(crate) fn target(&self, target: &Target) -> Target {
        if self.built.iter().any(|kernel| kernel.uses_tiles) { target.with_tiles() } else { target.clone() }
    }

    pub(crate) fn context(&self) -> &Context {
        self.context.as_ref().expect("only kernels that are built are compiled")
    }

    /// Builds a kernel unless an equal one exists. Returns its name, and true if it can fail.
    pub(crate) fn add(
        &mut self,
        grid: Option<Grid>,
        has_32_bit_indices: bool,
        buffers: usize,
        body: impl FnOnce(&Builder, Signature<'_>),
    ) -> (String, bool) {
        let Some(context) = &self.context else { return (String::new(), false) };
        let form = KernelTarget {
            lanes: self.lanes,
            has_library: self.has_library,
            tiles: self.tiles,
            grid,
            has_32_bit_indices,
        };
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

    /// Removes and returns the kernels, which the caller then owns.
    pub(crate) fn take(&mut self) -> Vec<Kernel> {
        std::mem::take(&mut self.built)
    }
}

/// Creates a context with the dialects that kernels use: loading all of them takes longer than compiling a small kernel.
fn context() -> Context {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    let context = Context::new();
    context.append_dialect_registry(&registry);
    for dialect in ["arith", "cf", "func", "llvm", "math", "nvvm", "scf", "ub", "vector"] {
        context.get_or_load_dialect(dialect);
    }
    context
}

impl Drop for Kernels {
    fn drop(&mut self) {
        for kernel in self.take() {
            kernel.function.erase();
        }
    }
}
