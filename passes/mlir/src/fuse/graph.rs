//! Def-use graph of a block, for fusion.

use super::role::{Role, role_of};
use crate::ir::ONNX_CONSTANT;
use divi_dialect::{Block, Operation, attr, node::inference_value, op};
use divi_onnx::{Op, Tensor, TensorType, tensor::count_of};
use melior::ir::Attribute;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

pub(super) type NodeId = usize;
pub(super) type ValueId = usize;

/// Definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Defined before the block: an argument, or a value of another block.
    Outside,
    /// An `onnx.Constant`.
    Constant,
    /// An `onnx.NoValue`: an optional operand that is absent.
    Absent,
    Node(NodeId),
}

/// Value of the graph.
pub(super) struct Value<'m> {
    pub(super) handle: divi_dialect::Value<'m>,
    /// `None` if it is not a tensor.
    pub(super) ty: Option<TensorType>,
    pub(super) source: Source,
    /// Nodes that read it, each once, in order.
    pub(super) readers: Vec<NodeId>,
    /// True if another block reads it.
    pub(super) escapes: bool,
    /// Cache of [`Graph::number`].
    number: OnceCell<Option<f64>>,
}

/// Existing placement of an operation, which members of a cluster must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement<'m> {
    /// `divi.pin`
    pub(super) pin: Option<Attribute<'m>>,
    /// `divi.device`
    pub(super) device: Option<Attribute<'m>>,
}

impl<'m> Placement<'m> {
    pub(super) const NONE: Self = Self { pin: None, device: None };

    fn of(operation: Operation<'m>) -> Self {
        Self { pin: operation.attribute(attr::PIN.name()), device: operation.attribute(attr::DEVICE.name()) }
    }
}

/// Operator of the graph.
pub(super) struct Node<'m> {
    pub(super) operation: Operation<'m>,
    /// `None` for other dialects and for operators that the table does not have.
    pub(super) op: Option<Op>,
    /// Including values that its regions read.
    pub(super) operands: Vec<ValueId>,
    pub(super) results: Vec<ValueId>,
    pub(super) role: Role,
    pub(super) placement: Placement<'m>,
}

impl Node<'_> {
    pub(super) fn is(&self, op: Op) -> bool {
        self.op == Some(op)
    }

    /// Returns true for a cluster of views, which takes no time.
    pub(super) fn is_view_cluster(&self) -> bool {
        self.operation.name() == op::CLUSTER && self.operation.get(attr::KIND) == Some("view")
    }
}

/// Operators of a block in order, without constants and markers of absent operands.
pub(super) struct Graph<'m> {
    pub(super) nodes: Vec<Node<'m>>,
    pub(super) values: Vec<Value<'m>>,
}

impl<'m> Graph<'m> {
    pub(super) fn of(block: Block<'m>) -> Self {
        let mut builder = Builder {
            graph: Self { nodes: vec![], values: vec![] },
            ids: FxHashMap::default(),
            nodes: FxHashMap::default(),
            in_order: true,
        };
        for operation in block.operations() {
            builder.operation(operation);
        }
        builder.readers();
        let Builder { mut graph, in_order, .. } = builder;
        if in_order {
            for node in 0..graph.nodes.len() {
                graph.nodes[node].role = role_of(&graph, node);
            }
        }
        graph
    }

    pub(super) fn ty(&self, value: ValueId) -> Option<&TensorType> {
        self.values[value].ty.as_ref()
    }

    pub(super) fn is_constant(&self, value: ValueId) -> bool {
        self.values[value].source == Source::Constant
    }

    pub(super) fn is_absent(&self, value: ValueId) -> bool {
        self.values[value].source == Source::Absent
    }

    /// Returns true for constants and absent operands.
    pub(super) fn is_static(&self, value: ValueId) -> bool {
        matches!(self.values[value].source, Source::Constant | Source::Absent)
    }

