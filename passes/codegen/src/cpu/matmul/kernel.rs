//! Loop nest of a matrix multiplication around a register tile.

use super::{Product, is_column};
use crate::{
    cpu::tile_order::TileOrder,
    emit::{Builder, Mask, Signature, V},
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
    /// Part of the inner dimension after which a panel's next tile is computed, if a whole panel exceeds the L2 cache. Sums of
    /// several tiles are kept in memory meanwhile.
    depth: Option<i64>,
}

/// Elements of a cache line.
const LINE: i64 = 16;
/// Bytes of a panel above which prefetched data is evicted from the L2 cache before it is read.
const LARGE_PANEL: i64 = 1024 * 1024;
/// Bytes of the right operand up to which it stays in the L2 cache.
const SMALL_WEIGHTS: i64 = 300 * 1024;
/// Bytes of a panel above which it is read in parts: the L2 cache also holds the tile's rows of the left operand.
const DEEP_PANEL: i64 = 400 * 1024;
/// Bytes of a part of a panel.
const PART: i64 = 192 * 1024;
/// Most tiles of rows whose sums are kept in memory.
const MOST_TILES: i64 = 32;
/// Positions of the iteration space, so that they occupy all threads about equally.
const FEWEST_POSITIONS: i64 = 32;
/// Steps of the inner loop that are unrolled.
const UNROLL: i64 = 4;

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
        let row_bytes = vectors * lanes * 4;
        let is_deep = is_packed && panels_outermost && tiles > 1 && product.inner * row_bytes > DEEP_PANEL;
        let depth = is_deep.then_some(PART / row_bytes / UNROLL * UNROLL);
        Self { product, is_packed, has_bias, rows, vectors: vectors as usize, lanes, panels_outermost, depth }
    }

    /// Returns the number of positions of the iteration space along the rows.
    fn row_positions(&self) -> i64 {
        match self.depth {
            None => self.row_tiles(),
            Some(_) => {
                let least = (self.row_tiles() + MOST_TILES - 1) / MOST_TILES;
                least.max((FEWEST_POSITIONS / self.panels()).min(self.row_tiles() / 4))
            }
        }
    }

    /// Returns the number of tiles of rows that a position stands for.
    fn tiles_at_once(&self) -> i64 {
        (self.row_tiles() + self.row_positions() - 1) / self.row_positions()
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
        self.product.batch * self.panels() * self.row_positions()
    }

    /// Returns the minimal number of tiles per thread.
    pub(super) fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 200_000;
        let tile = self.rows * self.vectors as i64 * self.lanes * self.product.inner;
        (WORK / (tile * self.tiles_at_once()).max(1)).max(1)
    }

    pub(super) fn emit(&self, b: &Builder, signature: &Signature<'_>, fused: &FusedEpilogue, accesses: &[Access]) {
        let (panels, positions) = (self.panels(), self.row_positions());
        let order = TileOrder { panels, tiles: positions, panels_outermost: self.panels_outermost };
        let tile = TileCode { kernel: self, b, signature, fused, accesses };
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (batch, panel, position) = order.split(b, number);
            match self.depth {
                None => self.for_tile(b, panel, position, |rows, vectors, masked| {
                    tile.whole(&TilePosition { batch, panel, tile: position, rows, vectors, masked });
                }),
                Some(depth) => self.in_parts(&tile, [batch, panel, position], depth),
            }
        });
    }

    /// Emits `code` for the rows, vectors and columns of the last vector (0 if they are all) of a tile.
    fn for_tile(&self, b: &Builder, panel: V, tile: V, code: impl Fn(i64, i64, i64)) {
        let (panels, tiles) = (self.panels(), self.row_tiles());
        let last_rows = self.product.rows - (tiles - 1) * self.rows;
        let last_vectors = self.all_vectors() - (panels - 1) * self.vectors as i64;
        let columns_left = self.product.columns % self.lanes;
        let is_last_special = last_vectors != self.vectors as i64 || columns_left != 0;
        b.specialize_last(tile, tiles, last_rows != self.rows, |is_last| {
            let rows = if is_last { last_rows } else { self.rows };
            b.specialize_last(panel, panels, is_last_special, |is_last| {
                if is_last { code(rows, last_vectors, columns_left) } else { code(rows, self.vectors as i64, 0) }
            });
        });
    }

    /// Emits several tiles of rows, one part of the inner dimension after the other.
    fn in_parts(&self, code: &TileCode<'_>, [batch, panel, position]: [V; 3], depth: i64) {
        let (b, at_once, tiles) = (code.b, self.tiles_at_once(), self.row_tiles());
        let size = self.rows * self.vectors as i64 * self.lanes;
        let memory = b.alloca(at_once * size, b.f32());
        let first = b.times(position, at_once);
        let end = b.min(b.plus(first, at_once), b.index(tiles), false);
        let for_tiles = |emit: &dyn Fn(&TilePosition, V)| {
            b.for_each(first, end, 1, |tile| {
                let sums = b.times(b.sub(tile, first), size);
                self.for_tile(b, panel, tile, |rows, vectors, masked| {
                    emit(&TilePosition { batch, panel, tile, rows, vectors, masked }, sums);
                });
            });
        };
        let place = |sums: V, i: usize| b.plus(sums, i as i64 * self.lanes);
        let load = |position: &TilePosition, sums: V| -> Vec<V> {
            let count = (position.rows * position.vectors) as usize;
            (0..count).map(|i| b.load_vector(memory, place(sums, i), b.vector())).collect()
        };
        let store = |values: &[V], sums: V| {
            values.iter().enumerate().for_each(|(i, &value)| b.store_vector(value, memory, place(sums, i)));
        };
        for_tiles(&|position, sums| store(&code.start(position), sums));
        let whole = self.product.inner / UNROLL * UNROLL;
        b.for_each(b.index(0), b.index(whole), depth, |from| {
            let to = b.min(b.plus(from, depth), b.index(whole), false);
            for_tiles(&|position, sums| {
                let operands = code.operands(position);
                store(&code.multiply(position, &operands, [from, to], &load(position, sums), None), sums);
            });
        });
        for_tiles(&|position, sums| {
            let operands = code.operands(position);
            let mut values = load(position, sums);
            (whole..self.product.inner).for_each(|k| code.step(position, &operands, k, &mut values));
            code.finish(position, &values);
        });
    }
}

