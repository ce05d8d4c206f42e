//! Graph of a stage: operators on tensors of static shapes.

use divi_onnx::{Attributes, DType, Op, Tensor};
use divi_runtime::prepare::Expression;

/// Index of a value in [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub usize);

/// Operators of a stage in SSA form.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Values, indexed by [`Id`].
    pub values: Vec<Value>,
    /// Nodes in topological order.
    pub nodes: Vec<Node>,
    /// Inputs of the stage.
    pub inputs: Vec<Id>,
    /// Outputs of the stage.
    pub outputs: Vec<Id>,
}

/// A tensor of static shape.
#[derive(Clone, Debug)]
pub struct Value {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions.
    pub shape: Vec<i64>,
    /// Contents of a constant; `None` for inputs and computed values.
    pub constant: Option<Constant>,
}

/// Contents of a value that is known when code is generated.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Expression that yields the bytes.
    pub source: Expression,
    /// Elements of a constant that is small enough to be inspected, such as a shape.
    pub tensor: Option<Tensor>,
}

/// An operator with its operands and results; omitted optional ones are `None`.
#[derive(Clone, Debug)]
pub struct Node {
    /// Operator.
    pub op: Op,
    /// Name in the model; may be empty.
    pub name: String,
    /// Attributes as the model has them; defaults are not filled in.
    pub attributes: Attributes,
    /// Operands.
    pub inputs: Vec<Option<Id>>,
    /// Results.
    pub outputs: Vec<Option<Id>>,
    /// Index of its task in the stage's list.
    pub task: usize,
}

impl Graph {
    /// Returns a graph of one node. Its inputs are the operands that are not constants, its outputs all results.
    pub fn of_node(node: &Node, values: &[Value]) -> Self {
        let mut graph = Self::default();
        let mut add = |id: Id| {
            graph.values.push(values[id.0].clone());
            Id(graph.values.len() - 1)
        };
        let mut known: Vec<(Id, Id)> = vec![];
        let mut place = |id: Id| match known.iter().find(|(other, _)| *other == id) {
            Some(&(_, place)) => place,
            None => {
                let place = add(id);
                known.push((id, place));
                place
            }
        };
        let inputs: Vec<_> = node.inputs.iter().map(|id| id.map(&mut place)).collect();
        let outputs: Vec<_> = node.outputs.iter().map(|id| id.map(&mut place)).collect();
        graph.outputs = outputs.iter().flatten().copied().collect();
        for &id in inputs.iter().flatten() {
            if graph.values[id.0].constant.is_none() && !graph.inputs.contains(&id) {
                graph.inputs.push(id);
            }
        }
        graph.nodes = vec![Node { inputs, outputs, task: 0, ..node.clone() }];
        graph
    }
}

impl Value {
    /// Returns the number of elements.
    pub fn count(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Returns the size in bytes of the row-major tensor.
    pub fn bytes(&self) -> u64 {
        self.dtype.byte_len(self.count() as u64).expect("graphs have tensors that fit into memory")
    }
}

impl Node {
    /// Returns the attributes with the typed accessors of shape inference.
    pub fn attributes(&self) -> divi_onnx::Node<'_> {
        divi_onnx::Node { op: self.op, inputs: &[], attributes: &self.attributes, outputs: self.outputs.len() }
    }

    /// Returns an operand; `None` if it is omitted.
    pub fn optional(&self, index: usize) -> Option<Id> {
        self.inputs.get(index).copied().flatten()
    }

    /// Returns a required operand.
    pub fn input(&self, index: usize) -> crate::error::Result<Id> {
        self.optional(index).ok_or_else(|| divi_onnx::Error::new(format!("operand {index} is missing")))
    }

    /// Returns a result; `None` if it is omitted.
    pub fn result(&self, index: usize) -> Option<Id> {
        self.outputs.get(index).copied().flatten()
    }

    /// Returns the first result, which is required.
    pub fn output(&self) -> crate::error::Result<Id> {
        self.result(0).ok_or_else(|| divi_onnx::Error::new("the first result is missing"))
    }
}

/// Returns the row-major strides of a shape, in elements.
pub fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// Returns the strides, in elements, that read a tensor of `shape` broadcast to the shape `to`: 0 along broadcast dimensions.
pub fn broadcast_strides(shape: &[i64], to: &[i64]) -> Vec<i64> {
    let own = strides(shape);
    let missing = to.len() - shape.len();
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(inner) if shape[inner] == to[axis] || shape[inner] != 1 => own[inner],
        _ => 0,
    };
    (0..to.len()).map(stride).collect()
}
