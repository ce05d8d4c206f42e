//! The verifier's word on a module that was just built, in terms of the model.

use super::diagnostics::{Error, NodeName};
use divi_dialect::{location_name, trusting_inference};
use melior::{
    Context,
    diagnostic::{Diagnostic, DiagnosticSeverity},
    ir::{Module, operation::OperationLike},
};
use std::{cell::RefCell, rc::Rc};

/// Checks what import itself does not: above all, that operands have element types that their operators take.
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
    let verified = trusting_inference(|| module.as_operation().verify());
    context.detach_diagnostic_handler(handler);
    match (verified, first.take()) {
        (true, _) => Ok(()),
        (false, Some(error)) => Err(error),
        (false, None) => Err(Error::new(file, None, "the model became IR that is not valid".into())),
    }
}

/// `'onnx.Sqrt' op operand #0 …` at a node's location becomes a message about that node.
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
