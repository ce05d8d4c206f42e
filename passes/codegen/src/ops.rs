//! Generic lowerings of operators, one module per family. Each operator has a function that lowers a node to calls of kernels.

mod attention;
pub(crate) mod blocks;
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
#[cfg(test)]
mod test_operator;
mod view;
mod window;

use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::{Op, operators};
pub(crate) use elementwise::{in_own_type, map};
pub(crate) use movement::copy_to_output;
pub(crate) use window::{Axis, is_in_range, sliding};

/// Lowers a node.
pub(crate) type Lower = fn(&mut Lowering<'_>, &Node) -> Result<()>;

/// Returns the function that lowers an operator; `None` if the operator is not supported.
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

    /// The operator table and the lowerings agree on the supported operators.
    #[test]
    fn every_lowering_of_the_table_has_a_function() {
        for &op in Op::all() {
            assert_eq!(find(op).is_some(), op.lowering().is_some(), "{op}");
        }
    }
}
