//! Reads a stage's function, or a task, as a graph of operators. The members of clusters are nodes of the graph.

use super::constants::Constants;
use crate::{
    ir::{Failure, ONNX_CONSTANT, describe, error},
    tasks::is_constant,
};
use divi_codegen::graph::{Constant, Graph, Id, Node, Value as GraphValue};
use divi_dialect::{Block, Operation, Value, attr, node::attributes_of, op};
use divi_onnx::{Attributes, DType, Op};
use divi_runtime::prepare::Expression;
use rustc_hash::FxHashMap;

/// Graph of a function, and its tasks in the order of [`Node::task`].
pub(super) struct Read<'m> {
    pub(super) graph: Graph,
    pub(super) tasks: Vec<Operation<'m>>,
}

/// Graph of a task.
pub(super) struct TaskGraph<'m> {
    pub(super) graph: Graph,
    /// Operation of each node.
    pub(super) operations: Vec<Operation<'m>>,
}

/// Operation that cannot be part of a graph, with the reason.
pub(crate) struct Refusal<'m> {
    pub(crate) operation: Operation<'m>,
    pub(crate) message: String,
}

impl Refusal<'_> {
    /// Reports the error on the operation.
    pub(crate) fn emit(self) -> Failure {
        error(self.operation, &format!("{} {}", describe(self.operation), self.message));
        Failure
    }
}

/// Returns an error about an operation.
fn refuse<T>(operation: Operation<'_>, message: impl Into<String>) -> Result<T, Refusal<'_>> {
    Err(Refusal { operation, message: message.into() })
}

/// Reads a stage's function.
pub(super) fn read<'m>(function: Operation<'m>, constants: &Constants<'_>) -> Result<Read<'m>, Failure> {
    read_function(function, constants).map_err(Refusal::emit)
}

/// Returns the values that a block returns.
fn returned(block: Block<'_>) -> Vec<Value<'_>> {
    block.terminator().map(Operation::operands).unwrap_or_default()
}

fn read_function<'m>(function: Operation<'m>, constants: &Constants<'_>) -> Result<Read<'m>, Refusal<'m>> {
    let &[block] = &function.blocks()[..] else {
        return refuse(function, "has no body, or several blocks; a stage must have exactly one");
    };
    let mut reader = Reader::new(constants);
    for argument in block.arguments() {
        let id = reader.value(function, argument, None)?;
        reader.graph.inputs.push(id);
    }
    for operation in block.operations() {
        reader.task(operation)?;
    }
    for value in returned(block) {
        let Some(id) = reader.read(function, value)? else {
            return refuse(function, "returns an absent value");
        };
        reader.graph.outputs.push(id);
    }
    Ok(Read { graph: reader.graph, tasks: reader.tasks })
}

/// Reads one task, or an operator that computes constants. Operands become inputs of the graph, or constants where
/// their elements or the operators that compute them are known.
pub(super) fn read_task<'m>(task: Operation<'m>, constants: &Constants<'_>) -> Result<TaskGraph<'m>, Refusal<'m>> {
    let mut reader = Reader::new(constants);
    for operand in task.operands() {
        if reader.values.contains_key(&operand) {
            continue;
        }
        match operand.defining_op().filter(|&definer| is_constant(definer)) {
            Some(definer) if matches!(definer.name(), ONNX_CONSTANT | "onnx.NoValue") => {
                reader.operation(definer)?;
            }
            Some(definer) if !definer.has(attr::CONSTANT_BYTES) => {
                return refuse(definer, "is not supported: only onnx operators can be compiled");
            }
            Some(_) => {
                // Computed when the bundle is built; only its type matters here.
                let (dtype, shape) = static_type(task, operand)?;
                let bytes = GraphValue { dtype, shape, constant: None }.bytes();
                let constant = Constant { source: Expression::Zeros(bytes.div_ceil(4)), tensor: None };
                reader.value(task, operand, Some(constant))?;
            }
            None if operand.is_none() => _ = reader.values.insert(operand, None),
            None => {
                let id = reader.value(task, operand, None)?;
                reader.graph.inputs.push(id);
            }
        }
    }
    reader.task(task)?;
    Ok(TaskGraph { graph: reader.graph, operations: reader.operations })
}

