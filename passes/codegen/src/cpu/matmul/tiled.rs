//! Matrix multiplication of `bf16` matrices on tile registers (AMX), with sums in `f32`.
//!
//! Tiles of the left operand are read from the matrix as it is; the right operand is packed, when the bundle is loaded if it is constant.

use super::{
    super::{
        matrix::Matrices,
        pack::Packing,
        tile_block::{BLOCK, PanelPrefetch, SIDE, TileBlock},
    },
    Product,
    kernel::Access,
    product_of,
};
use crate::{
    emit::{Builder, Signature, V},
    epilogue::FusedEpilogue,
    graph::{Id, Node, Value},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};

/// Returns true if this kernel computes a MatMul or Gemm with some operands.
pub(crate) fn has_tiled_kernel(node: &Node, left: &Value, right: &Value, bias: Option<&Value>) -> bool {
    if left.count() == 0 || right.count() == 0 {
        return false;
    }
    match node.op {
        Op::Gemm => is_plain(node, bias, &right.shape),
        _ => left.shape.len() >= 2 && product_of(&left.shape, &right.shape).is_some(),
    }
}

/// Returns true if a Gemm has no factors, does not transpose its left operand, and adds one number to each column, if any.
fn is_plain(node: &Node, bias: Option<&Value>, right: &[i64]) -> bool {
    let attributes = node.attributes();
    let is_one = |name: &str| attributes.float(name).is_ok_and(|factor| factor.is_none_or(|factor| factor == 1.0));
    let columns = if attributes.flag("transB", false).unwrap_or(false) { right.first() } else { right.last() };
    let is_vector = |bias: &Value| bias.shape.last() == columns && Some(&bias.count()) == columns;
    let is_transposed = attributes.flag("transA", false).unwrap_or(true);
    !is_transposed && is_one("alpha") && bias.is_none_or(|bias| is_one("beta") && is_vector(bias))
}

/// Kernel of a product whose right operand is packed. Buffers: left, right, bias if there is one, operands of the epilogue, result.
pub(super) struct TiledKernel {
    product: Product,
    has_bias: bool,
    lanes: i64,
}

/// Position of a block of sums.
#[derive(Clone, Copy)]
struct Position {
    batch: V,
    panel: V,
    /// Number of the block of rows.
    rows: V,
}

impl TiledKernel {
    pub(super) fn new(product: Product, has_bias: bool, lanes: usize) -> Self {
        Self { product, has_bias, lanes: lanes as i64 }
    }

    fn panels(&self) -> i64 {
        (self.product.columns + BLOCK - 1) / BLOCK
    }

    fn row_blocks(&self) -> i64 {
        (self.product.rows + BLOCK - 1) / BLOCK
    }

    /// Returns the number of steps over the inner dimension.
    fn steps(&self) -> i64 {
        (self.product.inner + BLOCK - 1) / BLOCK
    }

    /// Returns the number of elements of a packed right operand.
    fn packed(&self) -> i64 {
        self.panels() * self.steps() * BLOCK * BLOCK
    }

    pub(super) fn extent(&self) -> i64 {
        self.product.batch * self.panels() * self.row_blocks()
    }

