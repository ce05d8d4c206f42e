//! Matrix multiplication: with weights, which are packed into panels, and of batches of matrices.

mod kernel;
mod tiled;

use super::{
    epilogue_operand::padded,
    pack::{Packing, Source},
};
use crate::{
    epilogue,
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use kernel::{Access, MatMulKernel};
use tiled::TiledKernel;

pub(super) use tiled::{has_tiled_kernel, pack_rows};

/// `[batch] rows x inner` times `[batch] inner x columns`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) batch: i64,
    pub(super) rows: i64,
    pub(super) inner: i64,
    pub(super) columns: i64,
    /// False if all matrices of the batch have the same left operand.
    pub(super) left_is_batched: bool,
    /// False if all matrices of the batch have the same right operand.
    pub(super) right_is_batched: bool,
}

/// Right operand that is packed into panels.
struct Weights {
    source: Source,
    is_transposed: bool,
}

/// Lowers a matrix multiplication with its epilogue. Returns the number of nodes; `None` if there is no fast kernel.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let Some((product, weights, bias)) = read(cx, node)? else { return Ok(None) };
    let result = node.output()?;
    let shape = cx.shape(result).to_vec();
    let accept = |cx: &Lowering<'_>, id| Access::is_possible(cx, id, &shape);
    let (more, fused, result) = epilogue::fuse_epilogue(cx, nodes, position + 1, result, &accept);

    let left = cx.dense(node.input(0)?);
    let accesses: Vec<_> = fused.operands.iter().map(|&id| Access::of(cx, id, &shape)).collect();
    let lanes = cx.lanes() as i64;
    if cx.dtype(left) == DType::BF16 {
        let work = TiledKernel::new(product, bias.is_some(), cx.lanes());
        let is_transposed = weights.is_some_and(|weights| weights.is_transposed);
        let right = match Source::of(cx, node.input(1)?) {
            Source::Computed(right) if !is_transposed && !cx.is_constant(right) => {
                let right = cx.dense(right);
                work.pack_computed(cx, right)
            }
            right => work.pack(is_transposed).apply(cx, right),
        };
        let mut reads = vec![left, right];
        reads.extend(bias.map(|bias| pack_bias(cx, bias, product.columns, work.padded_columns())));
        reads.extend(fused.operands.iter().map(|&id| cx.dense(id)));
        cx.call(work.extent(), work.grain(), &reads, &[result], |b, signature| {
            work.emit(b, &signature, &fused, &accesses);
        });
        return Ok(Some(1 + more));
    }
    let work = MatMulKernel::new(product, weights.is_some(), bias.is_some(), cx.lanes(), cx.registers());
    let right = match weights {
        Some(weights) => pack(&product, weights.is_transposed, work.vectors as i64, lanes).apply(cx, weights.source),
        None => cx.dense(node.input(1)?),
    };
    let mut reads = vec![left, right];
    reads.extend(bias.map(|bias| pack_bias(cx, bias, product.columns, (product.columns + lanes - 1) / lanes * lanes)));
    reads.extend(fused.operands.iter().map(|&id| cx.dense(id)));
    cx.call(work.extent(), work.grain(), &reads, &[result], |b, signature| {
        work.emit(b, &signature, &fused, &accesses);
    });
    Ok(Some(1 + more))
}

/// Appends zeros to a bias, up to `padded_columns` elements.
fn pack_bias(cx: &mut Lowering<'_>, bias: Source, columns: i64, padded_columns: i64) -> Id {
    match bias {
        Source::Constant(bias) => cx.constant(DType::F32, &[padded_columns], padded(bias, columns, padded_columns)),
        bias => Packing::padded(columns, padded_columns).apply(cx, bias),
    }
}

