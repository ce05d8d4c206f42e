//! Utilities of the end-to-end tests: contexts, imports, and inspection of results.

pub mod compiled;
pub mod exceptions;
pub mod model;
pub mod node_cases;
pub mod numbers;
pub mod trial;

use bytes::Bytes;
use divi_dialect::{ExternalAttribute, Operation, attr, function_results};
use divi_onnx::Tensor;
use divi_passes::import::{self, Error, Options, Source, Warning};
pub use divi_passes::new_context as context;
pub use divi_readers::{memory, random};
use melior::{
    Context,
    ir::{Attribute, Module, Type, operation::OperationLike},
};
use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
};

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the repository")
}

/// Returns the folder of the test models.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// Returns the Python interpreter with `onnx`: `DIVI_PYTHON`, or the environment that `tools/setup` creates.
pub fn python() -> PathBuf {
    std::env::var_os("DIVI_PYTHON").map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from)
}

/// Imports a file; paths of weights are relative to the file's folder, so that the text does not depend on the
/// repository's location.
pub fn import_file<'c>(
    context: &'c Context,
    path: &Path,
    options: Options,
) -> Result<(Module<'c>, Vec<Warning>), Error> {
    let source = Source::open(path).unwrap_or_else(|error| panic!("{error}"));
    let ir_folder = path.parent().map(Path::to_owned).unwrap_or_default();
    import::import(context, &source, &Options { ir_folder, ..options })
}

/// Imports a model from memory.
pub fn import_bytes<'c>(context: &'c Context, name: &str, bytes: Bytes) -> Result<(Module<'c>, Vec<Warning>), Error> {
    import::import(context, &Source::from_memory(name, bytes), &Options::default())
}

/// Prints a module as text.
pub fn print(module: &Module<'_>) -> String {
    module.as_operation().to_string()
}

/// Writes a module as bytecode.
pub fn bytecode(module: &Module<'_>) -> Vec<u8> {
    module.as_operation().write_bytecode()
}

/// Parses text or bytecode.
pub fn parse<'c>(context: &'c Context, bytes: &[u8]) -> Result<Module<'c>, String> {
    let (module, messages) = with_diagnostics(context, || divi_dialect::parse_module(context, bytes));
    module.ok_or(messages)
}

/// Runs MLIR's verifier; the error has its diagnostics.
pub fn verify(context: &Context, module: &Module<'_>) -> Result<(), String> {
    let (verdict, messages) = with_diagnostics(context, || module.as_operation().verify());
    if verdict { Ok(()) } else { Err(messages) }
}

/// Collects the diagnostics that `body` emits, one per line.
pub fn with_diagnostics<T>(context: &Context, body: impl FnOnce() -> T) -> (T, String) {
    let messages = Rc::new(RefCell::new(String::new()));
    let sink = messages.clone();
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        let mut messages = sink.borrow_mut();
        messages.push_str(&diagnostic.to_string());
        messages.push('\n');
        true
    });
    let value = body();
    context.detach_diagnostic_handler(handler);
    let messages = messages.take();
    (value, messages)
}

/// Calls `visit` on every operation of a module in pre-order.
pub fn walk<'m>(module: &'m Module<'_>, visit: &mut dyn FnMut(Operation<'m>)) {
    Operation::from(module).walk(visit);
}

/// Returns an operation's full name, for instance `onnx.Conv`.
pub fn operation_name(operation: Operation<'_>) -> &str {
    operation.name()
}

/// Returns an attribute, if the operation has it.
pub fn attribute<'m>(operation: Operation<'m>, name: &str) -> Option<Attribute<'m>> {
    operation.attribute(name)
}

/// Returns the first function of a module.
pub fn function<'m>(module: &'m Module<'_>) -> Operation<'m> {
    let functions = Operation::from(module).children().into_iter().find(|operation| operation.name() == "func.func");
    functions.expect("a model has a function")
}

/// Returns the result types of all functions of a module.
pub fn result_types<'m>(module: &'m Module<'_>) -> Vec<Type<'m>> {
    let mut types = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) == "func.func"
            && let Some(function) = attribute(operation, "function_type").and_then(attr::as_type)
        {
            types.extend(function_results(function));
        }
    });
    types
}

/// Returns the constant of each operand of `func.return`, `None` for operands that are not constants. `folder` is the
/// folder of the model file.
pub fn returned_constants(module: &Module<'_>, folder: &Path) -> Vec<Option<Tensor>> {
    let mut constants = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) != "func.return" {
            return;
        }
        for operand in operation.operands() {
            let owner = operand.defining_op().filter(|&owner| operation_name(owner) == "onnx.Constant");
            let value = owner.and_then(|owner| attribute(owner, "value"));
            constants.push(value.map(|value| read_constant(value, folder)));
        }
    });
    constants
}

/// Reads the elements of a constant from the IR or from a file.
fn read_constant(value: Attribute<'_>, folder: &Path) -> Tensor {
    if let Some(tensor) = divi_dialect::elements_of(value, u64::MAX) {
        return tensor;
    }
    let external = ExternalAttribute::from_attribute(value).unwrap_or_else(|| panic!("{value} is not a constant"));
    let path = folder.join(external.path());
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let start = external.offset() as usize;
    let bytes = Bytes::from(bytes).slice(start..start + external.length() as usize);
    let ty = divi_dialect::tensor_type_of(attr::type_of(value));
    let tensor = ty.and_then(|ty| Tensor::new(ty.dtype, ty.static_shape()?, bytes));
    tensor.unwrap_or_else(|| panic!("the size of {value} does not match its type"))
}