    pub(super) fn producer(&self, value: ValueId) -> Option<NodeId> {
        match self.values[value].source {
            Source::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the operands of a node that are computed or come from outside.
    pub(super) fn data(&self, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
        self.nodes[node].operands.iter().copied().filter(|&operand| !self.is_static(operand))
    }

    /// Returns true if the types of two values have the same known shape.
    pub(super) fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        let shape = |value| self.ty(value).and_then(|ty| ty.shape.as_ref());
        shape(a).is_some() && shape(a) == shape(b)
    }

    pub(super) fn same_type(&self, a: ValueId, b: ValueId) -> bool {
        self.same_shape(a, b) && self.values[a].handle.r#type() == self.values[b].handle.r#type()
    }

    /// Returns true for a constant of one element.
    pub(super) fn is_scalar_constant(&self, value: ValueId) -> bool {
        let count = self.ty(value).and_then(TensorType::static_shape).and_then(|shape| count_of(&shape));
        self.is_constant(value) && count == Some(1)
    }

    /// Returns the element of a constant of one element.
    pub(super) fn number(&self, value: ValueId) -> Option<f64> {
        *self.values[value].number.get_or_init(|| {
            let tensor = self.is_scalar_constant(value).then(|| self.constant(value))??;
            let floats = tensor.floats().or_else(|| Some(tensor.ints()?.into_iter().map(|int| int as f64).collect()));
            floats?.first().copied()
        })
    }

    /// Returns the elements of a small constant.
    pub(super) fn constant(&self, value: ValueId) -> Option<Tensor> {
        if self.is_constant(value) { inference_value(self.values[value].handle)?.tensor().cloned() } else { None }
    }

    /// Returns the only present result of a node; `None` if there are several.
    pub(super) fn output(&self, node: NodeId) -> Option<ValueId> {
        let present = |&&value: &&ValueId| !self.values[value].handle.is_none();
        let mut results = self.nodes[node].results.iter().filter(present);
        let first = *results.next()?;
        results.next().is_none().then_some(first)
    }
}

struct Builder<'m> {
    graph: Graph<'m>,
    ids: FxHashMap<divi_dialect::Value<'m>, ValueId>,
    nodes: FxHashMap<Operation<'m>, NodeId>,
    /// False if a value is read before it is computed. That is possible in unreachable code, which is not changed.
    in_order: bool,
}

impl<'m> Builder<'m> {
    fn value(&mut self, handle: divi_dialect::Value<'m>, source: Source) -> ValueId {
        *self.ids.entry(handle).or_insert_with(|| {
            let (ty, number) = (handle.tensor_type(), OnceCell::new());
            self.graph.values.push(Value { handle, ty, source, readers: vec![], escapes: false, number });
            self.graph.values.len() - 1
        })
    }

    fn operation(&mut self, operation: Operation<'m>) {
        let name = operation.name();
        let source = match name {
            ONNX_CONSTANT => Source::Constant,
            "onnx.NoValue" => Source::Absent,
            _ if operation.has(attr::CONSTANT_BYTES) => Source::Constant,
            _ => Source::Node(self.graph.nodes.len()),
        };
        let results = operation.results();
        self.in_order &= results.iter().all(|result| !self.ids.contains_key(result));
        let results: Vec<_> = results.into_iter().map(|result| self.value(result, source)).collect();
        if !matches!(source, Source::Node(_)) {
            return;
        }
        // An operand that no earlier operation of this block defines comes from outside.
        let operands = operation.operands().into_iter().map(|operand| self.value(operand, Source::Outside)).collect();
        self.nodes.insert(operation, self.graph.nodes.len());
        self.graph.nodes.push(Node {
            operation,
            op: Op::from_operation(name),
            operands,
            results,
            role: Role::Opaque,
            placement: Placement::of(operation),
        });
    }

    /// Finds the readers of all results, including those in regions.
    fn readers(&mut self) {
        for value in 0..self.graph.values.len() {
            if !matches!(self.graph.values[value].source, Source::Node(_)) {
                continue;
            }
            for (user, _) in self.graph.values[value].handle.uses() {
                match self.in_block(user) {
                    Some((node, nested)) => {
                        self.graph.values[value].readers.push(node);
                        if nested {
                            self.graph.nodes[node].operands.push(value);
                        }
                    }
                    None => self.graph.values[value].escapes = true,
                }
            }
            let readers = &mut self.graph.values[value].readers;
            readers.sort_unstable();
            readers.dedup();
        }
    }

    /// Returns the operation of this block that is or contains an operation, and true in the latter case; `None` if it
    /// is elsewhere.
    fn in_block(&self, operation: Operation<'m>) -> Option<(NodeId, bool)> {
        let mut nested = false;
        let mut next = Some(operation);
        while let Some(operation) = next {
            if let Some(&node) = self.nodes.get(&operation) {
                return Some((node, nested));
            }
            nested = true;
            next = operation.parent();
        }
        None
    }
}
