//! Code for operators, a file a family. Each operator has a function that lowers one application of it to calls.

mod attention;
pub(crate) mod blocks;
#[cfg(test)]
mod case;
mod conv;
mod elementwise;
mod image;
mod loss;
mod matmul;
mod movement;
mod norm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod signal;
mod view;
mod window;

use crate::{error::Result, graph::Node, lowering::Lowering};
pub(crate) use elementwise::map;
pub(crate) use movement::copy_out;
pub(crate) use window::{Axis, is_below, sliding};

/// Lowers a node.
pub(crate) type Lower = fn(&mut Lowering<'_>, &Node) -> Result<()>;

/// Every operator that there is code for, by families.
const FAMILIES: &[fn(&str) -> Option<Lower>] = &[
    elementwise::find,
    reduce::find,
    movement::find,
    image::find,
    view::find,
    conv::find,
    pool::find,
    matmul::find,
    norm::find,
    quantize::find,
    recurrent::find,
    attention::find,
    loss::find,
    signal::find,
];

/// The function that lowers an operator.
pub(crate) fn find(op: &str) -> Option<Lower> {
    FAMILIES.iter().find_map(|family| family(op))
}
