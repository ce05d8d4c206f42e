//! A stage's function, or a task, as a graph of operators. The members of clusters are nodes of the graph.

use super::constants::Constants;
use crate::{
    ir::{
        Failure, ONNX_CONSTANT, arguments_of, attribute, blocks, describe, error, op_of, operands, operation_name,
        operations, results, string_attribute, tensor_type_of_value,
    },
    tasks::{CONSTANT, definer, is_constant},
};
use divi_codegen::graph::{Constant, Graph, Id, Node, Value};
use divi_dialect::node::{attributes_of, is_none};
use divi_onnx::{Attributes, DType, Op};
use divi_runtime::prepare::Expression;
use melior::ir::operation::OperationRef;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// A function as a graph, and its tasks in the order in which nodes count them.
pub(super) struct Read {
    pub(super) graph: Graph,
    pub(super) tasks: Vec<MlirOperation>,
}

/// A task as a graph.
pub(super) struct TaskGraph {
    pub(super) graph: Graph,
    /// The operation of each node.
    pub(super) operations: Vec<MlirOperation>,
}

/// An operation that cannot be part of a graph, and the reason.
pub(crate) struct Refusal {
    pub(crate) operation: MlirOperation,
    pub(crate) message: String,
}

impl Refusal {
    /// Reports the error on the operation.
    pub(crate) fn emit(self) -> Failure {
        error(self.operation, &format!("{} {}", describe(self.operation), self.message));
        Failure
    }
}

/// Returns an error about an operation.
fn refuse<T>(operation: MlirOperation, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { operation, message: message.into() })
}

/// Reads a stage's function.
pub(super) fn read(function: MlirOperation, constants: &Constants<'_>) -> Result<Read, Failure> {
    read_function(function, constants).map_err(Refusal::emit)
}

fn read_function(function: MlirOperation, constants: &Constants<'_>) -> Result<Read, Refusal> {
    let &[block] = &blocks(function)[..] else {
        return refuse(function, "has no body, or several blocks: a stage is one graph");
    };
    let mut reader = Reader::new(constants);
    for argument in arguments_of(block) {
        let id = reader.value(function, argument, None)?;
        reader.graph.inputs.push(id);
    }
    for operation in operations(block) {
        reader.task(operation)?;
    }
    // SAFETY: the block is alive, and a function's body ends in a terminator.
    for value in operands(unsafe { mlirBlockGetTerminator(block) }) {
        let Some(id) = reader.read(function, value)? else {
            return refuse(function, "returns a value that is not there");
        };
        reader.graph.outputs.push(id);
    }
    Ok(Read { graph: reader.graph, tasks: reader.tasks })
}

/// Reads one task, or an operator that computes constants. Its operands are inputs of the graph, and constants where their elements or
/// the operators that compute them are known.
pub(super) fn read_task(task: MlirOperation, constants: &Constants<'_>) -> Result<TaskGraph, Refusal> {
    let mut reader = Reader::new(constants);
    for operand in operands(task) {
        if reader.values.contains_key(&operand.ptr) {
            continue;
        }
        match definer(operand).filter(|&definer| is_constant(definer)) {
            Some(definer) if matches!(operation_name(definer), ONNX_CONSTANT | "onnx.NoValue") => {
                reader.operation(definer)?;
            }
            Some(definer) if attribute(definer, CONSTANT).is_none() => {
                return refuse(definer, "has no code: only onnx operators have");
            }
            Some(_) => {
                // Its bytes are computed when the bundle is built.
                let (dtype, shape) = static_type(task, operand)?;
                let bytes = Value { dtype, shape, constant: None }.bytes();
                let constant = Constant { source: Expression::Zeros(bytes.div_ceil(4)), tensor: None };
                reader.value(task, operand, Some(constant))?;
            }
            None if is_none(operand) => _ = reader.values.insert(operand.ptr, None),
            None => {
                let id = reader.value(task, operand, None)?;
                reader.graph.inputs.push(id);
            }
        }
    }
    reader.task(task)?;
    Ok(TaskGraph { graph: reader.graph, operations: reader.operations })
}

/// Checks that the inputs and outputs of a model are tensors that kernels can have.
pub(crate) fn check_signature(function: MlirOperation) -> Result<(), Refusal> {
    let values = blocks(function).into_iter().flat_map(|block| {
        // SAFETY: the block is alive, and a function's body ends in a terminator.
        let results = operands(unsafe { mlirBlockGetTerminator(block) });
        arguments_of(block).into_iter().chain(results)
    });
    values.into_iter().try_for_each(|value| static_type(function, value).map(drop))
}

