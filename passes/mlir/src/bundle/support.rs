//! Support of operators by devices: the tasks of a module that a device has code for, and the reasons where it has
//! none.

use super::{
    constants::Constants,
    graph::{Refusal, TaskGraph, read_task},
};
use crate::{
    import::{MAX_ITERATIONS, MAX_NODES},
    ir::{Failure, describe, error},
    tasks::{is_constant, members},
};
use divi_codegen::{TargetBackend, backends};
use divi_dialect::{Operation, Value, attr, op};
use divi_onnx::Op;
use std::{cell::LazyCell, cmp::Reverse, collections::BTreeMap};

/// Operator of a task that a device cannot run.
#[derive(Clone, Debug)]
pub(crate) struct Gap<'m> {
    operation: Operation<'m>,
    /// Operator as in the model: with the domain, if that is not ONNX's.
    name: String,
    cause: Cause,
}

/// Reason of a gap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// There is no code for the operator.
    Operator,
    /// There is code for the operator, but not for this node.
    Node(String),
    /// A result has a shape that is not known.
    OpenShape,
    /// Predicate of a message whose subject is the operation.
    Refused(String),
}

impl Cause {
    /// Returns the reason in a few words.
    fn text(&self) -> &str {
        match self {
            Self::Operator => "no code for this operator",
            Self::OpenShape => "a shape is not known",
            Self::Node(text) | Self::Refused(text) => text,
        }
    }
}

impl<'m> Gap<'m> {
    fn new(operation: Operation<'m>, cause: Cause) -> Self {
        Self { operation, name: display_name(operation), cause }
    }

    /// Returns operator and reason, as in `Det (there is no arithmetic of bool)`.
    pub(crate) fn text(&self) -> String {
        format!("{} ({})", self.name, self.cause.text())
    }
}

/// Returns for each back end the operators of a task that it has no code for. Reads the task once.
pub(crate) fn gaps<'m>(
    task: Operation<'m>,
    constants: &Constants<'_>,
    backends: &[&'static dyn TargetBackend],
) -> Vec<Vec<Gap<'m>>> {
    let members = members(task);
    let graph = LazyCell::new(|| read_task(task, constants));
    let of_backend = |backend: &&'static dyn TargetBackend| {
        let gaps: Vec<_> = members.iter().filter_map(|&member| operator_gap(member, *backend)).collect();
        if !gaps.is_empty() {
            return gaps;
        }
        let TaskGraph { graph, operations } = match &*graph {
            Ok(graph) => graph,
            Err(Refusal { operation, message }) => {
                return vec![Gap::new(*operation, Cause::Refused(message.clone()))];
            }
        };
        let nodes = graph.nodes.iter().zip(operations);
        let refused =
            nodes.filter_map(|(node, &operation)| Some((operation, backend.supports(node, &graph.values).err()?)));
        refused.map(|(operation, reason)| Gap::new(operation, Cause::Node(reason.to_string()))).collect()
    };
    backends.iter().map(of_backend).collect()
}

/// Returns the gap of an operator that has no code for any type, or has results of unknown shape.
fn operator_gap<'m>(operation: Operation<'m>, backend: &dyn TargetBackend) -> Option<Gap<'m>> {
    let cause = match operation.name().strip_prefix("onnx.") {
        None => Cause::Refused("is not supported: only onnx operators can be compiled".into()),
        Some(op) if !Op::from_name(op).is_some_and(|op| backend.has_operator(op)) => Cause::Operator,
        Some(_) if operation.results().into_iter().any(is_open) => Cause::OpenShape,
        Some(_) => return None,
    };
    Some(Gap::new(operation, cause))
}

/// Returns the gaps of operators that compute constants. The host runs them when the bundle is built.
pub(crate) fn constant_gaps<'m>(module: Operation<'m>, constants: &Constants<'_>) -> Vec<Gap<'m>> {
    let mut all = vec![];
    module.walk(|operation| {
        if operation.has(attr::CONSTANT_BYTES) {
            all.extend(gaps(operation, constants, &[backends::host()]).into_iter().flatten());
        }
    });
    all
}

