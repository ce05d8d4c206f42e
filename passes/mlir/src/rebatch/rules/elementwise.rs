//! Operators that compute each element separately.

use super::{Flow, Site};
use divi_onnx::Op;

/// Follows the batch of the first operand to all results; the other operands apply to all elements.
pub(super) fn same_as_first(site: &Site<'_>) -> Option<Flow> {
    Some(Flow::all(site, site.only_first()?, vec![]))
}

/// Follows the batch through numpy broadcasting: it is on the same axis of all operands, counted from the last.
pub(super) fn broadcast(site: &Site<'_>) -> Option<Flow> {
    let (leader, layout) = site.leader()?;
    let result = site.result_shape(0)?;
    let axis = (layout.axis + result.len()).checked_sub(site.rank(leader)?)?;
    // An operand that broadcasts to more would repeat each run in itself.
    if result[axis] != site.shape(leader)?[layout.axis] {
        return None;
    }
    let ranks: Vec<_> = (0..site.node.inputs.len()).map(|operand| site.rank(operand)).collect::<Option<_>>()?;
    let axes: Vec<_> = ranks.iter().map(|rank| (axis + rank).checked_sub(result.len())).collect();
    let (layout, changes) = site.shared(&axes, site.node.op != Op::SwiGLU)?;
    Some(Flow::all(site, layout.on(axis), changes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn one_operand() {
        Case::new("Relu").batched("float[1x3x4]", 0).gives("float[1x3x4]", 0, 1);
        Case::new("Relu").merged("float[6x4]", 0, 3).gives("float[6x4]", 0, 3);
        Case::new("Clip").batched("float[1x3]", 0).same("float[]").gives("float[1x3]", 0, 1);
        Case::new("Clip").batched("float[1x3]", 0).batched("float[1]", 0).mixes("float[1x3]");
        Case::new("CastLike").same("float[3]").batched("int64[1]", 0).gives_the_same("int64[3]");
    }

    #[test]
    fn broadcasting() {
        let add = |axis| Case::new("Add").batched("float[1x3x4]", axis);
        add(0).batched("float[1x3x4]", 0).gives("float[1x3x4]", 0, 1);
        add(0).same("float[3x4]").gives("float[1x3x4]", 0, 1);
        add(0).same("float[1x1x4]").gives("float[1x3x4]", 0, 1);
        add(0).batched("float[1x4]", 0).mixes("float[1x3x4]");
        add(0).batched("float[1x3x4]", 1).mixes("float[1x3x4]");
        add(0).same("float[5x3x4]").mixes("float[5x3x4]");
        Case::new("Add").same("float[7x1x1x1]").batched("float[1x3x4]", 0).gives("float[7x1x3x4]", 1, 1);
        Case::new("Where").same("bool[4]").batched("float[1x4]", 0).same("float[]").gives("float[1x4]", 0, 1);
    }

    #[test]
    fn operands_of_the_size_of_the_batch_are_repeated() {
        let case = |layout: Case| layout.same("float[6x4]");
        case(Case::new("Add").batched("float[6x4]", 0)).spreads(1, 0).gives("float[6x4]", 0, 1);
        // Repeating it as a whole would not align its rows with those of the runs.
        case(Case::new("Add").merged("float[6x4]", 0, 3)).mixes("float[6x4]");
        Case::new("SwiGLU").batched("float[1x4]", 0).same("float[1x4]").spreads(1, 0).gives("float[1x4]", 0, 1);
    }
}
