//! What a stage computes: operators on tensors of known shapes.

use divi_onnx::{Attributes, DType, Op, Tensor};
use divi_runtime::prepare::Expression;

/// A value of a graph, by its place in `Graph::values`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub usize);

#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub values: Vec<Value>,
    /// Each behind those whose results it reads.
    pub nodes: Vec<Node>,
    pub inputs: Vec<Id>,
    pub outputs: Vec<Id>,
}

#[derive(Clone, Debug)]
pub struct Value {
    pub dtype: DType,
    pub shape: Vec<i64>,
    pub constant: Option<Constant>,
}

/// A value that is known when code is generated.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Where its bytes come from.
    pub source: Expression,
    /// Its elements, if they are few enough to be looked into.
    pub tensor: Option<Tensor>,
}

/// An operator with its operands and results; absent ones are `None`.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    /// What the model calls it.
    pub name: String,
    pub attributes: Attributes,
    pub inputs: Vec<Option<Id>>,
    pub outputs: Vec<Option<Id>>,
    /// The task it belongs to, by its place in the stage's list.
    pub task: usize,
}

impl Graph {
    /// A graph of one node: it reads the operands that are not constants, and writes all results.
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
    pub fn count(&self) -> i64 {
        self.shape.iter().product()
    }

    pub fn bytes(&self) -> u64 {
        self.dtype.byte_len(self.count() as u64).expect("graphs have tensors that fit into memory")
    }
}

impl Node {
    /// The operator's attributes, with the accessors that inference has for them.
    pub fn attributes(&self) -> divi_onnx::Node<'_> {
        divi_onnx::Node { op: self.op, inputs: &[], attributes: &self.attributes, outputs: self.outputs.len() }
    }

    pub fn optional(&self, index: usize) -> Option<Id> {
        self.inputs.get(index).copied().flatten()
    }

    pub fn input(&self, index: usize) -> crate::error::Result<Id> {
        self.optional(index).ok_or_else(|| divi_onnx::Error::new(format!("operand {index} is missing")))
    }

    /// A result that somebody may read.
    pub fn result(&self, index: usize) -> Option<Id> {
        self.outputs.get(index).copied().flatten()
    }

    /// The first result.
    pub fn output(&self) -> crate::error::Result<Id> {
        self.result(0).ok_or_else(|| divi_onnx::Error::new("the first result is missing"))
    }
}

/// Row-major strides of a shape, in elements.
pub fn strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// Strides that read a tensor of `shape` as one of the larger shape that it is broadcast to.
pub fn broadcast_strides(shape: &[i64], to: &[i64]) -> Vec<i64> {
    let own = strides(shape);
    let missing = to.len() - shape.len();
    let stride = |axis: usize| match axis.checked_sub(missing) {
        Some(inner) if shape[inner] == to[axis] || shape[inner] != 1 => own[inner],
        _ => 0,
    };
    (0..to.len()).map(stride).collect()
}
