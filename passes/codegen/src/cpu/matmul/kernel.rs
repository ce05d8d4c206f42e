//! Loop nest of a matrix multiplication around a register tile.

use super::{Product, is_column};
use crate::{
    cpu::tile_order::TileOrder,
    emit::{Builder, Signature, V},
    epilogue::FusedEpilogue,
    graph::Id,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Broadcast of an operand of the epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// None: the operand has the shape of the result.
    Same,
    /// One row for all rows of the result.
    Row,
}

impl Access {
    pub(super) fn is_possible(cx: &Lowering<'_>, id: Id, shape: &[i64]) -> bool {
        cx.is_computed_in_f32(id) && (cx.shape(id) == shape || is_column(cx, id, shape))
    }

    pub(super) fn of(cx: &Lowering<'_>, id: Id, shape: &[i64]) -> Self {
        if cx.shape(id) == shape { Self::Same } else { Self::Row }
    }
}

/// Kernel of a matrix multiplication. Buffers: left, right, bias if there is one, operands of the epilogue, result.
pub(super) struct MatMulKernel {
    product: Product,
    /// True if the right operand is packed into panels, padded to whole vectors.
    is_packed: bool,
    has_bias: bool,
    /// Rows of a tile.
    rows: i64,
    /// Vectors of columns of a tile.
    pub(super) vectors: usize,
    lanes: i64,
    /// True if the loop over panels is outside the loop over tiles of rows.
    panels_outermost: bool,
}

/// Elements of a cache line.
const LINE: i64 = 16;
/// Bytes of a panel above which prefetched data is evicted from the L2 cache before it is read.
const LARGE_PANEL: i64 = 1024 * 1024;
/// Bytes of the right operand up to which it stays in the L2 cache.
const SMALL_WEIGHTS: i64 = 300 * 1024;

impl MatMulKernel {
    pub(super) fn new(product: Product, is_packed: bool, has_bias: bool, lanes: usize, registers: usize) -> Self {
        let lanes = lanes as i64;
        let all = (product.columns + lanes - 1) / lanes;
        let (most_rows, sums) = if registers >= 32 { (8, 24) } else { (6, 12) };
        // Tiles of about equal height.
        let tiles = (product.rows + most_rows - 1) / most_rows;
        let rows = (product.rows + tiles - 1) / tiles;
        let vectors = (sums / rows).clamp(1, 8).min(all);
        let panels_outermost = product.inner * product.columns * 4 > SMALL_WEIGHTS;
        Self { product, is_packed, has_bias, rows, vectors: vectors as usize, lanes, panels_outermost }
    }

    /// Returns the number of vectors of columns.
    fn all_vectors(&self) -> i64 {
        (self.product.columns + self.lanes - 1) / self.lanes
    }

    fn panels(&self) -> i64 {
        let vectors = self.vectors as i64;
        (self.all_vectors() + vectors - 1) / vectors
    }

    fn row_tiles(&self) -> i64 {
        (self.product.rows + self.rows - 1) / self.rows
    }

    pub(super) fn extent(&self) -> i64 {
        self.product.batch * self.panels() * self.row_tiles()
    }

