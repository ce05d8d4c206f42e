//! Fast kernels for what models spend their time with. What has none is left to the plain ones.
//!
//! Images between these kernels lie in blocks ([`layout`]); whatever follows a convolution or product of matrices element by
//! element in its task is computed with it ([`program`]).

mod concat;
mod conv;
mod image;
pub(crate) mod layout;
mod map;
mod matmul;
mod pack;
mod pool;
pub(crate) mod program;
#[cfg(test)]
mod tests;

use crate::{
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
pub(crate) use conv::planes;
use layout::Margin;
pub(crate) use map::lower as map;
use rustc_hash::{FxHashMap, FxHashSet};

/// Lowers the node at a position, and perhaps some behind it, if there are fast kernels for them; says how many nodes that are.
pub(crate) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    match nodes[position].op.as_str() {
        "Conv" => conv::lower(cx, nodes, position),
        "MatMul" | "Gemm" => matmul::lower(cx, nodes, position),
        "MaxPool" | "MaxPoolSingleOut" | "AveragePool" => pool::lower(cx, &nodes[position]),
        "GlobalAveragePool" | "ReduceMean" => pool::lower_global(cx, &nodes[position]),
        "Concat" => concat::lower(cx, &nodes[position]),
        _ => map::lower(cx, nodes, position),
    }
}

/// The values that fast kernels would read or write in blocks, if they were free to.
pub(crate) fn images(cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
    let mut images = FxHashSet::default();
    for node in nodes {
        let Some(result) = node.result(0) else { continue };
        let shape = cx.shape(result);
        let operands = || node.inputs.iter().flatten().copied().filter(|&id| !cx.is_constant(id));
        if conv::wanted_margin(cx, node).is_some() || pool::is_of_images(cx, node) {
            images.extend(node.optional(0).into_iter().chain([result]));
        } else if concat::is_of_channels(cx, node) || operands().any(|id| images.contains(&id) && cx.shape(id) == shape)
        {
            // What is computed element by element of an image is one.
            images.extend(operands().filter(|&id| cx.shape(id).len() == 4).chain([result]));
        }
    }
    images
}

/// The pixels that fast kernels read around each value.
pub(crate) fn wanted_margins(cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Margin> {
    let mut margins: FxHashMap<Id, Margin> = FxHashMap::default();
    for node in nodes {
        let (Some(input), Some(margin)) =
            (node.optional(0), conv::wanted_margin(cx, node).or_else(|| pool::wanted_margin(cx, node)))
        else {
            continue;
        };
        let known = margins.entry(input).or_insert(Margin::NONE);
        // Where two cannot agree, the first has its margin, and the other makes a copy.
        *known = known.union(&margin).unwrap_or(*known);
    }
    // What is concatenated can be written in its place if it has the same margin.
    for node in nodes.iter().rev().filter(|node| node.op == "Concat") {
        let Some(&margin) = node.result(0).and_then(|result| margins.get(&result)) else { continue };
        for &input in node.inputs.iter().flatten() {
            let known = margins.entry(input).or_insert(Margin::NONE);
            *known = known.union(&margin).unwrap_or(*known);
        }
    }
    margins
}