/// Returns the sizes of a matrix multiplication, the weights if they are packed, and the bias that is added to each row. `None` if there
/// is no fast kernel.
#[allow(clippy::type_complexity)]
fn read(cx: &Lowering<'_>, node: &Node) -> Result<Option<(Product, Option<Weights>, Option<Source>)>> {
    let (left, right) = (node.input(0)?, node.input(1)?);
    // Products stay in `bf16` only if the kernel on tile registers computes them.
    if !matches!(cx.dtype(left), DType::F32 | DType::BF16) || cx.count(node.output()?) == 0 || cx.count(left) == 0 {
        return Ok(None);
    }
    let (a, b) = (cx.shape(left), cx.shape(right));
    if node.op == Op::Gemm {
        let attributes = node.attributes();
        let (alpha, beta) = (attributes.float("alpha")?.unwrap_or(1.0), attributes.float("beta")?.unwrap_or(1.0));
        let is_transposed = attributes.flag("transB", false)?;
        let (&[rows, inner], &[first, second]) = (a, b) else { return Ok(None) };
        let columns = if is_transposed { first } else { second };
        let bias = match node.optional(2) {
            None => None,
            Some(id) if cx.count(id) == columns && cx.shape(id).last() == Some(&columns) => Some(Source::of(cx, id)),
            Some(_) => return Ok(None),
        };
        let source = Source::of(cx, right);
        if attributes.flag("transA", false)? || alpha != 1.0 || (beta != 1.0 && bias.is_some()) {
            return Ok(None);
        }
        let product = Product { batch: 1, rows, inner, columns, left_is_batched: false, right_is_batched: false };
        return Ok(Some((product, Some(Weights { source, is_transposed }), bias)));
    }
    let Some(product) = product_of(a, b) else { return Ok(None) };
    let is_weights = product.batch == 1 && !product.right_is_batched && cx.is_constant(right);
    let weights = is_weights.then(|| Weights { source: Source::of(cx, right), is_transposed: false });
    Ok(Some((product, weights, None)))
}

/// Returns the sizes of a product of matrices with these shapes; `None` if there is no fast kernel.
fn product_of(left: &[i64], right: &[i64]) -> Option<Product> {
    let ([outer @ .., rows, inner], [right_outer @ .., _, columns]) = (left, right) else { return None };
    let (rows, inner, columns) = (*rows, *inner, *columns);
    let count = |sizes: &[i64]| sizes.iter().product::<i64>();
    if count(right_outer) == 1 && right_outer.len() <= outer.len() {
        // All rows are multiplied with the same matrix, so the batch is folded into the rows.
        let rows = rows * count(outer);
        return Some(Product { batch: 1, rows, inner, columns, left_is_batched: false, right_is_batched: false });
    }
    let strip = |sizes: &[i64]| sizes.iter().copied().skip_while(|&size| size == 1).collect::<Vec<_>>();
    let (left_outer, right_outer) = (strip(outer), strip(right_outer));
    if left_outer != right_outer && !left_outer.is_empty() {
        return None;
    }
    let left_is_batched = !left_outer.is_empty();
    Some(Product { batch: count(&right_outer), rows, inner, columns, left_is_batched, right_is_batched: true })
}

/// Packs the right operand as `[panels][inner][columns of a panel]`, with zeros beyond the last column.
fn pack(product: &Product, is_transposed: bool, vectors: i64, lanes: i64) -> Packing {
    let (inner_axis, column_axis) = if is_transposed { (1, 0) } else { (0, 1) };
    let mut shape = [0; 2];
    shape[inner_axis] = product.inner;
    shape[column_axis] = product.columns;
    let width = vectors * lanes;
    let all = (product.columns + lanes - 1) / lanes;
    let (panels, last) = (all / vectors, all % vectors * lanes);
    let mut packing = Packing::of(&shape);
    for (first, panels, width) in [(0, panels, width), (panels * width, i64::from(last > 0), last)] {
        let mut start = [0; 2];
        start[column_axis] = first;
        packing.add(&start, &[(column_axis, panels, width), (inner_axis, product.inner, 1), (column_axis, width, 1)]);
    }
    packing
}

/// Returns true if an operand has one element per column of a result.
pub(super) fn is_column(cx: &Lowering<'_>, id: Id, shape: &[i64]) -> bool {
    let own = cx.shape(id);
    own.last() == shape.last() && own.iter().product::<i64>() == *shape.last().unwrap_or(&0) && own.len() <= shape.len()
}
