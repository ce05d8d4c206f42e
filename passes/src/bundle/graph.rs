//! A stage's function as a graph of operators: clusters are seen through.

use super::constants::Constants;
use crate::ir::{
    Failure, arguments_of, attribute, blocks, describe, error, operands, operation_name, operations, results,
    string_attribute, tensor_type_of_value,
};
use crate::tasks::is_constant;
use divi_codegen::graph::{Constant, Graph, Id, Node, Value};
use divi_dialect::node::{attributes_of, is_none};
use divi_onnx::{Attributes, DType};
use melior::ir::operation::OperationRef;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// A function as a graph, and its tasks in the order in which nodes count them.
pub(super) struct Read {
    pub(super) graph: Graph,
    pub(super) tasks: Vec<MlirOperation>,
}

/// Reads a stage's function.
pub(super) fn read(function: MlirOperation, constants: &Constants<'_>) -> Result<Read, Failure> {
    let &[block] = &blocks(function)[..] else {
        error(function, &format!("{} has no body, or several blocks: a stage is one graph", describe(function)));
        return Err(Failure);
    };
    let mut reader = Reader { constants, graph: Graph::default(), values: FxHashMap::default(), tasks: vec![] };
    for argument in arguments_of(block) {
        let id = reader.value(function, argument, None)?;
        reader.graph.inputs.push(id);
    }
    for operation in operations(block) {
        reader.task(operation)?;
    }
    // SAFETY: the block is alive, and a function's body ends in a terminator.
    for value in operands(unsafe { mlirBlockGetTerminator(block) }) {
        let id = reader.read(function, value)?.ok_or_else(|| {
            error(function, &format!("{} returns a value that is not there", describe(function)));
            Failure
        })?;
        reader.graph.outputs.push(id);
    }
    Ok(Read { graph: reader.graph, tasks: reader.tasks })
}

/// The type of a value as kernels want it. What they do not, is said on the operation.
pub(super) fn static_type(reader: MlirOperation, value: MlirValue) -> Result<(DType, Vec<i64>), Failure> {
    let fail = |message: String| {
        error(reader, &format!("{} {message}", describe(reader)));
        Failure
    };
    let Some(ty) = tensor_type_of_value(value) else {
        return Err(fail("has a value that is no tensor: there is no code for sequences, optionals and maps".into()));
    };
    let text = ty.to_string();
    if ty.dtype == DType::String {
        return Err(fail("has text, which there is no code for".into()));
    }
    let Some(shape) = ty.static_shape() else {
        return Err(fail(format!(
            "has a value of type {text}, whose shape is not known: code is generated for fixed shapes; fix them with \
             --dim, --batch or --input-shape"
        )));
    };
    let bytes = divi_onnx::tensor::count_of(&shape).and_then(|count| ty.dtype.byte_len(count));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64 / 2) {
        return Err(fail(format!("has a value of type {text}, which no machine can hold")));
    }
    Ok((ty.dtype, shape))
}

struct Reader<'a, 'b> {
    constants: &'a Constants<'b>,
    graph: Graph,
    /// What values are in the graph; absent ones are `None`.
    values: FxHashMap<*const c_void, Option<Id>>,
    tasks: Vec<MlirOperation>,
}

impl Reader<'_, '_> {
    fn task(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        match operation_name(operation) {
            "func.return" | "onnx.Return" => return Ok(()),
            _ if is_constant(operation) => return self.operation(operation),
            _ => self.tasks.push(operation),
        }
        self.operation(operation)
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        match operation_name(operation) {
            "onnx.NoValue" => {
                self.values.insert(results(operation)[0].ptr, None);
                Ok(())
            }
            "onnx.Constant" => {
                let constant = self.constants.find(operation).map_err(|message| {
                    error(operation, &format!("{} {message}", describe(operation)));
                    Failure
                })?;
                self.value(operation, results(operation)[0], Some(constant)).map(drop)
            }
            "divi.cluster" => self.cluster(operation),
            name => match name.strip_prefix("onnx.") {
                Some(op) => self.node(operation, op),
                None => {
                    error(operation, &format!("{} has no code: only onnx operators have", describe(operation)));
                    Err(Failure)
                }
            },
        }
    }

    fn cluster(&mut self, cluster: MlirOperation) -> Result<(), Failure> {
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

    fn node(&mut self, operation: MlirOperation, op: &str) -> Result<(), Failure> {
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
        self.graph.nodes.push(Node { op: op.to_owned(), name, attributes, inputs, outputs, task });
        Ok(())
    }

    fn value(&mut self, operation: MlirOperation, value: MlirValue, constant: Option<Constant>) -> Result<Id, Failure> {
        let (dtype, shape) = static_type(operation, value)?;
        let id = Id(self.graph.values.len());
        self.graph.values.push(Value { dtype, shape, constant });
        self.values.insert(value.ptr, Some(id));
        Ok(id)
    }

    fn read(&self, reader: MlirOperation, value: MlirValue) -> Result<Option<Id>, Failure> {
        self.values.get(&value.ptr).copied().ok_or_else(|| {
            error(reader, &format!("{} reads a value that its stage does not have", describe(reader)));
            Failure
        })
    }
}
