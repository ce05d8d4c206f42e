//! Sums of products, which must not sum over the batch.

use super::{Flow, Site};

/// Returns `Some` if operands have one number for all elements.
pub(super) fn single_elements(site: &Site<'_>, operands: &[usize]) -> Option<()> {
    let single = |operand: usize| site.node.optional(operand).is_none_or(|value| value.ty.count() == Some(1));
    operands.iter().all(|&operand| site.batch(operand).is_none() && single(operand)).then_some(())
}

/// Follows the batch through MatMul: it is the rows of the first operand, the columns of the second, or a leading axis,
/// which broadcasts.
pub(super) fn matmul(site: &Site<'_>, left: usize, right: usize) -> Option<Flow> {
    let (leader, at) = site.leader()?;
    let (left_rank, right_rank) = (site.rank(left)?, site.rank(right)?);
    let rank = site.result_shape(0)?.len();
    // The result's last axes: rows, unless the left operand is a vector, and columns, unless the right one is.
    let columns = usize::from(right_rank > 1);
    let batch_rank = rank.checked_sub(columns + usize::from(left_rank > 1))?;
    let own_rank = if leader == left { left_rank } else { right_rank };
    let own_batch_rank = own_rank.saturating_sub(2);
    let mut axes = vec![None; site.node.inputs.len()];
    let axis = if at.axis < own_batch_rank {
        let axis = at.axis + batch_rank - own_batch_rank;
        for (operand, operand_rank) in [(left, left_rank), (right, right_rank)] {
            axes[operand] = (axis + operand_rank.saturating_sub(2)).checked_sub(batch_rank);
        }
        if site.result_shape(0)?[axis] != site.shape(leader)?[at.axis] {
            return None;
        }
        axis
    } else if leader == left && left_rank > 1 && at.axis + 2 == left_rank {
        axes[left] = Some(at.axis);
        rank - 1 - columns
    } else if leader == right && right_rank > 1 && at.axis + 1 == right_rank {
        axes[right] = Some(at.axis);
        rank - 1
    } else {
        return None;
    };
    let (layout, changes) = site.shared(&axes, true)?;
    Some(Flow::all(site, layout.on(axis), changes))
}

/// Follows the batch through Gemm: it is the rows of the first operand or the columns of the second, and of the addend.
pub(super) fn gemm(site: &Site<'_>) -> Option<Flow> {
    let (leader, at) = site.leader()?;
    let transposed = |name| site.node.flag(name, false).ok();
    let (row, column) = (usize::from(transposed("transA")?), usize::from(!transposed("transB")?));
    let added_rank = site.rank(2).unwrap_or(0);
    let rows = match leader {
        0 => true,
        1 => false,
        _ => at.axis + 2 == added_rank,
    };
    let (axes, axis) = match rows {
        true => ([Some(row), None, added_rank.checked_sub(2)], 0),
        false => ([None, Some(column), added_rank.checked_sub(1)], 1),
    };
    if site.result_shape(0)?.get(axis)? != site.shape(leader)?.get(at.axis)? {
        return None;
    }
    let (layout, changes) = site.shared(&axes, true)?;
    // An operand of the product that all runs share cannot have rows for each by broadcasting.
    let product = if rows { 0 } else { 1 };
    if site.batch(product).is_none() && !changes.iter().any(|(operand, _)| *operand == product) {
        return None;
    }
    Some(Flow::all(site, layout.on(axis), changes))
}

