//! Operators that no code is generated for: all of them are named before anything is compiled.

use crate::{
    import::{MAX_ITERATIONS, MAX_NODES},
    ir::{
        Failure, attribute, describe, error, operands, operation_name, results, string_attribute, tensor_type_of_value,
        walk,
    },
};
use divi_dialect::node::is_none;
use mlir_sys::{MlirOperation, MlirValue};
use std::collections::BTreeMap;

/// Refuses a module with operators that there is no code for. One error names each with how often it occurs.
pub(super) fn check(module: MlirOperation) -> Result<(), Failure> {
    let mut missing: BTreeMap<String, (usize, MlirOperation)> = BTreeMap::new();
    let mut first_open = None;
    visit(module, &mut |operation| {
        let Some(op) = operation_name(operation).strip_prefix("onnx.") else { return };
        if matches!(op, "Constant" | "NoValue" | "Return" | "EntryPoint" | "Yield") {
            return;
        }
        if op == "Custom" || !divi_codegen::has_code(op) {
            missing.entry(display_name(operation, op)).or_insert((0, operation)).0 += 1;
        } else if first_open.is_none() && results(operation).into_iter().any(is_open) {
            first_open = Some(operation);
        }
    });
    let Some(&(_, first)) = missing.values().min_by_key(|(count, _)| std::cmp::Reverse(*count)) else {
        return match first_open {
            Some(operation) => Err(refuse_open(operation)),
            None => Ok(()),
        };
    };
    let nodes = |count: usize| if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
    let mut list: Vec<_> = missing.iter().collect();
    list.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let names: Vec<_> = list.iter().map(|(op, (count, _))| format!("{op}, {}", nodes(*count))).collect();
    let mut message = format!("no code for {}", names.join("; "));
    let has = |op: &str| missing.contains_key(op);
    if has("Loop") {
        message += &format!(
            ": a Loop is compiled where import can unroll it, with at most {MAX_ITERATIONS} iterations and {MAX_NODES} \
             nodes, and neither their number nor the condition depending on data"
        );
    } else if has("If") {
        message += ": an If is compiled where its condition is known at import; --input-value=NAME=VALUE fixes an input \
                    that it depends on";
    } else {
        message += ": compute it elsewhere, or without it";
    }
    error(first, &format!("{}: {message}", describe(first)));
    Err(Failure)
}

/// Visits operations from the outside; what is inside control flow is part of it.
fn visit(root: MlirOperation, each: &mut dyn FnMut(MlirOperation)) {
    let mut inside: Vec<MlirOperation> = vec![];
    walk(root, &mut |operation| {
        if inside.iter().any(|&outer| crate::tasks::is_inside(operation, outer)) {
            return;
        }
        if operation_name(operation).starts_with("onnx.") && !crate::ir::blocks(operation).is_empty() {
            inside.push(operation);
        }
        each(operation);
    });
}

/// An operator as its model has it: with the domain, if that is not ONNX's.
fn display_name(operation: MlirOperation, op: &str) -> String {
    let text = |name: &str| attribute(operation, name).and_then(string_attribute);
    match (op, text("domain_name"), text("function_name")) {
        ("Custom", Some(domain), Some(function)) => format!("{domain}.{function}"),
        ("Custom", None, Some(function)) => function.to_owned(),
        _ => op.to_owned(),
    }
}

fn is_open(value: MlirValue) -> bool {
    !is_none(value) && tensor_type_of_value(value).is_some_and(|ty| !ty.is_static())
}

/// The error for an operator whose result has no fixed shape: its own operands decide what can help.
pub(super) fn refuse_open(operation: MlirOperation) -> Failure {
    let open = results(operation).into_iter().find(|&value| is_open(value)).and_then(tensor_type_of_value);
    let ty = open.map_or_else(String::new, |ty| format!(" of type {ty}"));
    let message = match operands(operation).into_iter().any(is_open) {
        true => format!(
            "has a value{ty}, whose shape is not known: code is generated for fixed shapes; fix them with --dim, --batch or \
             --input-shape"
        ),
        false => format!(
            "has a value{ty}, whose shape depends on data: code is generated for fixed shapes, so this operator has to \
             run elsewhere"
        ),
    };
    error(operation, &format!("{} {message}", describe(operation)));
    Failure
}