    /// Returns the minimal number of tiles per thread.
    pub(super) fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 200_000;
        (WORK / (self.rows * self.vectors as i64 * self.lanes * self.product.inner).max(1)).max(1)
    }

    pub(super) fn emit(&self, b: &Builder, signature: &Signature<'_>, fused: &FusedEpilogue, accesses: &[Access]) {
        let (panels, tiles) = (self.panels(), self.row_tiles());
        let order = TileOrder { panels, tiles, panels_outermost: self.panels_outermost };
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (batch, panel, tile) = order.split(b, number);
            let last_rows = self.product.rows - (tiles - 1) * self.rows;
            let last_vectors = self.all_vectors() - (panels - 1) * self.vectors as i64;
            let columns_left = self.product.columns % self.lanes;
            let is_last_special = last_vectors != self.vectors as i64 || columns_left != 0;
            b.specialize_last(tile, tiles, last_rows != self.rows, |is_last| {
                let rows = if is_last { last_rows } else { self.rows };
                b.specialize_last(panel, panels, is_last_special, |is_last| {
                    let vectors = if is_last { last_vectors } else { self.vectors as i64 };
                    let masked = if is_last { columns_left } else { 0 };
                    let place = TilePosition { batch, panel, tile, rows, vectors, masked };
                    self.tile(b, signature, fused, accesses, &place);
                });
            });
        });
    }

    fn tile(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        fused: &FusedEpilogue,
        accesses: &[Access],
        place: &TilePosition,
    ) {
        let Product { inner, columns, .. } = self.product;
        let ty = b.vector();
        let (left, right) = (signature.buffers[0], signature.buffers[1]);
        let first_row = b.times(place.tile, self.rows);
        let first_column = b.times(place.panel, self.vectors as i64 * self.lanes);
        let of_batch = |is_batched: bool, size: i64| if is_batched { b.times(place.batch, size) } else { b.index(0) };
        let a = b.add(of_batch(self.product.left_is_batched, self.product.rows * inner), b.times(first_row, inner));
        let (weights, weight_row) = if self.is_packed {
            (b.times(first_column, inner), place.vectors * self.lanes)
        } else {
            (b.add(of_batch(self.product.right_is_batched, inner * columns), first_column), columns)
        };
        let mask = (place.masked > 0).then(|| b.mask(place.masked as usize));
        let is_masked = |vector: i64| vector == place.vectors - 1;
        let start: Vec<_> = (0..place.vectors)
            .map(|vector| match self.has_bias {
                true => b.load_vector(signature.buffers[2], b.plus(first_column, vector * self.lanes), ty),
                false => b.float(0.0, ty),
            })
            .collect();
        let sums: Vec<V> = (0..place.rows).flat_map(|_| start.iter().copied()).collect();
        let step = |k: V, weights: V, sums: &mut [V]| {
            let vectors: Vec<_> = (0..place.vectors)
                .map(|vector| {
                    let at = b.plus(weights, vector * self.lanes);
                    match mask.filter(|_| !self.is_packed && is_masked(vector)) {
                        Some(mask) => b.load_masked(right, at, mask),
                        None => b.load_vector(right, at, ty),
                    }
                })
                .collect();
            for row in 0..place.rows {
                let element = b.broadcast(b.load(left, DType::F32, b.plus(k, row * inner)), ty);
                for (vector, &weight) in vectors.iter().enumerate() {
                    let sum = &mut sums[row as usize * place.vectors as usize + vector];
                    *sum = b.fma(element, weight, *sum);
                }
            }
        };
        const UNROLL: i64 = 4;
        let whole = inner / UNROLL * UNROLL;
        // Each tile of rows prefetches its share of the next panel.
        let is_read_again = self.row_tiles() > 1 && inner * weight_row * 4 <= LARGE_PANEL;
        let next = (self.is_packed && self.panels_outermost && is_read_again).then(|| {
            let lines = (UNROLL * weight_row / LINE + self.row_tiles() - 1) / self.row_tiles();
            let share = whole / UNROLL * lines * LINE;
            (b.add(b.plus(weights, inner * weight_row), b.times(place.tile, share)), lines)
        });
        let mut sums = b.for_loop_carried(b.index(0), b.index(whole), UNROLL, &sums, |k, sums| {
            let mut sums = sums.to_vec();
            if let Some((next, lines)) = next {
                let (step, _) = b.div_rem(k, UNROLL);
                let line = b.add(next, b.times(step, lines * LINE));
                (0..lines).for_each(|i| b.prefetch(right, b.plus(line, i * LINE)));
            }
            let (a, weights) = (b.add(a, k), b.add(weights, b.times(k, weight_row)));
            for i in 0..UNROLL {
                step(b.plus(a, i), b.plus(weights, i * weight_row), &mut sums);
            }
            sums
        });
        for k in whole..inner {
            step(b.plus(a, k), b.plus(weights, k * weight_row), &mut sums);
        }

        let others = &signature.buffers[2 + usize::from(self.has_bias)..];
        let (operands, result) = others.split_at(accesses.len());
        let rows_before = b.add(b.times(place.batch, self.product.rows), first_row);
        let corner = b.add(b.times(rows_before, columns), first_column);
        for row in 0..place.rows {
            for vector in 0..place.vectors {
                let at = b.plus(corner, row * columns + vector * self.lanes);
                let mask = mask.filter(|_| is_masked(vector));
                let load = |pointer: V, at: V| match mask {
                    Some(mask) => b.load_masked(pointer, at, mask),
                    None => b.load_vector(pointer, at, ty),
                };
                let values: Vec<_> = accesses
                    .iter()
                    .zip(operands)
                    .map(|(access, &pointer)| match access {
                        Access::Same => load(pointer, at),
                        Access::Row => load(pointer, b.plus(first_column, vector * self.lanes)),
                    })
                    .collect();
                let value = fused.emit(b, sums[(row * place.vectors + vector) as usize], &values);
                match mask {
                    Some(mask) => b.store_masked(value, result[0], at, mask),
                    None if columns % self.lanes == 0 => b.store_aligned(value, result[0], at),
                    None => b.store_vector(value, result[0], at),
                }
            }
        }
    }
}

/// Position and size of a tile.
struct TilePosition {
    batch: V,
    panel: V,
    tile: V,
    rows: i64,
    vectors: i64,
    /// Columns of the last vector if it is partial, else 0.
    masked: i64,
}