    /// Returns the minimal number of blocks per thread.
    pub(super) fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 1_000_000;
        (WORK / (BLOCK * BLOCK * self.product.inner)).max(1)
    }

    /// Returns the number of different right operands.
    fn matrices(&self) -> i64 {
        if self.product.right_is_batched { self.product.batch } else { 1 }
    }

    /// Packs the right operands, one after the other, as `[panels][steps][2 tiles][pairs of the inner dimension][columns of a tile][2]`,
    /// with zeros beyond the last row and column.
    pub(super) fn pack(&self, is_transposed: bool) -> Packing {
        let (inner, column) = if is_transposed { (2, 1) } else { (1, 2) };
        let mut shape = [self.matrices(); 3];
        shape[inner] = self.product.inner;
        shape[column] = self.product.columns;
        let mut packing = Packing::of_type(DType::BF16, &shape);
        let outer = [(0, self.matrices(), 1), (column, self.panels(), BLOCK)];
        let tiles = [(inner, self.steps(), BLOCK), (column, 2, SIDE)];
        packing.add(&[0; 3], &[&outer[..], &tiles, &[(inner, SIDE, 2), (column, SIDE, 1), (inner, 2, 1)]].concat());
        packing
    }

    /// Packs computed right operands, one for each matrix of the batch if they differ, in the order of [`Self::pack`].
    pub(super) fn pack_computed(&self, cx: &mut Lowering<'_>, right: Id) -> Id {
        let Product { inner, columns, .. } = self.product;
        pack_rows(cx, &Matrices::row_major(right, self.matrices(), inner, columns), inner, columns)
    }

    /// Returns the number of columns, rounded up to whole panels.
    pub(super) fn padded_columns(&self) -> i64 {
        self.panels() * BLOCK
    }

    pub(super) fn emit(&self, b: &Builder, signature: &Signature<'_>, fused: &FusedEpilogue, accesses: &[Access]) {
        let blocks = self.row_blocks();
        let last_rows = self.product.rows - (blocks - 1) * BLOCK;
        let last_columns = self.product.columns - (self.panels() - 1) * BLOCK;
        let (whole, last) =
            (TileBlock::of_rows(BLOCK).configuration(b), TileBlock::of_rows(last_rows).configuration(b));
        let scratch = b.alloca(BLOCK * BLOCK, b.f32());
        let remainder = (self.product.inner % BLOCK > 0).then(|| b.half_alloca(BLOCK * BLOCK));
        b.configure_tiles(if blocks > 1 { whole } else { last });
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (number, rows) = b.div_rem(number, blocks);
            let (batch, panel) = b.div_rem(number, self.panels());
            let place = Position { batch, panel, rows };
            b.specialize_last(rows, blocks, last_rows != BLOCK, |is_last| {
                let rows = if is_last { last_rows } else { BLOCK };
                if is_last && blocks > 1 {
                    b.configure_tiles(last);
                }
                self.multiply(b, signature, place, rows, scratch, remainder);
                if is_last && blocks > 1 {
                    b.configure_tiles(whole);
                }
                b.specialize_last(panel, self.panels(), last_columns != BLOCK, |is_last| {
                    let columns = if is_last { last_columns } else { BLOCK };
                    b.repeat(rows, |row| self.store(b, signature, place, row, columns, scratch, fused, accesses));
                });
            });
        });
        b.release_tiles();
    }

    /// Computes a block of sums and stores it in the scratch buffer. `remainder` is a buffer for the left operand's elements of the last
    /// step, if that is not a whole one.
    fn multiply(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        place: Position,
        rows: i64,
        scratch: V,
        remainder: Option<V>,
    ) {
        let Product { rows: all_rows, inner, left_is_batched, right_is_batched, .. } = self.product;
        let block = TileBlock::of_rows(rows);
        let of_batch = |is_batched: bool, size: i64| if is_batched { b.times(place.batch, size) } else { b.index(0) };
        let first = b.add(of_batch(left_is_batched, all_rows * inner), b.times(place.rows, BLOCK * inner));
        let packed = b.times(place.panel, self.steps() * BLOCK * BLOCK);
        let packed = b.add(of_batch(right_is_batched, self.packed()), packed);
        let whole = inner / BLOCK;
        let is_last = b.equal(place.panel, b.index(self.panels() - 1));
        let prefetch =
            PanelPrefetch::new(b, signature.buffers[1], packed, is_last, self.steps(), place.rows, self.row_blocks());
        block.clear(b);
        b.for_each(b.index(0), b.index(whole), 1, |step| {
            prefetch.iter().for_each(|prefetch| prefetch.emit(b, step, 1));
            let first = b.add(first, b.times(step, BLOCK));
            let packed = b.add(packed, b.times(step, BLOCK * BLOCK));
            let starts = [first, b.plus(first, SIDE * inner)];
            block.add(b, signature.buffers[0], starts, inner, signature.buffers[1], packed);
        });
        if let Some(remainder) = remainder {
            let mask = b.mask((inner % BLOCK) as usize);
            b.repeat(rows, |row| {
                let at = b.plus(b.add(first, b.times(row, inner)), whole * BLOCK);
                b.store_vector(b.load_masked(signature.buffers[0], at, mask), remainder, b.times(row, BLOCK));
            });
            let starts = [b.index(0), b.index(SIDE * BLOCK)];
            block.add(b, remainder, starts, BLOCK, signature.buffers[1], b.plus(packed, whole * BLOCK * BLOCK));
        }
        block.store(b, scratch, b.index(0), BLOCK);
    }

    /// Applies the epilogue to a row of the scratch buffer and stores the result.
    #[allow(clippy::too_many_arguments)]
    fn store(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        place: Position,
        row: V,
        columns: i64,
        scratch: V,
        fused: &FusedEpilogue,
        accesses: &[Access],
    ) {
        let ty = b.vector();
        let first = b.times(place.panel, BLOCK);
        let rows = b.add(b.times(place.batch, self.product.rows), b.times(place.rows, BLOCK));
        let number = b.add(rows, row);
        let corner = b.add(b.times(number, self.product.columns), first);
        let others = &signature.buffers[2 + usize::from(self.has_bias)..];
        let (operands, result) = others.split_at(accesses.len());
        for vector in 0..(columns + self.lanes - 1) / self.lanes {
            let offset = vector * self.lanes;
            let (left, at, column) = (columns - offset, b.plus(corner, offset), b.plus(first, offset));
            let mask = (left < self.lanes).then(|| b.mask(left as usize));
            let load = |pointer: V, at: V| match mask {
                Some(mask) => b.load_masked(pointer, at, mask),
                None => b.load_vector(pointer, at, ty),
            };
            let mut sum = b.load_vector(scratch, b.plus(b.times(row, BLOCK), offset), ty);
            if self.has_bias {
                sum = b.add(sum, b.load_vector(signature.buffers[2], column, ty));
            }
            let values: Vec<_> = accesses
                .iter()
                .zip(operands)
                .map(|(access, &pointer)| match access {
                    Access::Same => load(pointer, at),
                    Access::Row => load(pointer, column),
                })
                .collect();
            let value = fused.emit(b, sum, &values);
            match mask {
                Some(mask) => b.store_masked(value, result[0], at, mask),
                None => b.store_vector(value, result[0], at),
            }
        }
    }
}