/// Returns the type of a value if kernels can have it.
pub(super) fn static_type(reader: MlirOperation, value: MlirValue) -> Result<(DType, Vec<i64>), Refusal> {
    let Some(ty) = tensor_type_of_value(value) else {
        return refuse(reader, "has a value that is no tensor: there is no code for sequences, optionals and maps");
    };
    let text = ty.to_string();
    if ty.dtype == DType::String {
        return refuse(reader, "has text, which there is no code for");
    }
    let Some(shape) = ty.static_shape() else {
        let message = format!(
            "has a value of type {text}, whose shape is not known: code is generated for fixed shapes; fix them with \
             --dim, --batch or --input-shape"
        );
        return refuse(reader, message);
    };
    let bytes = divi_onnx::tensor::count_of(&shape).and_then(|count| ty.dtype.byte_len(count));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64 / 2) {
        return refuse(reader, format!("has a value of type {text}, which no machine can hold"));
    }
    Ok((ty.dtype, shape))
}

struct Reader<'a, 'b> {
    constants: &'a Constants<'b>,
    graph: Graph,
    /// What values are in the graph; absent ones are `None`.
    values: FxHashMap<*const c_void, Option<Id>>,
    tasks: Vec<MlirOperation>,
    /// The operation of each node.
    operations: Vec<MlirOperation>,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(constants: &'a Constants<'b>) -> Self {
        Self { constants, graph: Graph::default(), values: FxHashMap::default(), tasks: vec![], operations: vec![] }
    }

    fn task(&mut self, operation: MlirOperation) -> Result<(), Refusal> {
        match operation_name(operation) {
            "func.return" | "onnx.Return" => return Ok(()),
            _ if is_constant(operation) => return self.operation(operation),
            _ => self.tasks.push(operation),
        }
        self.operation(operation)
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), Refusal> {
        match operation_name(operation) {
            "onnx.NoValue" => {
                self.values.insert(results(operation)[0].ptr, None);
                Ok(())
            }
            ONNX_CONSTANT => {
                let constant = self.constants.find(operation).map_err(|message| Refusal { operation, message })?;
                self.value(operation, results(operation)[0], Some(constant)).map(drop)
            }
            "divi.cluster" => self.cluster(operation),
            _ => match op_of(operation) {
                Some(op) => self.node(operation, op),
                None => refuse(operation, "has no code: only onnx operators have"),
            },
        }
    }

    fn cluster(&mut self, cluster: MlirOperation) -> Result<(), Refusal> {
        let Some(&body) = blocks(cluster).first() else { return Ok(()) };
        for (argument, operand) in arguments_of(body).into_iter().zip(operands(cluster)) {
            let id = self.read(cluster, operand)?;
            self.values.insert(argument.ptr, id);
        }
        for operation in operations(body) {
            if operation_name(operation) != "divi.yield" {
                self.operation(operation)?;
                continue;
            }
            for (result, yielded) in results(cluster).into_iter().zip(operands(operation)) {
                let id = self.read(cluster, yielded)?;
                self.values.insert(result.ptr, id);
            }
        }
        Ok(())
    }

    fn node(&mut self, operation: MlirOperation, op: Op) -> Result<(), Refusal> {
        let inputs =
            operands(operation).into_iter().map(|value| self.read(operation, value)).collect::<Result<_, _>>()?;
        let mut outputs = vec![];
        for result in results(operation) {
            outputs.push(match is_none(result) {
                true => {
                    self.values.insert(result.ptr, None);
                    None
                }
                false => Some(self.value(operation, result, None)?),
            });
        }
        // SAFETY: the operation is alive.
        let attributes = attributes_of(&unsafe { OperationRef::from_raw(operation) });
        let own = attributes.iter().filter(|(name, _)| *name != "onnx_node_name" && !name.contains('.'));
        let attributes: Attributes = own.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let name = attribute(operation, "onnx_node_name").and_then(string_attribute).unwrap_or_default().to_owned();
        let task = self.tasks.len().saturating_sub(1);
        self.operations.push(operation);
        self.graph.nodes.push(Node { op, name, attributes, inputs, outputs, task });
        Ok(())
    }

    fn value(&mut self, operation: MlirOperation, value: MlirValue, constant: Option<Constant>) -> Result<Id, Refusal> {
        let (dtype, shape) = static_type(operation, value)?;
        let id = Id(self.graph.values.len());
        self.graph.values.push(Value { dtype, shape, constant });
        self.values.insert(value.ptr, Some(id));
        Ok(id)
    }

    fn read(&self, reader: MlirOperation, value: MlirValue) -> Result<Option<Id>, Refusal> {
        let message = || "reads a value that its stage does not have".into();
        self.values.get(&value.ptr).copied().ok_or_else(|| Refusal { operation: reader, message: message() })
    }
}
