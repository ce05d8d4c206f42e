//! Evaluation of operators on constants: the shape arithmetic that exporters leave behind.
//!
//! Folding is for small tensors. It never evaluates an operator whose result would be large, so that
//! it costs neither time nor memory on hostile or merely big models. Whatever is wrong with a node (an index out of
//! range, a shape that does not fit) only means that nothing is folded: errors are inference's to report.

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

use crate::{DType, Dim, Node, TensorType, node::Content, tensor::count_of};

/// Results with more elements are not computed, operands with more are not decoded.
pub const MAX_ELEMENTS: usize = 65_536;

/// A partly known tensor has at most this many elements: shapes are short.
pub const MAX_PARTIAL: usize = 64;

/// Evaluates an operator with one result.
type Folder = fn(&Node<'_>) -> Option<Content>;

/// What becomes known of each result's elements, given the types that inference found. Results about which nothing is
/// known yield `None` or, at the end of the list, are left out: the list is empty, and costs no allocation, where nothing
/// becomes known.
///
/// A constant may be more precise than the inferred type (the columns of `NonZero`); it never contradicts it.
pub fn fold(node: &Node<'_>, results: &[TensorType]) -> Vec<Option<Content>> {
    if !worth_a_look(node, results) {
        return Vec::new();
    }
    if node.op == "Split" {
        return match slice::split(node, results.len()) {
            Some(parts) => parts.into_iter().zip(results).map(|(part, ty)| part.filter(|c| agrees(c, ty))).collect(),
            None => Vec::new(),
        };
    }
    let Some(ty) = results.first() else { return Vec::new() };
    match folder(node.op).and_then(|folder| folder(node)) {
        Some(content) if agrees(&content, ty) => vec![Some(content)],
        _ => Vec::new(),
    }
}

/// Whether enough is known of the operands. Nearly every node of a model stops here.
fn worth_a_look(node: &Node<'_>, results: &[TensorType]) -> bool {
    let known = |index: usize| node.optional(index).is_some_and(|value| value.content.is_some());
    if node.inputs.iter().flatten().all(|value| value.content.is_some()) {
        return true;
    }
    match node.op {
        // These look at types.
        "Shape" | "Size" | "EyeLike" => true,
        "CastLike" => known(0),
        // These can tell something of their result from some of their operands, where it is a shape.
        "Concat" | "Mul" => results.first().is_some_and(may_be_partial) && (0..node.inputs.len()).any(known),
        "Where" => results.first().is_some_and(may_be_partial) && known(0) && (known(1) || known(2)),
        _ => false,
    }
}

/// Whether a tensor may be partly known: integers that shapes are made of, in a list or alone.
fn may_be_partial(ty: &TensorType) -> bool {
    matches!(ty.dtype, DType::I64 | DType::I32) && ty.rank().is_some_and(|rank| rank <= 1)
}

fn folder(op: &str) -> Option<Folder> {
    const FAMILIES: &[fn(&str) -> Option<Folder>] = &[
        layout::folder,
        arithmetic::folder,
        gather::folder,
        slice::folder,
        generate::folder,
        cast::folder,
        compare::folder,
        reduce::folder,
        unary::folder,
        range::folder,
        scan::folder,
        scatter::folder,
    ];
    FAMILIES.iter().find_map(|family| family(op))
}

/// Whether a result fits its inferred type. A contradiction means that inference and folding understand a node
/// differently, and then neither is to be trusted with its elements.
fn agrees(content: &Content, ty: &TensorType) -> bool {
    let fits = |dims: &[i64]| match &ty.shape {
        Some(shape) => {
            shape.len() == dims.len()
                && shape.iter().zip(dims).all(|(dim, &d)| dim.known().is_none_or(|known| known == d))
        }
        None => true,
    };
    match content {
        Content::Constant(tensor) => tensor.dtype() == ty.dtype && fits(tensor.dims()),
        Content::Partial(elements) => match ty.shape.as_deref() {
            _ if !may_be_partial(ty) => false,
            Some([]) => elements.len() == 1,
            Some([Dim::Known(size)]) => elements.len() as i64 == *size,
            _ => true,
        },
    }
}

/// Elements of a shape, if folding may have that many.
fn bounded(dims: &[i64]) -> Option<usize> {
    let count = usize::try_from(count_of(dims)?).ok()?;
    (count <= MAX_ELEMENTS).then_some(count)
}

#[cfg(test)]
mod tests;
