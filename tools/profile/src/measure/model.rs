//! Compiles a model to a bundle for one device with the driver's passes.

use super::plain;
use divi_codegen::Target;
use divi_dialect::Operation;
use divi_passes::{
    Failure,
    bundle::{self, emit_bundle},
    canonicalize::canonicalize,
    cost::annotate_cost,
    exclude_unsupported::{Output, exclude_unsupported},
    fuse::{self, fuse},
    import::{self, Source, import},
    outline::outline,
    partition::{self, partition},
    rebatch::{Present, rebatch},
    verify_plan::verify_plan,
};
use melior::{Context, diagnostic::DiagnosticSeverity, ir::Module};
use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
};

/// Options of compilations.
pub(crate) struct Compilation {
    /// Seed of random weights in place of missing ones.
    pub(crate) seed: Option<u64>,
    /// Folder of the weights, if not the model's.
    pub(crate) weights_dir: Option<PathBuf>,
    pub(crate) target: Target,
}

impl Compilation {
    /// Returns the runtime field of profiles, which includes the target processor.
    pub(crate) fn runtime(&self) -> String {
        format!("divi {}, {}", env!("CARGO_PKG_VERSION"), self.target.cpu)
    }
}

/// Result of a compilation.
pub(super) enum Compiled {
    /// Nothing: the profile of the system already has all tasks; their number.
    Known(u64),
    /// A bundle with this batch size.
    Bundle { batch: u64 },
}

/// Compiles a model for the only device of a system (a file) into a folder, unless all its tasks are measured.
pub(super) fn compile(
    model: &Path,
    batch: Option<u32>,
    system: &Path,
    folder: &Path,
    compilation: &Compilation,
) -> Result<Compiled, String> {
    let fail = |message: String| format!("{}: {message}", model.display());
    let context = divi_passes::new_context();
    let module = read(&context, model, batch, compilation)?;
    let root = Operation::from(&module);
    let system = system.to_str().ok_or("the name of the temporary folder is not UTF-8")?;
    let plan = partition::Options { algorithm: "single".to_owned(), ..Default::default() };
    with_messages(&context, || {
        if let Some(batch) = batch {
            rebatch(root, batch.into())?;
        }
        let present = present(&module);
        canonicalize(root);
        fuse(root, &fuse::Options::default());
        let counts = annotate_cost(root, system, None)?;
        if counts.num_measured == counts.num_tasks {
            return Ok(Compiled::Known(counts.num_tasks));
        }
        exclude_unsupported(root, Output::Bundle, Path::new(""), compilation.seed)?;
        partition(root, &plan, None)?;
        verify_plan(root)?;
        outline(root, 1, None)?;
        verify_plan(root)?;
        let name = model.file_stem().unwrap_or_default().to_string_lossy();
        emit_bundle(root, folder, &bundle_options(&name, compilation))?;
        Ok(Compiled::Bundle { batch: present })
    })
    .map_err(fail)
}

/// Reads a model: MLIR if its name says so, otherwise ONNX.
fn read<'c>(
    context: &'c Context,
    model: &Path,
    batch: Option<u32>,
    compilation: &Compilation,
) -> Result<Module<'c>, String> {
    if model.extension().is_some_and(|extension| extension == "mlir") {
        let text = std::fs::read(model).map_err(|error| format!("{}: {error}", model.display()))?;
        let parse = || divi_dialect::parse_module(context, &text).ok_or(Failure);
        return with_messages(context, parse).map_err(|message| format!("{}: {message}", model.display()));
    }
    let source = Source::open(model).map_err(|error| error.to_string())?;
    let options = import::Options {
        batch: Some(batch.unwrap_or(1).into()),
        weights_dir: compilation.weights_dir.clone(),
        ..Default::default()
    };
    let (module, _) = import(context, &source, &options).map_err(|error| plain(&error.to_string()))?;
    Ok(module)
}

/// Compiles a plan, given as text, into a folder.
pub(super) fn compile_plan(name: &str, text: &str, folder: &Path, compilation: &Compilation) -> Result<(), String> {
    let context = divi_passes::new_context();
    with_messages(&context, || {
        let module = Module::parse(&context, text).ok_or(Failure)?;
        emit_bundle((&module).into(), folder, &bundle_options(name, compilation))
    })
}

fn bundle_options(name: &str, compilation: &Compilation) -> bundle::Options {
    bundle::Options {
        model: name.to_owned(),
        target: compilation.target.clone(),
        ir_folder: PathBuf::new(),
        random_seed: compilation.seed,
    }
}

/// Returns the batch size of an imported model, by which the shapes of its entries are divided.
fn present(module: &Module<'_>) -> u64 {
    let present = Operation::from(module).children().first().map(|&function| Present::of(function));
    match present {
        Some(Present::Size(size)) => u64::try_from(size).unwrap_or(1).max(1),
        _ => 1,
    }
}

/// Runs passes; the error has their diagnostics.
fn with_messages<T>(context: &Context, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, String> {
    let messages: Rc<RefCell<Vec<String>>> = Rc::default();
    let sink = messages.clone();
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        if matches!(diagnostic.severity(), DiagnosticSeverity::Error) {
            sink.borrow_mut().push(diagnostic.to_string());
        }
        true
    });
    let outcome = body();
    context.detach_diagnostic_handler(handler);
    outcome.map_err(|Failure| messages.take().join("\n"))
}