/// Packs matrices of `inner` rows as right operands: `[matrix][panels][steps][2 tiles][pairs of rows][columns of a tile][2]`, with zeros
/// beyond the last row and column.
pub(crate) fn pack_rows(cx: &mut Lowering<'_>, matrices: &Matrices, inner: i64, columns: i64) -> Id {
    let (panels, steps) = ((columns + BLOCK - 1) / BLOCK, (inner + BLOCK - 1) / BLOCK);
    let blocks = matrices.count() * panels * steps;
    let packed = cx.temporary(DType::BF16, &[blocks * BLOCK * BLOCK]);
    let (last_rows, last_columns) = (inner - (steps - 1) * BLOCK, columns - (panels - 1) * BLOCK);
    cx.call(blocks, 32, &[matrices.id], &[packed], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (panel, step) = b.div_rem(number, steps);
            let (matrix, panel) = b.div_rem(panel, panels);
            let first = b.add(matrices.offset(b, matrix), b.times(step, BLOCK * matrices.row));
            let from = b.add(first, b.times(panel, BLOCK));
            let to = b.times(number, BLOCK * BLOCK);
            b.specialize_last(panel, panels, last_columns != BLOCK, |is_last| {
                let mask = (is_last && last_columns < BLOCK).then(|| b.mask(last_columns as usize));
                let row = |row: i64| {
                    let at = b.plus(from, row * matrices.row);
                    match mask {
                        Some(mask) => b.load_masked(kernel.buffers[0], at, mask),
                        None => b.load_vector(kernel.buffers[0], at, b.vector()),
                    }
                };
                b.specialize_last(step, steps, last_rows != BLOCK, |is_last| {
                    let rows = if is_last { last_rows } else { BLOCK };
                    let row = |index: i64| if index < rows { row(index) } else { b.float(0.0, b.vector()) };
                    for pair in 0..SIDE {
                        let halves = b.interleave(row(2 * pair), row(2 * pair + 1));
                        for (tile, half) in (0..).zip(halves) {
                            b.store_vector(half, kernel.buffers[1], b.plus(to, (tile * SIDE + pair) * BLOCK));
                        }
                    }
                });
            });
        });
    });
    packed
}
