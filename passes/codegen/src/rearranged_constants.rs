//! Constants that only rearrange, round or widen the elements of another constant: they need no kernel, at build time or at load.

use crate::{
    error::Result,
    graph::{Constant, Node, Value},
    half_precision::{self, is_half},
};
use divi_onnx::{DType, Op, Tensor};
use divi_runtime::prepare::{Expression, Loop, Pack};

/// Returns true if [`rearranged`] supports an operator with constants of these types as operand and result.
pub(crate) fn is_rearrangement(op: Op, from: DType, to: DType) -> bool {
    op.is_view()
        || op == Op::Transpose && from == DType::F32
        || op == Op::Cast && (from == DType::F32 && is_half(to) || is_half(from) && to == DType::F32)
}

/// Returns the result of a node on a constant; `None` if the node does more than rearrange, round or widen its elements.
pub(crate) fn rearranged(node: &Node, input: &Value, result: &Value) -> Result<Option<Constant>> {
    let Some(constant) = &input.constant else { return Ok(None) };
    match node.op {
        op if op.is_view() => {
            let same = |tensor: &Tensor| Tensor::new(result.dtype, result.shape.clone(), tensor.bytes().clone());
            let tensor = constant.tensor.as_ref().and_then(same);
            Ok(Some(Constant { source: constant.source.clone(), tensor }))
        }
        Op::Cast if is_rearrangement(node.op, input.dtype, result.dtype) => {
            let tensor = constant.tensor.as_ref().and_then(Tensor::floats);
            let tensor = tensor.and_then(|floats| Tensor::from_floats(result.dtype, result.shape.clone(), &floats));
            let source = match half_precision::element(result.dtype) {
                Some(element) => Some(Expression::Narrow { source: Box::new(constant.source.clone()), element }),
                None => half_precision::widened(&constant.source, input.dtype),
            };
            Ok(source.map(|source| Constant { source, tensor }))
        }
        Op::Transpose if input.dtype == DType::F32 && !input.shape.contains(&0) => {
            let rank = input.shape.len();
            let order: Vec<usize> = match node.attributes().ints("perm")? {
                Some(order) => order.iter().map(|&axis| axis as usize).collect(),
                None => (0..rank).rev().collect(),
            };
            if order.iter().any(|&axis| axis >= rank) {
                return Ok(None);
            }
            let shape: Vec<u64> = input.shape.iter().map(|&size| size as u64).collect();
            let loops = order.iter().map(|&axis| Loop { axis, count: shape[axis], step: 1 }).collect();
            let source = Box::new(constant.source.clone());
            let pack = Pack { source, start: vec![0; rank], end: shape.clone(), shape, loops };
            Ok(Some(Constant { source: Expression::Pack(pack), tensor: None }))
        }
        _ => Ok(None),
    }
}
