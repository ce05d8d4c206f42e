//! Functions: what a kernel's buffers are, and where its body goes.

use super::{Builder, Operation, Region, V, ffi::Ir};
use melior::Context;
use sha2::{Digest as _, Sha256};
use std::cell::{Cell, RefCell};

/// A kernel that was built.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// Comes from what it does: equal kernels have one name.
    pub(crate) name: String,
    pub(crate) function: Operation,
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
            streamed: RefCell::default(),
            has_streamed: Cell::new(false),
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
        let (hash, length) = fingerprint(function);
        let (can_fail, shared) = (b.status.get().is_some(), b.shared.get());
        Kernel { name: format!("k{hash}"), function, form, buffers, can_fail, shared, length }
    }
}

/// Returns a hash of an operation's text, and its length.
fn fingerprint(operation: Operation) -> (String, usize) {
    let (mut digest, mut length) = (Sha256::new(), 0);
    operation.print(&mut |text| {
        digest.update(text);
        length += text.len();
    });
    let hash: [u8; 32] = digest.finalize().into();
    (hash[..12].iter().map(|byte| format!("{byte:02x}")).collect(), length)
}