/// Offsets of a tile's operands.
struct Operands {
    left: V,
    weights: V,
    /// Elements between rows of the right operand.
    weight_row: i64,
}

/// Lines of the next panel that one unrolled step prefetches.
struct Prefetch {
    start: V,
    lines: i64,
}

/// Emitter of the code of tiles.
struct TileCode<'a> {
    kernel: &'a MatMulKernel,
    b: &'a Builder,
    signature: &'a Signature<'a>,
    fused: &'a FusedEpilogue,
    accesses: &'a [Access],
}

impl TileCode<'_> {
    /// Emits a tile over the whole inner dimension.
    fn whole(&self, place: &TilePosition) {
        let (b, kernel) = (self.b, self.kernel);
        let inner = kernel.product.inner;
        let operands = self.operands(place);
        let whole = inner / UNROLL * UNROLL;
        // Each tile of rows prefetches its share of the next panel.
        let row = operands.weight_row;
        let is_read_again = kernel.row_tiles() > 1 && inner * row * 4 <= LARGE_PANEL;
        let next = (kernel.is_packed && kernel.panels_outermost && is_read_again).then(|| {
            let lines = (UNROLL * row / LINE + kernel.row_tiles() - 1) / kernel.row_tiles();
            let share = whole / UNROLL * lines * LINE;
            Prefetch { start: b.add(b.plus(operands.weights, inner * row), b.times(place.tile, share)), lines }
        });
        let range = [b.index(0), b.index(whole)];
        let mut sums = self.multiply(place, &operands, range, &self.start(place), next.as_ref());
        (whole..inner).for_each(|k| self.step(place, &operands, k, &mut sums));
        self.finish(place, &sums);
    }

    /// Emits the offsets of the operands.
    fn operands(&self, place: &TilePosition) -> Operands {
        let (b, kernel) = (self.b, self.kernel);
        let Product { inner, columns, rows, .. } = kernel.product;
        let of_batch = |is_batched: bool, size: i64| if is_batched { b.times(place.batch, size) } else { b.index(0) };
        let first_row = b.times(place.tile, kernel.rows);
        let left = b.add(of_batch(kernel.product.left_is_batched, rows * inner), b.times(first_row, inner));
        let first_column = self.first_column(place);
        let (weights, weight_row) = if kernel.is_packed {
            (b.times(first_column, inner), place.vectors * kernel.lanes)
        } else {
            (b.add(of_batch(kernel.product.right_is_batched, inner * columns), first_column), columns)
        };
        Operands { left, weights, weight_row }
    }

    fn first_column(&self, place: &TilePosition) -> V {
        self.b.times(place.panel, self.kernel.vectors as i64 * self.kernel.lanes)
    }

    /// Returns the mask of the last vector of columns if it is partial.
    fn mask(&self, place: &TilePosition) -> Option<Mask> {
        (place.masked > 0).then(|| self.b.mask(place.masked as usize))
    }

    /// Emits the values that the sums start with: the bias.
    fn start(&self, place: &TilePosition) -> Vec<V> {
        let (b, ty) = (self.b, self.b.vector());
        let of_vector = |vector: i64| match self.kernel.has_bias {
            true => {
                let at = b.plus(self.first_column(place), vector * self.kernel.lanes);
                b.load_vector(self.signature.buffers[2], at, ty)
            }
            false => b.float(0.0, ty),
        };
        let start: Vec<_> = (0..place.vectors).map(of_vector).collect();
        (0..place.rows).flat_map(|_| start.iter().copied()).collect()
    }

    /// Emits the products of a range of the inner dimension, and adds them to `sums`.
    fn multiply(
        &self,
        place: &TilePosition,
        operands: &Operands,
        [from, to]: [V; 2],
        sums: &[V],
        next: Option<&Prefetch>,
    ) -> Vec<V> {
        let b = self.b;
        b.for_loop_carried(from, to, UNROLL, sums, |k, sums| {
            let mut sums = sums.to_vec();
            if let Some(Prefetch { start, lines }) = next {
                let (step, _) = b.div_rem(k, UNROLL);
                let line = b.add(*start, b.times(step, lines * LINE));
                (0..*lines).for_each(|i| b.prefetch(self.signature.buffers[1], b.plus(line, i * LINE)));
            }
            let Operands { left, weights, weight_row } = *operands;
            let at = Operands { left: b.add(left, k), weights: b.add(weights, b.times(k, weight_row)), weight_row };
            (0..UNROLL).for_each(|i| self.step(place, &at, i, &mut sums));
            sums
        })
    }

    /// Emits the products of one element of each row, `k` after the operands' offsets.
    fn step(&self, place: &TilePosition, operands: &Operands, k: i64, sums: &mut [V]) {
        let (b, kernel, ty) = (self.b, self.kernel, self.b.vector());
        let [left, right, ..] = self.signature.buffers[..] else { return };
        let (at, weights) = (b.plus(operands.left, k), b.plus(operands.weights, k * operands.weight_row));
        let mask = self.mask(place).filter(|_| !kernel.is_packed);
        let vectors: Vec<_> = (0..place.vectors)
            .map(|vector| {
                let at = b.plus(weights, vector * kernel.lanes);
                match mask.filter(|_| place.is_masked(vector)) {
                    Some(mask) => b.load_masked(right, at, mask),
                    None => b.load_vector(right, at, ty),
                }
            })
            .collect();
        for row in 0..place.rows {
            let element = b.broadcast(b.load(left, DType::F32, b.plus(at, row * kernel.product.inner)), ty);
            for (vector, &weight) in vectors.iter().enumerate() {
                let sum = &mut sums[row as usize * place.vectors as usize + vector];
                *sum = b.fma(element, weight, *sum);
            }
        }
    }

    /// Emits the epilogue, and stores the results.
    fn finish(&self, place: &TilePosition, sums: &[V]) {
        let (b, kernel, ty) = (self.b, self.kernel, self.b.vector());
        let Product { columns, rows, .. } = kernel.product;
        let mask = self.mask(place);
        let others = &self.signature.buffers[2 + usize::from(kernel.has_bias)..];
        let (operands, result) = others.split_at(self.accesses.len());
        let first_column = self.first_column(place);
        let rows_before = b.add(b.times(place.batch, rows), b.times(place.tile, kernel.rows));
        let corner = b.add(b.times(rows_before, columns), first_column);
        for row in 0..place.rows {
            for vector in 0..place.vectors {
                let at = b.plus(corner, row * columns + vector * kernel.lanes);
                let mask = mask.filter(|_| place.is_masked(vector));
                let load = |pointer: V, at: V| match mask {
                    Some(mask) => b.load_masked(pointer, at, mask),
                    None => b.load_vector(pointer, at, ty),
                };
                let values: Vec<_> = self
                    .accesses
                    .iter()
                    .zip(operands)
                    .map(|(access, &pointer)| match access {
                        Access::Same => load(pointer, at),
                        Access::Row => load(pointer, b.plus(first_column, vector * kernel.lanes)),
                    })
                    .collect();
                let value = self.fused.emit(b, sums[(row * place.vectors + vector) as usize], &values);
                match mask {
                    Some(mask) => b.store_masked(value, result[0], at, mask),
                    None if columns % kernel.lanes == 0 => b.store_aligned(value, result[0], at),
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

impl TilePosition {
    /// Returns true for the last vector of columns, which may be partial.
    fn is_masked(&self, vector: i64) -> bool {
        vector == self.vectors - 1
    }
}
