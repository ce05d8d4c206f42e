//! Machine code of kernels: lowering to the `llvm` dialect, LLVM's optimizer and code generator, and linking of shared objects.

mod ffi;

use crate::{emit::Kernel, error::Error, kernels::Kernels, target::Target};
use divi_runtime::drivers::cpu::SIGNATURES;
use ffi::Shared;
pub(crate) use ffi::append_last;
use inkwell::{
    OptimizationLevel,
    attributes::AttributeLoc,
    context::Context as LlvmContext,
    module::Module as LlvmModule,
    passes::PassBuilderOptions,
    targets::{
        CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
    },
};
use melior::{
    Context,
    ir::{Location, Module},
    utility::{register_all_llvm_translations, register_all_passes},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

const LOWERING: &str = "builtin.module(convert-scf-to-cf,convert-vector-to-llvm,\
    convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,\
    convert-ub-to-llvm,reconcile-unrealized-casts)";
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Compiles kernels into the shared object `output`; object files go to the folder `scratch`. `signatures` has one line per
/// signature of a call; the runtime compares them with the bundle's description.
pub(crate) fn compile(
    kernels: &mut Kernels,
    target: &Target,
    signatures: &str,
    scratch: &Path,
    output: &Path,
) -> Result<(), Error> {
    initialize(kernels.context());
    let taken = kernels.take();
    let context = kernels.context();
    // Passes load dialects, which is not thread-safe. Running them on an empty module loads all dialects up front.
    lower_to_llvm(&Module::new(Location::unknown(context)))?;
    let mut modules: Vec<_> = groups(taken).into_iter().map(|group| Shared(module(context, group))).collect();
    modules.push(Shared(signature_module(context, signatures)));
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get()).min(modules.len());
    let next = AtomicUsize::new(0);
    let objects = Mutex::new(vec![None; modules.len()]);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(module) = modules.get(index) else { break };
                    let object = scratch.join(format!("kernels{index}.o"));
                    match compile_module(&module.0, target, &object) {
                        Ok(()) => objects.lock().expect("no thread panics")[index] = Some(object),
                        Err(error) => *failure.lock().expect("no thread panics") = Some(error),
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no thread panics") {
        return Err(error);
    }
    let objects: Vec<PathBuf> = objects.into_inner().expect("no thread panics").into_iter().flatten().collect();
    link(&objects, output)
}

/// Initializes MLIR and LLVM once per process, and registers translations to LLVM IR in a context.
pub(crate) fn initialize(context: &Context) {
    static INITIALIZED: Once = Once::new();
    INITIALIZED.call_once(|| {
        register_all_passes();
        LlvmTarget::initialize_x86(&InitializationConfig::default());
        LlvmTarget::initialize_nvptx(&InitializationConfig::default());
    });
    register_all_llvm_translations(context);
}

/// Partitions kernels into groups of about equal compile time (longest processing time first). The result depends on the set of kernels
/// only, not on their order.
fn groups(mut kernels: Vec<Kernel>) -> Vec<Vec<Kernel>> {
    const LENGTH: usize = 200_000;
    let total: usize = kernels.iter().map(|kernel| kernel.text_length).sum();
    let count = (total / LENGTH + 1).clamp(2, 16).min(kernels.len().max(1));
    kernels.sort_by(|a, b| b.text_length.cmp(&a.text_length).then_with(|| a.name.cmp(&b.name)));
    let mut groups: Vec<(usize, Vec<Kernel>)> = (0..count).map(|_| (0, vec![])).collect();
    for kernel in kernels {
        let group = groups.iter_mut().min_by_key(|(length, _)| *length).expect("there is a group");
        group.0 += kernel.text_length;
        group.1.push(kernel);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Returns a module with the kernels and, for each, the entry point that the runtime calls.
fn module(context: &Context, kernels: Vec<Kernel>) -> Module<'_> {
    let module = Module::new(Location::unknown(context));
    for kernel in kernels {
        let inner = format!("{}.body", kernel.name);
        kernel.function.append_to(&module, &inner);
        append_last(context, &module, &entry_text(&kernel.name, &inner, kernel.buffers));
    }
    module
}

/// Returns a module with the signatures of all calls as a NUL-terminated string.
fn signature_module<'c>(context: &'c Context, signatures: &str) -> Module<'c> {
    let module = Module::new(Location::unknown(context));
    let text = signatures.replace('\n', "\\0A");
    let global = format!(
        "llvm.mlir.global external constant @{SIGNATURES}(\"{text}\\00\") {{addr_space = 0 : i32}} : !llvm.array<{} x i8>",
        signatures.len() + 1
    );
    append_last(context, &module, &global);
    module
}

