//! Functions of one element.

use super::{Lower, map};
use crate::{
    emit::{Builder, V},
    error::Result,
    graph::Node,
    lowering::Lowering,
};

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Relu" => |cx, node| unary(cx, node, |b, x| b.max(x, b.zero(b.type_of(x)), false)),
        "Neg" => |cx, node| unary(cx, node, |b, x| b.neg(x)),
        "Sqrt" => |cx, node| unary(cx, node, |b, x| b.sqrt(x)),
        "Exp" => |cx, node| unary(cx, node, |b, x| b.exp(x)),
        "Tanh" => |cx, node| unary(cx, node, |b, x| b.tanh(x)),
        "Erf" => |cx, node| unary(cx, node, |b, x| b.erf(x)),
        "Sigmoid" => |cx, node| unary(cx, node, |b, x| b.sigmoid(x)),
        "Not" => |cx, node| unary(cx, node, |b, x| b.not(x)),
        _ => return None,
    })
}

fn unary(cx: &mut Lowering<'_>, node: &Node, compute: fn(&Builder, V) -> V) -> Result<()> {
    map(cx, &[node.input(0)?], node.output()?, |b, values| compute(b, values[0]));
    Ok(())
}
