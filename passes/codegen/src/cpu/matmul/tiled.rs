//! Matrix multiplication of `bf16` matrices on tile registers (AMX), with sums in `f32`.
//!
//! Tiles of the left operand are read from the matrix as it is; the right operand is packed.

use super::{
    super::{
        pack::Packing,
        tile_block::{BLOCK, SIDE, TileBlock},
    },
    Product,
    kernel::Access,
};
use crate::{
    emit::{Builder, Signature, V},
    epilogue::FusedEpilogue,
    graph::{Node, Value},
    kernels::Kernels,
};
use divi_onnx::{DType, Op};

/// Returns true if a node is a product of `bf16` values with a matrix that this kernel computes.
pub(crate) fn reads_half(node: &Node, values: &[Value], kernels: &Kernels) -> bool {
    let value = |index: usize| node.optional(index).map(|id| &values[id.0]);
    let (Some(left), Some(right)) = (value(0), value(1)) else { return false };
    if !kernels.has_tiles() || [left, right].iter().any(|value| value.dtype != DType::BF16) {
        return false;
    }
    let ([.., rows, inner], &[first, second]) = (&left.shape[..], &right.shape[..]) else { return false };
    let is_transposed = match node.op {
        Op::MatMul => false,
        Op::Gemm => node.attributes().flag("transB", false).unwrap_or(false),
        _ => return false,
    };
    let columns = if is_transposed { first } else { second };
    let is_plain = node.op == Op::MatMul || is_plain(node, value(2), columns);
    is_plain && *rows > 0 && columns > 0 && *inner > 0 && inner % BLOCK == 0 && left.constant.is_none()
}

/// Returns true if a Gemm has no factors, does not transpose its left operand, and adds one number to each column, if any.
fn is_plain(node: &Node, bias: Option<&Value>, columns: i64) -> bool {
    let attributes = node.attributes();
    let is_one = |name: &str| attributes.float(name).is_ok_and(|factor| factor.is_none_or(|factor| factor == 1.0));
    let is_vector = |bias: &Value| bias.count() == columns && bias.shape.last() == Some(&columns);
    let is_transposed = attributes.flag("transA", false).unwrap_or(true);
    !is_transposed && is_one("alpha") && bias.is_none_or(|bias| is_one("beta") && is_vector(bias))
}

/// Kernel of a product with packed weights. Buffers: left, right, bias if there is one, operands of the epilogue, result.
pub(super) struct TiledKernel {
    product: Product,
    has_bias: bool,
    lanes: i64,
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

    pub(super) fn extent(&self) -> i64 {
        self.panels() * self.row_blocks()
    }

    /// Returns the minimal number of blocks per thread.
    pub(super) fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 1_000_000;
        (WORK / (BLOCK * BLOCK * self.product.inner)).max(1)
    }

    /// Packs the right operand as `[panels][steps][2 tiles][pairs of the inner dimension][columns of a tile][2]`, with zeros beyond the last
    /// column.
    pub(super) fn pack(&self, is_transposed: bool) -> Packing {
        let (inner, column) = if is_transposed { (1, 0) } else { (0, 1) };
        let mut shape = [0; 2];
        shape[inner] = self.product.inner;
        shape[column] = self.product.columns;
        let mut packing = Packing::of_type(DType::BF16, &shape);
        let steps = self.product.inner / BLOCK;
        let tiles = [(column, self.panels(), BLOCK), (inner, steps, BLOCK), (column, 2, SIDE)];
        packing.add(&[0; 2], &[&tiles[..], &[(inner, SIDE, 2), (column, SIDE, 1), (inner, 2, 1)]].concat());
        packing
    }

    /// Returns the number of columns, rounded up to whole panels.
    pub(super) fn padded_columns(&self) -> i64 {
        self.panels() * BLOCK
    }

    pub(super) fn emit(&self, b: &Builder, signature: &Signature<'_>, fused: &FusedEpilogue, accesses: &[Access]) {
        let blocks = self.row_blocks();
        let last_rows = self.product.rows - (blocks - 1) * BLOCK;
        let last_columns = self.product.columns - (self.panels() - 1) * BLOCK;
        let (whole, last) = (block(BLOCK).configuration(b), block(last_rows).configuration(b));
        let scratch = b.alloca(BLOCK * BLOCK, b.f32());
        b.configure_tiles(if blocks > 1 { whole } else { last });
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (panel, block) = b.div_rem(number, blocks);
            b.specialize_last(block, blocks, last_rows != BLOCK, |is_last| {
                let rows = if is_last { last_rows } else { BLOCK };
                if is_last && blocks > 1 {
                    b.configure_tiles(last);
                }
                self.multiply(b, signature, (panel, block), rows, scratch);
                if is_last && blocks > 1 {
                    b.configure_tiles(whole);
                }
                b.specialize_last(panel, self.panels(), last_columns != BLOCK, |is_last| {
                    let columns = if is_last { last_columns } else { BLOCK };
                    b.repeat(rows, |row| {
                        self.store(b, signature, (panel, block), row, columns, scratch, fused, accesses)
                    });
                });
            });
        });
        b.release_tiles();
    }

    /// Computes a block of sums and stores it in the scratch buffer.
    fn multiply(&self, b: &Builder, signature: &Signature<'_>, (panel, number): (V, V), rows: i64, scratch: V) {
        let inner = self.product.inner;
        let block = block(rows);
        let first = b.times(b.times(number, BLOCK), inner);
        let weights = b.times(panel, BLOCK * inner);
        block.clear(b);
        b.for_each(b.index(0), b.index(inner / BLOCK), 1, |step| {
            let first = b.add(first, b.times(step, BLOCK));
            let packed = b.add(weights, b.times(step, BLOCK * BLOCK));
            let starts = [first, b.plus(first, SIDE * inner)];
            block.add(b, signature.buffers[0], starts, inner, signature.buffers[1], packed);
        });
        block.store(b, scratch);
    }

    /// Applies the epilogue to a row of the scratch buffer and stores the result.
    #[allow(clippy::too_many_arguments)]
    fn store(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        (panel, block): (V, V),
        row: V,
        columns: i64,
        scratch: V,
        fused: &FusedEpilogue,
        accesses: &[Access],
    ) {
        let ty = b.vector();
        let first = b.times(panel, BLOCK);
        let number = b.add(b.times(block, BLOCK), row);
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

/// Returns the block of sums of some rows.
fn block(rows: i64) -> TileBlock {
    TileBlock::new(rows.min(SIDE), (rows - SIDE).max(0))
}
