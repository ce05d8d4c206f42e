//! Finds attention: a product of queries and keys, a Softmax of the scaled and masked scores, and a product with values.
//!
//! The operators that only rearrange or scale one operand of a product, and those that only rearrange the result, are part of it, so that
//! a kernel can read and write the tensors as they are in memory.

use super::{
    graph::{Graph, NodeId, ValueId},
    role::{Anchor, Role},
};
use divi_dialect::attr;
use divi_onnx::{Dim, Op};

/// Maximum number of operators between a product and the Softmax.
const MAX_CHAIN: usize = 8;

/// Returns the operators of the attention whose product with values is `root`, in order; `None` if it is another product. `is_free` returns
/// true for operators that may be fused with `root`.
pub(super) fn ending_at(graph: &Graph<'_>, root: NodeId, is_free: &dyn Fn(NodeId) -> bool) -> Option<Vec<NodeId>> {
    let search = Search { graph, is_free };
    if !search.is_product(root) {
        return None;
    }
    let mut nodes = vec![root];
    let mut shares = graph.nodes[root].operands[0];
    let softmax = loop {
        let node = search.sole_producer(shares, &nodes)?;
        nodes.push(node);
        if graph.nodes[node].role == Role::Softmax {
            break node;
        }
        if !graph.nodes[node].is(Op::Cast) || nodes.len() > MAX_CHAIN {
            return None;
        }
        shares = graph.nodes[node].operands[0];
    };
    if !search.is_along_last_axis(softmax) {
        return None;
    }
    nodes.extend(search.scores(graph.nodes[softmax].operands[0], softmax, MAX_CHAIN)?);
    let product = *nodes.last()?;
    for operand in [graph.nodes[product].operands[0], graph.nodes[product].operands[1], graph.nodes[root].operands[1]] {
        search.add_rearrangements_before(operand, &mut nodes);
    }
    search.add_rearrangement_after(root, &mut nodes);
    nodes.sort_unstable();
    Some(nodes)
}

struct Search<'a> {
    graph: &'a Graph<'a>,
    is_free: &'a dyn Fn(NodeId) -> bool,
}

impl Search<'_> {
    /// Returns true for a product of batches of matrices, none of which is constant.
    fn is_product(&self, node: NodeId) -> bool {
        let product = &self.graph.nodes[node];
        let is_matrix = |&value: &ValueId| {
            let shape = self.graph.ty(value).and_then(|ty| ty.shape.as_ref());
            !self.graph.is_static(value) && shape.is_some_and(|shape| shape.len() >= 2)
        };
        product.role == Role::Anchor(Anchor::MatMul) && (self.is_free)(node) && product.operands.iter().all(is_matrix)
    }

    /// Returns the node that computes a value which only `readers` read, if it may be fused.
    fn sole_producer(&self, value: ValueId, readers: &[NodeId]) -> Option<NodeId> {
        let node = self.graph.producer(value).filter(|&node| (self.is_free)(node))?;
        let read = &self.graph.values[value];
        let is_sole = !read.escapes && read.readers.iter().all(|reader| readers.contains(reader));
        (is_sole && self.graph.output(node) == Some(value)).then_some(node)
    }

    fn is_along_last_axis(&self, softmax: NodeId) -> bool {
        let node = &self.graph.nodes[softmax];
        let Some(rank) = self.graph.ty(node.operands[0]).and_then(|ty| ty.shape.as_ref()).map(Vec::len) else {
            return false;
        };
        let axis = node.operation.attribute("axis").and_then(attr::as_integer).unwrap_or(-1);
        node.is(Op::Softmax) && (axis == -1 || axis == rank as i64 - 1)
    }

    /// Returns the operators that compute the scores, last to first: the last one is the product.
    fn scores(&self, value: ValueId, reader: NodeId, limit: usize) -> Option<Vec<NodeId>> {
        let node = self.sole_producer(value, &[reader])?;
        if self.is_product(node) {
            return Some(vec![node]);
        }
        let Some(Op::Mul | Op::Div | Op::Add | Op::Cast) = self.graph.nodes[node].op else { return None };
        let operands = &self.graph.nodes[node].operands;
        let is_scaled =
            |index: usize| operands.get(1 - index).is_some_and(|&other| self.graph.is_scalar_constant(other));
        let may_continue = |index: usize| match self.graph.nodes[node].op {
            Some(Op::Mul) => is_scaled(index),
            Some(Op::Div) => index == 0 && is_scaled(index),
            _ => true,
        };
        let mut candidates = (0..operands.len()).filter(|&index| may_continue(index)).map(|index| operands[index]);
        let rest = candidates.find_map(|operand| {
            let is_whole = self.graph.same_shape(operand, value) && limit > 0;
            is_whole.then(|| self.scores(operand, node, limit - 1)).flatten()
        })?;
        Some([vec![node], rest].concat())
    }

    /// Adds the operators that rearrange or scale the operand of a product.
    fn add_rearrangements_before(&self, mut value: ValueId, nodes: &mut Vec<NodeId>) {
        let mut views = vec![];
        while let Some(node) = self.sole_producer(value, &[&nodes[..], &views[..]].concat()) {
            match self.graph.nodes[node].op {
                _ if self.graph.nodes[node].role == Role::View => views.push(node),
                Some(Op::Transpose) => {
                    nodes.append(&mut views);
                    nodes.push(node);
                }
                Some(Op::Mul | Op::Div) if self.is_scaled_first(node) => {
                    nodes.append(&mut views);
                    nodes.push(node);
                }
                _ => break,
            }
            value = self.graph.nodes[node].operands[0];
        }
    }

    /// Returns true if a node multiplies its first operand by a number.
    fn is_scaled_first(&self, node: NodeId) -> bool {
        let &[first, second] = &self.graph.nodes[node].operands[..] else { return false };
        let fixed = |dims: &Vec<Dim>| dims.iter().all(|dim| matches!(dim, Dim::Known(_)));
        let is_fixed = self.graph.ty(first).and_then(|ty| ty.shape.as_ref()).is_some_and(fixed);
        let output = self.graph.output(node);
        is_fixed && self.graph.is_scalar_constant(second) && output.is_some_and(|it| self.graph.same_shape(first, it))
    }

    /// Adds a Transpose of the result.
    fn add_rearrangement_after(&self, root: NodeId, nodes: &mut Vec<NodeId>) {
        let Some(result) = self.graph.output(root) else { return };
        let value = &self.graph.values[result];
        if let (&[next], false) = (&value.readers[..], value.escapes)
            && self.graph.nodes[next].is(Op::Transpose)
            && (self.is_free)(next)
        {
            nodes.push(next);
        }
    }
}
