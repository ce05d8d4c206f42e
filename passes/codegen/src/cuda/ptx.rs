//! Compilation of kernels to PTX.

use super::intrinsics::shared_name;
use crate::{
    emit::{Grid, Kernel},
    error::Error,
    kernels::{Kernels, THREADS},
    machine_code::{append_last, initialize, internal, machine_of, optimize, translate},
    target::Gpu,
};
use divi_runtime::drivers::cuda::SIGNATURE_COMMENT;
use inkwell::{
    attributes::{Attribute, AttributeLoc},
    context::Context as LlvmContext,
    module::Linkage,
    targets::FileType,
};
use melior::{
    Context,
    ir::{Location, Module},
};
use std::collections::BTreeSet;

const TRIPLE: &str = "nvptx64-nvidia-cuda";
/// LLVM's `PTX_Kernel` calling convention, of functions that the driver can launch.
const PTX_KERNEL: u32 = 71;

/// Returns the number of threads per block.
fn threads(kernel: &Kernel) -> u32 {
    match kernel.form.grid {
        Some(Grid::Blocks(threads)) => threads,
        _ => THREADS,
    }
}

/// Compiles kernels to PTX for each GPU. `signatures` has one line per signature of a call; each becomes a comment in the PTX.
pub(super) fn compile(kernels: &mut Kernels, gpus: &[Gpu], signatures: &str) -> Result<Vec<Vec<u8>>, Error> {
    initialize(kernels.context());
    let mut taken = kernels.take();
    taken.sort_by(|a, b| a.name.cmp(&b.name));
    let entries: Vec<(String, u32)> = taken.iter().map(|kernel| (kernel.name.clone(), threads(kernel))).collect();
    let module = module(kernels.context(), taken);
    let mut codes = vec![];
    for gpu in gpus {
        let llvm_context = LlvmContext::create();
        let machine = machine_of(TRIPLE, &gpu.arch, gpu.ptx)?;
        // From the second GPU on, the module is in the `llvm` dialect already, and lowering leaves it unchanged.
        let llvm = translate(&module, &llvm_context, &machine)?;
        for (name, threads) in &entries {
            let Some(function) = llvm.get_function(name) else { continue };
            function.set_call_conventions(PTX_KERNEL);
            if let Some(body) = llvm.get_function(&body_name(name)) {
                // Inlined, because only the entry point has pointers with address spaces.
                let kind = Attribute::get_named_enum_kind_id("alwaysinline");
                body.set_linkage(Linkage::Internal);
                body.add_attribute(AttributeLoc::Function, llvm_context.create_enum_attribute(kind, 0));
            }
            let most = llvm_context.create_string_attribute("nvvm.maxntid", &threads.to_string());
            function.add_attribute(AttributeLoc::Function, most);
        }
        optimize(&llvm, &machine)?;
        let text = machine
            .write_to_memory_buffer(&llvm, FileType::Assembly)
            .map_err(|error| internal("LLVM cannot write PTX", &error.to_string()))?;
        let text = text.as_slice();
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        let comments: String = signatures.lines().map(|line| format!("{SIGNATURE_COMMENT}{line}\n")).collect();
        codes.push([comments.as_bytes(), text].concat());
    }
    Ok(codes)
}

/// Returns a module with the kernels, their entry points, and globals for shared memory.
fn module(context: &Context, kernels: Vec<Kernel>) -> Module<'_> {
    let module = Module::new(Location::unknown(context));
    let shared: BTreeSet<u64> = kernels.iter().map(|kernel| kernel.shared).filter(|&bytes| bytes > 0).collect();
    for bytes in shared {
        let name = shared_name(bytes);
        let text = format!(
            "llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<{bytes} x i8>"
        );
        append_last(context, &module, &text);
    }
    for kernel in kernels {
        let inner = body_name(&kernel.name);
        kernel.function.append_to(&module, &inner);
        append_last(context, &module, &entry_text(&kernel, &inner));
    }
    module
}

fn body_name(kernel: &str) -> String {
    format!("{kernel}_body")
}

/// Returns the text of an entry point: a grid-stride loop over the iterations, or one call per thread ([`Grid::Blocks`]). Threads that fail
/// store their status.
fn entry_text(kernel: &Kernel, inner: &str) -> String {
    let types = "!llvm.ptr, ".repeat(kernel.buffers);
    // Buffers are in global memory: typed pointers avoid generic loads and stores, which are slower.
    let arguments: String = (0..kernel.buffers).map(|i| format!("%g{i}: !llvm.ptr<1> {{llvm.noalias}}, ")).collect();
    let casts: String = (0..kernel.buffers)
        .map(|i| format!("%p{i} = llvm.addrspacecast %g{i} : !llvm.ptr<1> to !llvm.ptr\n"))
        .collect();
    let pointers: String = (0..kernel.buffers).map(|i| format!("%p{i}, ")).collect();
    let status_argument = if kernel.can_fail { ", %status: !llvm.ptr" } else { "" };
    let call = |from: &str, to: &str| {
        let call = format!("%code = func.call @{inner}({pointers}{from}, {to}) : ({types}i64, i64) -> i32\n");
        let store = "%is_bad = arith.cmpi ne, %code, %done : i32\nscf.if %is_bad {\n\
                     llvm.store %code, %status : i32, !llvm.ptr\n}\n";
        if kernel.can_fail { call + store } else { call }
    };
    let work = match kernel.form.grid {
        Some(Grid::Blocks(_)) => call("%zero", "%extent"),
        _ => {
            let call = call("%i", "%next");
            format!(
                "%t = nvvm.read.ptx.sreg.tid.x : i32\n%b = nvvm.read.ptx.sreg.ctaid.x : i32\n\
                 %n = nvvm.read.ptx.sreg.ntid.x : i32\n%g = nvvm.read.ptx.sreg.nctaid.x : i32\n\
                 %t64 = arith.extui %t : i32 to i64\n%b64 = arith.extui %b : i32 to i64\n\
                 %n64 = arith.extui %n : i32 to i64\n%g64 = arith.extui %g : i32 to i64\n\
                 %before = arith.muli %b64, %n64 : i64\n%first = arith.addi %before, %t64 : i64\n\
                 %all = arith.muli %g64, %n64 : i64\n\
                 scf.for %i = %first to %extent step %all : i64 {{\n\
                 %next = arith.addi %i, %one : i64\n{call}}}\n"
            )
        }
    };
    format!(
        "module {{\nfunc.func private @{inner}({types}i64, i64) -> i32\n\
         func.func @{}({arguments}%extent: i64{status_argument}) {{\n\
         %zero = arith.constant 0 : i64\n%one = arith.constant 1 : i64\n%done = arith.constant 0 : i32\n{casts}{work}return\n}}\n}}",
        kernel.name
    )
}