/// Follows the batch through Einsum: its label must occur in the result. An ellipsis is not supported.
pub(super) fn einsum(site: &Site<'_>) -> Option<Flow> {
    let equation = site.node.str("equation").ok()??.replace(' ', "");
    let (terms, result) = equation.split_once("->")?;
    if equation.contains('.') {
        return None;
    }
    let terms: Vec<&str> = terms.split(',').collect();
    let (leader, at) = site.leader()?;
    let label = terms.get(leader)?.chars().nth(at.axis)?;
    // A diagonal keeps runs separate only if both axes are the batch.
    if terms.iter().chain(&[result]).any(|term| term.matches(label).count() > 1) {
        return None;
    }
    let axis = result.find(label)?;
    let axes: Vec<_> = terms.iter().map(|term| term.find(label)).collect();
    let (layout, changes) = site.shared(&axes, false)?;
    Some(Flow::all(site, layout.on(axis), changes))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn matmul_of_rows_columns_and_leading_axes() {
        let case = |left, axis, right| Case::new("MatMul").batched(left, axis).same(right);
        case("float[1x5x8]", 0, "float[8x4]").gives("float[1x5x4]", 0, 1);
        case("float[5x8]", 0, "float[8x4]").gives("float[5x4]", 0, 1);
        case("float[5x1x8]", 1, "float[8x4]").gives("float[5x1x4]", 1, 1);
        case("float[5x8]", 1, "float[8x4]").mixes("float[5x4]");
        case("float[8]", 0, "float[8x4]").mixes("float[4]");
        case("float[1x5x8]", 0, "float[8]").gives("float[1x5]", 0, 1);
        case("float[5x8]", 0, "float[8]").gives("float[5]", 0, 1);
        case("float[1x5x8]", 0, "float[7x8x4]").mixes("float[7x5x4]");
        case("float[2x5x8]", 0, "float[2x8x4]").spreads(1, 0).gives("float[2x5x4]", 0, 1);
        let columns = Case::new("MatMul").same("float[5x8]").batched("float[8x1]", 1);
        columns.gives("float[5x1]", 1, 1);
        let vector = Case::new("MatMul").same("float[8]").batched("float[1x8x4]", 0);
        vector.gives("float[1x4]", 0, 1);
    }

    #[test]
    fn matmul_of_two_batches() {
        let case = |axis| Case::new("MatMul").batched("float[1x12x5x8]", 0).batched("float[1x12x8x5]", axis);
        case(0).gives("float[1x12x5x5]", 0, 1);
        case(1).mixes("float[1x12x5x5]");
        Case::new("MatMul").batched("float[5x8]", 0).batched("float[8x5]", 1).mixes("float[5x5]");
        let stacks = Case::new("MatMul").batched("float[12x5x8]", 0).batched("float[12x8x5]", 0);
        stacks.gives("float[12x5x5]", 0, 1);
    }

    #[test]
    fn gemm_of_rows() {
        let case = || Case::new("Gemm").batched("float[1x8]", 0).same("float[4x8]").int("transB", 1);
        case().same("float[4]").gives("float[1x4]", 0, 1);
        case().none().gives("float[1x4]", 0, 1);
        case().batched("float[1x4]", 0).gives("float[1x4]", 0, 1);
        let spread = Case::new("Gemm").batched("float[5x8]", 0).same("float[8x4]").same("float[5x4]");
        spread.spreads(2, 0).gives("float[5x4]", 0, 1);
        let transposed = Case::new("Gemm").batched("float[8x1]", 1).int("transA", 1).same("float[8x4]").none();
        transposed.gives("float[1x4]", 0, 1);
        Case::new("Gemm").batched("float[8x1]", 0).int("transA", 1).same("float[8x4]").none().mixes("float[1x4]");
        let added = Case::new("Gemm").same("float[2x8]").same("float[8x4]").batched("float[2x4]", 0);
        added.spreads(0, 0).gives("float[2x4]", 0, 1);
    }

    #[test]
    fn einsum_keeps_the_label() {
        let case = |equation| Case::new("Einsum").str("equation", equation).batched("float[1x5x8]", 0);
        case("bij,jk->bik").same("float[8x4]").gives("float[1x5x4]", 0, 1);
        case("bij,bjk->ibk").batched("float[1x8x4]", 0).gives("float[5x1x4]", 1, 1);
        case("bij,bjk->ibk").same("float[1x8x4]").spreads(1, 0).gives("float[5x1x4]", 1, 1);
        case("bij,jk->ik").same("float[8x4]").mixes("float[5x4]");
        case("bij,jk").same("float[8x4]").mixes("float[1x5x4]");
        case("...ij,jk->...ik").same("float[8x4]").mixes("float[1x5x4]");
    }

    #[test]
    fn quantized_products() {
        let case = |zero| Case::new("MatMulInteger").batched("uint8[5x8]", 0).same("uint8[8x4]").same(zero);
        case("uint8[]").none().gives("int32[5x4]", 0, 1);
        case("uint8[5]").none().mixes("int32[5x4]");
    }
}