/// Reports the operators of stages that their devices have no code for, whatever the type.
pub(super) fn check_stages(module: Operation<'_>) -> Result<(), Failure> {
    let all = module.children();
    let kind = |name: &str| {
        let is_it =
            |operation: &&Operation<'_>| operation.name() == op::DEVICE && operation.symbol_name() == Some(name);
        all.iter().find(is_it).and_then(|device| device.get(attr::KIND))
    };
    let mut gaps = vec![];
    for function in all.iter().filter(|operation| operation.name() == op::FUNC) {
        let device = function.get(attr::DEVICE);
        let Some(backend) = device.and_then(kind).and_then(backends::find) else { continue };
        let tasks = function.children().into_iter();
        let is_task = |&task: &Operation<'_>| !is_constant(task) && !matches!(task.name(), op::RETURN | "onnx.Return");
        gaps.extend(tasks.filter(is_task).flat_map(members).filter_map(|member| operator_gap(member, backend)));
    }
    if gaps.is_empty() { Ok(()) } else { Err(report(&gaps)) }
}

/// Reports gaps in one error: each operator without code with the number of its nodes, or the first other reason.
pub(crate) fn report(gaps: &[Gap<'_>]) -> Failure {
    let mut missing: BTreeMap<&str, (usize, Operation<'_>)> = BTreeMap::new();
    for gap in gaps.iter().filter(|gap| gap.cause == Cause::Operator) {
        missing.entry(&gap.name).or_insert((0, gap.operation)).0 += 1;
    }
    let Some(&(_, first)) = missing.values().min_by_key(|(count, _)| Reverse(*count)) else {
        for Gap { operation, cause, .. } in gaps.iter().take(1) {
            match cause {
                Cause::OpenShape => return refuse_open(*operation),
                Cause::Refused(message) => error(*operation, &format!("{} {message}", describe(*operation))),
                cause => error(*operation, &format!("{}: {}", describe(*operation), cause.text())),
            }
        }
        return Failure;
    };
    let nodes = |count: usize| if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
    let mut list: Vec<_> = missing.iter().collect();
    list.sort_by_key(|(_, (count, _))| Reverse(*count));
    let names: Vec<_> = list.iter().map(|(op, (count, _))| format!("{op}, {}", nodes(*count))).collect();
    let mut message = format!("no code for {}", names.join("; "));
    let has = |op: Op| missing.contains_key(op.name());
    if has(Op::Loop) {
        message += &format!(
            ": a Loop is compiled only if import can unroll it, with at most {MAX_ITERATIONS} iterations and {MAX_NODES} \
             nodes, and neither their number nor the condition depending on data"
        );
    } else if has(Op::If) {
        message += ": an If is compiled only if its condition is known at import; --input-value=NAME=VALUE fixes an input \
                    that it depends on";
    } else {
        message += ": run it elsewhere, or rewrite the model without it";
    }
    error(first, &format!("{}: {message}", describe(first)));
    Failure
}

/// Returns the operator as in the model: with the domain, if that is not ONNX's.
fn display_name(operation: Operation<'_>) -> String {
    let name = operation.name();
    let op = name.strip_prefix("onnx.").unwrap_or(name);
    let text = |name: &str| operation.attribute(name).and_then(attr::as_string);
    match (op, text("domain_name"), text("function_name")) {
        ("Custom", Some(domain), Some(function)) => format!("{domain}.{function}"),
        ("Custom", None, Some(function)) => function.to_owned(),
        _ => op.to_owned(),
    }
}

fn is_open(value: Value<'_>) -> bool {
    !value.is_none() && value.tensor_type().is_some_and(|ty| !ty.is_static())
}

/// Reports an operator whose result has no static shape. The remedy depends on its operands.
fn refuse_open(operation: Operation<'_>) -> Failure {
    let open = operation.results().into_iter().find(|&value| is_open(value)).and_then(Value::tensor_type);
    let ty = open.map_or_else(String::new, |ty| format!(" of type {ty}"));
    let message = match operation.operands().into_iter().any(is_open) {
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