/// Returns the text of an entry point, which loads the pointers to a kernel's buffers from an array and calls the kernel. The text begins
/// with a declaration of the kernel.
fn entry_text(name: &str, inner: &str, buffers: usize) -> String {
    let types = "!llvm.ptr, ".repeat(buffers);
    let loads: String = (0..buffers)
        .map(|i| {
            format!(
                "%a{i} = llvm.getelementptr %list[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n\
                 %p{i} = llvm.load %a{i} : !llvm.ptr -> !llvm.ptr\n"
            )
        })
        .collect();
    let pointers: String = (0..buffers).map(|i| format!("%p{i}, ")).collect();
    format!(
        "module {{\nfunc.func private @{inner}({types}i64, i64) -> i32\n\
         func.func @{name}(%list: !llvm.ptr, %begin: i64, %end: i64) -> i32 {{\n{loads}\
         %status = func.call @{inner}({pointers}%begin, %end) : ({types}i64, i64) -> i32\n\
         return %status : i32\n}}\n}}"
    )
}

fn compile_module(module: &Module<'_>, target: &Target, object: &Path) -> Result<(), Error> {
    let llvm_context = LlvmContext::create();
    let machine = target_machine(target)?;
    let llvm = translate(module, &llvm_context, &machine)?;
    let width = llvm_context.create_string_attribute("prefer-vector-width", &(target.lanes * 32).to_string());
    let mut next = llvm.get_first_function();
    while let Some(function) = next {
        if function.count_basic_blocks() > 0 {
            function.add_attribute(AttributeLoc::Function, width);
        }
        next = function.get_next_function();
    }
    optimize(&llvm, &machine)?;
    machine
        .write_to_file(&llvm, FileType::Object, object)
        .map_err(|error| internal("LLVM cannot write an object", &error.to_string()))
}

pub(crate) fn internal(what: &str, problem: &dyn std::fmt::Display) -> Error {
    Error::Internal(format!("{what}: {problem}"))
}

/// Lowers a module and translates it to LLVM IR.
pub(crate) fn translate<'c>(
    module: &Module<'_>,
    context: &'c LlvmContext,
    machine: &TargetMachine,
) -> Result<LlvmModule<'c>, Error> {
    lower_to_llvm(module)?;
    let llvm = ffi::translate(module, context)
        .ok_or_else(|| Error::Internal("kernels cannot be translated to LLVM IR".into()))?;
    llvm.set_triple(&machine.get_triple());
    llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    Ok(llvm)
}

pub(crate) fn optimize(llvm: &LlvmModule<'_>, machine: &TargetMachine) -> Result<(), Error> {
    llvm.verify().map_err(|error| internal("LLVM cannot verify the kernels", &error.to_string()))?;
    let options = PassBuilderOptions::create();
    llvm.run_passes("default<O2>", machine, options).map_err(|error| internal("LLVM", &error.to_string()))
}

/// Lowers a module to the `llvm` dialect. No other thread may use the module meanwhile.
fn lower_to_llvm(module: &Module<'_>) -> Result<(), Error> {
    match ffi::run_passes(module, LOWERING) {
        true => Ok(()),
        false => Err(Error::Internal("kernels cannot be lowered to LLVM".into())),
    }
}

fn target_machine(target: &Target) -> Result<TargetMachine, Error> {
    machine_of(TRIPLE, &target.llvm_cpu, &target.llvm_features)
}

pub(crate) fn machine_of(triple: &str, processor: &str, features: &str) -> Result<TargetMachine, Error> {
    let triple = TargetTriple::create(triple);
    let llvm = LlvmTarget::from_triple(&triple).map_err(|error| Error::Internal(error.to_string()))?;
    llvm.create_target_machine(
        &triple,
        processor,
        features,
        OptimizationLevel::Default,
        RelocMode::PIC,
        CodeModel::Default,
    )
    .ok_or_else(|| Error::Target(format!("LLVM does not support the processor '{processor}'")))
}

/// Links objects into a shared object whose only dependency is libm.
fn link(objects: &[PathBuf], output: &Path) -> Result<(), Error> {
    let linker = Path::new(env!("DIVI_LLD"));
    let mut command = Command::new(if linker.exists() { linker } else { Path::new("ld.lld") });
    command.args(["-shared", "--gc-sections", "--build-id=none", "-s", "-soname"]);
    command.arg(output.file_name().unwrap_or_default()).arg("-o").arg(output).args(objects);
    // Folders of the C library in common distributions; --as-needed drops the dependency if it is unused.
    command.args(["--as-needed", "-L/lib/x86_64-linux-gnu", "-L/lib64", "-L/usr/lib64", "-L/usr/lib", "-l:libm.so.6"]);
    let result = command
        .output()
        .map_err(|problem| Error::Target(format!("cannot run the linker '{}': {problem}", linker.display())))?;
    if result.status.success() {
        return Ok(());
    }
    Err(Error::Internal(format!("the linker failed: {}", String::from_utf8_lossy(&result.stderr).trim())))
}

/// Returns the distinct signatures in sorted order, one per line.
pub(crate) fn signature_lines(signatures: impl Iterator<Item = String>) -> String {
    let lines: BTreeSet<_> = signatures.collect();
    lines.into_iter().map(|line| line + "\n").collect()
}
