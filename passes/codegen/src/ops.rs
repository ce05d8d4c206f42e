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
use divi_onnx::{Op, operators};
pub(crate) use elementwise::map;
pub(crate) use movement::copy_out;
pub(crate) use window::{Axis, is_below, sliding};

/// Lowers a node.
pub(crate) type Lower = fn(&mut Lowering<'_>, &Node) -> Result<()>;

/// The function that lowers an operator; `None` if there is no code for it.
pub(crate) fn find(op: Op) -> Option<Lower> {
    match op.lowering()? {
        operators::Lowering::Attention => attention::find(op),
        operators::Lowering::Conv => conv::find(op),
        operators::Lowering::Elementwise => elementwise::find(op),
        operators::Lowering::Image => image::find(op),
        operators::Lowering::Loss => loss::find(op),
        operators::Lowering::MatMul => matmul::find(op),
        operators::Lowering::Movement => movement::find(op),
        operators::Lowering::Norm => norm::find(op),
        operators::Lowering::Pool => pool::find(op),
        operators::Lowering::Quantize => quantize::find(op),
        operators::Lowering::Recurrent => recurrent::find(op),
        operators::Lowering::Reduce => reduce::find(op),
        operators::Lowering::Signal => signal::find(op),
        operators::Lowering::View => view::find(op),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table says of every operator whether there is code for it.
    #[test]
    fn every_lowering_of_the_table_has_a_function() {
        for &op in Op::all() {
            assert_eq!(find(op).is_some(), op.lowering().is_some(), "{op}");
        }
    }
}