/// Checks that the inputs and outputs of a model are tensors that kernels support.
pub(crate) fn check_signature(function: Operation<'_>) -> Result<(), Refusal<'_>> {
    let values = function.blocks().into_iter().flat_map(|block| block.arguments().into_iter().chain(returned(block)));
    values.into_iter().try_for_each(|value| static_type(function, value).map(drop))
}

/// Returns element type and static shape of a value, if kernels support it.
pub(super) fn static_type<'m>(reader: Operation<'m>, value: Value<'m>) -> Result<(DType, Vec<i64>), Refusal<'m>> {
    let Some(ty) = value.tensor_type() else {
        return refuse(reader, "has a value that is not a tensor; sequences, optionals and maps are not supported");
    };
    let text = ty.to_string();
    if ty.dtype == DType::String {
        return refuse(reader, "has a tensor of strings, which is not supported");
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
        return refuse(reader, format!("has a value of type {text}, which is too large"));
    }
    Ok((ty.dtype, shape))
}

struct Reader<'a, 'm> {
    constants: &'a Constants<'a>,
    graph: Graph,
    /// Graph value of each MLIR value; `None` for absent ones.
    values: FxHashMap<Value<'m>, Option<Id>>,
    tasks: Vec<Operation<'m>>,
    /// Operation of each node.
    operations: Vec<Operation<'m>>,
}

impl<'a, 'm> Reader<'a, 'm> {
    fn new(constants: &'a Constants<'a>) -> Self {
        Self { constants, graph: Graph::default(), values: FxHashMap::default(), tasks: vec![], operations: vec![] }
    }

    fn task(&mut self, operation: Operation<'m>) -> Result<(), Refusal<'m>> {
        match operation.name() {
            op::RETURN | "onnx.Return" => return Ok(()),
            _ if is_constant(operation) => return self.operation(operation),
            _ => self.tasks.push(operation),
        }
        self.operation(operation)
    }

    fn operation(&mut self, operation: Operation<'m>) -> Result<(), Refusal<'m>> {
        match operation.name() {
            "onnx.NoValue" => {
                self.values.insert(operation.results()[0], None);
                Ok(())
            }
            ONNX_CONSTANT => {
                let constant = self.constants.find(operation).map_err(|message| Refusal { operation, message })?;
                self.value(operation, operation.results()[0], Some(constant)).map(drop)
            }
            op::CLUSTER => self.cluster(operation),
            _ => match operation.op() {
                Some(op) => self.node(operation, op),
                None => refuse(operation, "is not supported: only onnx operators can be compiled"),
            },
        }
    }

    fn cluster(&mut self, cluster: Operation<'m>) -> Result<(), Refusal<'m>> {
        let Some(&body) = cluster.blocks().first() else { return Ok(()) };
        for (argument, operand) in body.arguments().into_iter().zip(cluster.operands()) {
            let id = self.read(cluster, operand)?;
            self.values.insert(argument, id);
        }
        for operation in body.operations() {
            if operation.name() != op::YIELD {
                self.operation(operation)?;
                continue;
            }
            for (result, yielded) in cluster.results().into_iter().zip(operation.operands()) {
                let id = self.read(cluster, yielded)?;
                self.values.insert(result, id);
            }
        }
        Ok(())
    }

    fn node(&mut self, operation: Operation<'m>, op: Op) -> Result<(), Refusal<'m>> {
        let inputs =
            operation.operands().into_iter().map(|value| self.read(operation, value)).collect::<Result<_, _>>()?;
        let mut outputs = vec![];
        for result in operation.results() {
            outputs.push(match result.is_none() {
                true => {
                    self.values.insert(result, None);
                    None
                }
                false => Some(self.value(operation, result, None)?),
            });
        }
        let attributes = attributes_of(operation);
        let own = attributes.iter().filter(|(name, _)| *name != attr::NODE_NAME.name() && !name.contains('.'));
        let attributes: Attributes = own.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let name = operation.get(attr::NODE_NAME).unwrap_or_default().to_owned();
        let task = self.tasks.len().saturating_sub(1);
        self.operations.push(operation);
        self.graph.nodes.push(Node { op, name, attributes, inputs, outputs, task });
        Ok(())
    }

    fn value(
        &mut self,
        operation: Operation<'m>,
        value: Value<'m>,
        constant: Option<Constant>,
    ) -> Result<Id, Refusal<'m>> {
        let (dtype, shape) = static_type(operation, value)?;
        let id = Id(self.graph.values.len());
        self.graph.values.push(GraphValue { dtype, shape, constant });
        self.values.insert(value, Some(id));
        Ok(id)
    }

    fn read(&self, reader: Operation<'m>, value: Value<'m>) -> Result<Option<Id>, Refusal<'m>> {
        let message = || "reads a value that its stage does not define".into();
        self.values.get(&value).copied().ok_or_else(|| Refusal { operation: reader, message: message() })
    }
}
