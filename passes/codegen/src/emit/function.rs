//! Kernels as functions: signature, construction, and identification by a hash.

use super::{Builder, Operation, Region, Tiles, V, ffi::Ir};
use melior::Context;
use sha2::{Digest as _, Sha256};
use std::cell::{Cell, RefCell};

/// A built kernel.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// Hash of the function's text: equal kernels have the same name.
    pub(crate) name: String,
    /// Detached function.
    pub(crate) function: Operation,
    pub(crate) form: KernelTarget,
    /// Number of buffers.
    pub(crate) buffers: usize,
    /// True if it may return a status other than success.
    pub(crate) can_fail: bool,
    /// True if it has instructions that only processors with tile registers have.
    pub(crate) uses_tiles: bool,
    /// Bytes of shared memory per block of a GPU.
    pub(crate) shared: u64,
    /// Characters of its text: an estimate of the compile time.
    pub(crate) text_length: usize,
}

/// Properties of the target that affect a kernel's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelTarget {
    /// `f32` lanes of a vector register.
    pub(crate) lanes: usize,
    /// True if it may call the C library, which GPUs do not have.
    pub(crate) has_library: bool,
    pub(crate) tiles: Tiles,
    /// Distribution over the threads of a GPU; `None` for CPUs.
    pub(crate) grid: Option<Grid>,
    /// True if all dividends and divisors of index computations fit into 32 bits, which GPUs divide faster.
    pub(crate) has_32_bit_indices: bool,
}

/// Distribution of a kernel over the threads of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// Each thread executes some iterations of the outermost loop.
    Iterations,
    /// Each thread executes the whole body, which reads its block and thread index; the number is the threads per block.
    Blocks(u32),
}

/// Arguments of a kernel's body.
pub(crate) struct Signature<'a> {
    /// Pointers to the buffers. A written buffer does not overlap any other.
    pub(crate) buffers: &'a [V],
    /// First iteration of the outermost loop.
    pub(crate) begin: V,
    /// One past the last iteration of the outermost loop.
    pub(crate) end: V,
}

impl Builder {
    /// Builds a function `(pointers, begin, end) -> status`.
    pub(crate) fn kernel(
        context: &Context,
        form: KernelTarget,
        buffers: usize,
        body: impl FnOnce(&Builder, Signature<'_>),
    ) -> Kernel {
        let ir = Ir::new(context);
        let mut arguments = vec![ir.parsed_type("!llvm.ptr"); buffers];
        arguments.extend([ir.int(64); 2]);
        let block = ir.block(&arguments);
        let region = Region::of(block);
        let b = Builder {
            ir,
            block: Cell::new(block),
            constants: RefCell::default(),
            entry: Cell::new(block),
            last_constant: Cell::new(None),
            form,
            shared: Cell::new(0),
            status: Cell::new(None),
            half_precision: RefCell::default(),
            streamed: RefCell::default(),
            has_streamed: Cell::new(false),
            uses_tiles: Cell::new(false),
            emulated: Cell::new(None),
        };
        let values: Vec<_> = (0..arguments.len()).map(|i| block.argument(i)).collect();
        let (begin, end) = (values[buffers], values[buffers + 1]);
        body(&b, Signature { buffers: &values[..buffers], begin, end });
        b.end_streams();
        let status = b.final_status();
        b.append("func.return", &[status], &[], &[], vec![]);

        let mut argument_attributes = vec![ir.parsed_attribute("{llvm.noalias, llvm.nocapture}"); buffers];
        argument_attributes.extend([ir.parsed_attribute("{}"); 2]);
        let attributes = [
            ir.named("sym_name", ir.string("kernel")),
            ir.named("function_type", ir.function_type(&arguments, ir.int(32)).as_attribute()),
            ir.named("sym_visibility", ir.string("private")),
            ir.named("arg_attrs", ir.array(&argument_attributes)),
        ];
        let function = b.create("func.func", &[], &[], &attributes, vec![region]);
        let (hash, text_length) = fingerprint(function);
        let (can_fail, shared, uses_tiles) = (b.status.get().is_some(), b.shared.get(), b.uses_tiles.get());
        Kernel { name: format!("k{hash}"), function, form, buffers, can_fail, uses_tiles, shared, text_length }
    }
}

/// Returns a hash of an operation's text, and the text's length.
fn fingerprint(operation: Operation) -> (String, usize) {
    let (mut digest, mut length) = (Sha256::new(), 0);
    operation.print(&mut |text| {
        digest.update(text);
        length += text.len();
    });
    let hash: [u8; 32] = digest.finalize().into();
    (hash[..12].iter().map(|byte| format!("{byte:02x}")).collect(), length)
}
