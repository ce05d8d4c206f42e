//! Constant folding, mainly of the shape arithmetic that exporters emit.
//!
//! Operators with large results are not evaluated, which bounds time and memory on large or malicious models. An invalid
//! node (an index out of range, mismatched shapes) is not folded; inference reports the error.

mod arithmetic;
mod array;
pub mod batch_norm;
mod cast;
mod compare;
mod gather;
mod generate;
mod layout;
mod partial;
mod range;
mod reduce;
mod scan;
mod scatter;
mod slice;
mod source;
#[cfg(test)]
mod testing;
mod unary;
mod walk;

use crate::{DType, Dim, Node, Op, TensorType, node::KnownElements, operators::FoldRule, tensor::count_of};

/// Maximum number of elements of results that are computed and operands that are decoded.
pub const MAX_ELEMENTS: usize = 65_536;

/// Maximum number of elements of a partly known tensor.
pub const MAX_PARTIAL: usize = 64;

/// Function that evaluates an operator.
enum Folder {
    /// For operators with one result.
    Single(fn(&Node<'_>) -> Option<KnownElements>),
    /// For operators with several results, whose number is the second argument.
    Several(fn(&Node<'_>, usize) -> Option<Vec<Option<KnownElements>>>),
}

/// Returns the known elements of each result, given the inferred types. Results without known elements are `None`, or
/// omitted at the end of the list: if nothing is known, the list is empty and is not allocated.
///
/// A constant may be more precise than the inferred type (the columns of `NonZero`) but never contradicts it.
pub fn fold(node: &Node<'_>, results: &[TensorType]) -> Vec<Option<KnownElements>> {
    if !may_fold(node, results) {
        return Vec::new();
    }
    match node.op.fold_rule().map(function) {
        Some(Folder::Several(folder)) => match folder(node, results.len()) {
            Some(parts) => parts.into_iter().zip(results).map(|(part, ty)| part.filter(|c| agrees(c, ty))).collect(),
            None => Vec::new(),
        },
        Some(Folder::Single(folder)) => match results.first().map(|ty| (folder(node), ty)) {
            Some((Some(content), ty)) if agrees(&content, ty) => vec![Some(content)],
            _ => Vec::new(),
        },
        None => Vec::new(),
    }
}

/// Returns true if enough elements of the operands are known. Rejects most nodes of a model early.
fn may_fold(node: &Node<'_>, results: &[TensorType]) -> bool {
    let known = |index: usize| node.optional(index).is_some_and(|value| value.content.is_some());
    if node.inputs.iter().flatten().all(|value| value.content.is_some()) {
        return true;
    }
    match node.op {
        // Depend only on the operand's type.
        Op::Shape | Op::Size | Op::EyeLike => true,
        Op::CastLike => known(0),
        // If the result may be a shape, some known operands determine some of its elements.
        Op::Concat | Op::Mul => results.first().is_some_and(may_be_partial) && (0..node.inputs.len()).any(known),
        Op::Where => results.first().is_some_and(may_be_partial) && known(0) && (known(1) || known(2)),
        _ => false,
    }
}

/// Returns true if a tensor may be partly known: a scalar or a list of the integer types of shapes.
fn may_be_partial(ty: &TensorType) -> bool {
    matches!(ty.dtype, DType::I64 | DType::I32) && ty.rank().is_some_and(|rank| rank <= 1)
}

/// Returns the function of a rule.
fn function(rule: FoldRule) -> Folder {
    match rule {
        FoldRule::Concat => Folder::Single(layout::concat),
        FoldRule::Expand => Folder::Single(layout::expand),
        FoldRule::Flatten => Folder::Single(layout::flatten),
        FoldRule::Identity => Folder::Single(layout::identity),
        FoldRule::Reshape => Folder::Single(layout::reshape),
        FoldRule::Squeeze => Folder::Single(layout::squeeze),
        FoldRule::Tile => Folder::Single(layout::tile),
        FoldRule::Transpose => Folder::Single(layout::transpose),
        FoldRule::Unsqueeze => Folder::Single(layout::unsqueeze),
        FoldRule::Binary => Folder::Single(arithmetic::binary),
        FoldRule::Variadic => Folder::Single(arithmetic::variadic),
        FoldRule::Logical => Folder::Single(arithmetic::logical),
        FoldRule::BitShift => Folder::Single(arithmetic::bit_shift),
        FoldRule::Clip => Folder::Single(arithmetic::clip),
        FoldRule::Mean => Folder::Single(arithmetic::mean),
        FoldRule::Mod => Folder::Single(arithmetic::modulo),
        FoldRule::Pow => Folder::Single(arithmetic::pow),
        FoldRule::Gather => Folder::Single(gather::gather),
        FoldRule::GatherElements => Folder::Single(gather::gather_elements),
        FoldRule::GatherND => Folder::Single(gather::gather_nd),
        FoldRule::Pad => Folder::Single(slice::pad),
        FoldRule::Slice => Folder::Single(slice::slice),
        FoldRule::Trilu => Folder::Single(slice::trilu),
        FoldRule::Split => Folder::Several(slice::split),
        FoldRule::Constant => Folder::Single(generate::constant_op),
        FoldRule::ConstantOfShape => Folder::Single(generate::constant_of_shape),
        FoldRule::EyeLike => Folder::Single(generate::eye_like),
        FoldRule::NonZero => Folder::Single(generate::non_zero),
        FoldRule::OneHot => Folder::Single(generate::one_hot),
        FoldRule::Shape => Folder::Single(generate::shape),
        FoldRule::Size => Folder::Single(generate::size),
        FoldRule::Cast => Folder::Single(|node| cast::cast(node, node.dtype_attr("to").ok()??)),
        FoldRule::CastLike => Folder::Single(|node| cast::cast(node, node.dtype(1).ok()?)),
        FoldRule::Compare => Folder::Single(compare::compare),
        FoldRule::Where => Folder::Single(compare::where_),
        FoldRule::ArgExtremum => Folder::Single(reduce::arg),
        FoldRule::Reduce => Folder::Single(reduce::reduce),
        FoldRule::IsInf => Folder::Single(unary::is_inf),
        FoldRule::IsNaN => Folder::Single(unary::is_nan),
        FoldRule::Not => Folder::Single(unary::not),
        FoldRule::Unary => Folder::Single(unary::unary),
        FoldRule::ScatterElements => Folder::Single(scatter::scatter_elements),
        FoldRule::ScatterND => Folder::Single(scatter::scatter_nd),
        FoldRule::Range => Folder::Single(range::range),
        FoldRule::CumSum => Folder::Single(scan::cum_sum),
    }
}

/// Returns true if a result is consistent with its inferred type. A contradiction means that inference and folding interpret a
/// node differently; the folded elements are then discarded.
fn agrees(content: &KnownElements, ty: &TensorType) -> bool {
    let fits = |dims: &[i64]| match &ty.shape {
        Some(shape) => {
            shape.len() == dims.len()
                && shape.iter().zip(dims).all(|(dim, &d)| dim.known().is_none_or(|known| known == d))
        }
        None => true,
    };
    match content {
        KnownElements::Constant(tensor) => tensor.dtype() == ty.dtype && fits(tensor.dims()),
        KnownElements::Partial(elements) => match ty.shape.as_deref() {
            _ if !may_be_partial(ty) => false,
            Some([]) => elements.len() == 1,
            Some([Dim::Known(size)]) => elements.len() as i64 == *size,
            _ => true,
        },
    }
}

/// Returns the number of elements of a shape if it is at most [`MAX_ELEMENTS`].
fn bounded(dims: &[i64]) -> Option<usize> {
    let count = usize::try_from(count_of(dims)?).ok()?;
    (count <= MAX_ELEMENTS).then_some(count)
}

#[cfg(test)]
mod tests;
