//! Verifies an imported module, with messages in terms of the model.

use super::diagnostics::{Error, NodeName};
use divi_dialect::{location_name, skip_type_verification};
use melior::{
    Context,
    diagnostic::{Diagnostic, DiagnosticSeverity},
    ir::{Module, operation::OperationLike},
};
use std::{cell::RefCell, rc::Rc};

/// Verifies properties that import does not check itself, above all element types of operands.
pub(super) fn verify(context: &Context, module: &Module<'_>, file: &str) -> Result<(), Error> {
    let first: Rc<RefCell<Option<Error>>> = Rc::default();
    let sink = first.clone();
    let name = file.to_owned();
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        if matches!(diagnostic.severity(), DiagnosticSeverity::Error) {
            sink.borrow_mut().get_or_insert_with(|| translate(&diagnostic, &name));
        }
        true
    });
    let verified = skip_type_verification(|| module.as_operation().verify());
    context.detach_diagnostic_handler(handler);
    match (verified, first.take()) {
        (true, _) => Ok(()),
        (false, Some(error)) => Err(error),
        (false, None) => Err(Error::new(file, None, "import produced invalid IR".into())),
    }
}

/// Converts `'onnx.Sqrt' op operand #0 …` at a node's location to a message about that node.
fn translate(diagnostic: &Diagnostic<'_>, file: &str) -> Error {
    let message = diagnostic.to_string();
    let name = location_name(diagnostic.location());
    let named = message.strip_prefix("'onnx.").and_then(|rest| rest.split_once("' op "));
    match (name, named) {
        (Some(name), Some((op, message))) => {
            let node = NodeName { name: name.to_owned(), op: op.to_owned() };
            Error::new(file, Some(node), message.to_owned())
        }
        _ => Error::new(file, None, message),
    }
}
