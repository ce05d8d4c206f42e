//! Tiled matrix multiplication: a block of threads copies a slice of both operands into shared memory, and each thread accumulates a
//! register tile of the result.

use crate::emit::{Builder, V};

/// Tile of the result that a block computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Terms of the reduction per slice in shared memory.
    pub(super) depth: i64,
    /// Rows of the register tile of a thread.
    pub(super) thread_rows: i64,
    /// Columns of the register tile of a thread.
    pub(super) thread_columns: i64,
}

/// Tile and number of parts of the reduction (split-K) of a matrix multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) tile: Tile,
    pub(super) splits: i64,
}

const TILES: [Tile; 4] = [
    Tile { rows: 128, columns: 128, depth: 8, thread_rows: 8, thread_columns: 8 },
    Tile { rows: 64, columns: 64, depth: 16, thread_rows: 4, thread_columns: 4 },
    Tile { rows: 64, columns: 32, depth: 16, thread_rows: 4, thread_columns: 4 },
    Tile { rows: 32, columns: 32, depth: 16, thread_rows: 4, thread_columns: 2 },
];

/// Multiprocessors of a large GPU (H100).
const PROCESSORS: i64 = 132;
/// Warp schedulers of a multiprocessor: instructions issued per cycle.
const SCHEDULERS: i64 = 4;
/// Instructions per element that is copied into shared memory.
const FETCH: i64 = 16;
/// Latency in cycles of one slice of a block that is alone on its multiprocessor: memory accesses and barriers.
const SLICE_LATENCY_CYCLES: f64 = 1300.0;
/// Cycles of the additional kernel that adds the parts of a split reduction.
const SPLIT_KERNEL_CYCLES: f64 = 4000.0;
/// Memory bandwidth in bytes per cycle.
const BYTES_PER_CYCLE: f64 = 2000.0;

impl Tile {
    pub(super) fn threads(&self) -> i64 {
        self.rows / self.thread_rows * (self.columns / self.thread_columns)
    }

    /// Returns the cycles in which a multiprocessor issues the instructions of one slice of a block.
    fn cycles(&self) -> f64 {
        let loads = (self.thread_rows + self.thread_columns + 3) / 4;
        let fetched = (self.rows + self.columns) * self.depth / self.threads();
        let of_thread = self.depth * (self.thread_rows * self.thread_columns + loads) + fetched * FETCH;
        (of_thread * self.threads() / 32) as f64 / SCHEDULERS as f64
    }
}

impl Plan {
    /// Selects the plan with the least estimated time for `count` products.
    pub(super) fn of(count: i64, rows: i64, columns: i64, depth: i64) -> Self {
        let plans =
            TILES.iter().flat_map(|&tile| [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].map(|splits| Self { tile, splits }));
        let plans = plans.filter(|plan| plan.splits == 1 || depth / plan.splits >= 4 * plan.tile.depth);
        let cost = |plan: &Self| {
            let Self { tile, splits } = *plan;
            let blocks = plan.blocks(count, rows, columns);
            let steps = div_ceil(div_ceil(depth, splits), tile.depth);
            // Blocks on the same multiprocessor hide each other's latency.
            let step =
                (div_ceil(blocks, PROCESSORS) as f64 * tile.cycles()).max(SLICE_LATENCY_CYCLES + tile.cycles() / 4.0);
            let sums = if splits > 1 {
                SPLIT_KERNEL_CYCLES + (splits * count * rows * columns * 8) as f64 / BYTES_PER_CYCLE
            } else {
                0.0
            };
            steps as f64 * step + sums
        };
        plans.min_by(|a, b| cost(a).total_cmp(&cost(b))).expect("there are tiles")
    }

    /// Returns the number of blocks for `count` products.
    pub(super) fn blocks(&self, count: i64, rows: i64, columns: i64) -> i64 {
        count * div_ceil(rows, self.tile.rows) * div_ceil(columns, self.tile.columns) * self.splits
    }
}

/// Returns `a / by`, rounded up.
pub(super) fn div_ceil(a: i64, by: i64) -> i64 {
    (a + by - 1) / by
}

/// Function from the values of [`TileOperand::prepare`] and the index of a term to the offset of an element, and an `i1` that is true if it exists.
pub(super) type Locate<'a> = dyn Fn(&[V], V) -> (V, V) + 'a;

/// Operand of a matrix multiplication, with the addressing of its elements.
pub(super) struct TileOperand<'a> {
    /// Rows or columns of the tile.
    pub(super) width: i64,
    /// True if adjacent elements in memory are terms of one sum, rather than of adjacent sums.
    pub(super) is_along_depth: bool,
    /// Emits the values that are the same for all terms of a row or column, from its index in the tile; hoisted out of the loop.
    pub(super) prepare: &'a dyn Fn(V) -> Vec<V>,
    pub(super) buffer: V,
    /// Emits the offset of an element in the buffer, and the condition that it exists.
    pub(super) locate: &'a Locate<'a>,
}

/// Emits a tile over the terms `from..to`. Returns the sums of this thread's register tile in row-major order.
pub(super) fn multiply(
    b: &Builder,
    tile: &Tile,
    left: &TileOperand<'_>,
    right: &TileOperand<'_>,
    from: V,
    to: V,
) -> Vec<V> {
    let threads = tile.threads();
    // Rows are padded, so that threads that write a column use different banks.
    const GAP: i64 = 4;
    let strides = [left.width + GAP, right.width + GAP];
    let memory = b.shared(tile.depth * (strides[0] + strides[1]));
    let bases = [0, tile.depth * strides[0]];
    let thread = b.thread();
    let sides = [left, right];

    // Elements that each thread copies: prepared values, term, and offset in shared memory.
    let items: Vec<Vec<(Vec<V>, V, V)>> = sides
        .iter()
        .zip(strides.iter().zip(bases))
        .map(|(side, (&stride, base))| {
            let count = side.width * tile.depth / threads;
            let mut prepared: Option<Vec<V>> = None;
            (0..count)
                .map(|i| {
                    let number = b.plus(thread, i * threads);
                    let (place, term) = if side.is_along_depth {
                        b.div_rem(number, tile.depth)
                    } else {
                        let (term, place) = b.div_rem(number, side.width);
                        (place, term)
                    };
                    // All elements of a thread are in the same column if the threads cover whole rows.
                    let is_same = !side.is_along_depth && threads % side.width == 0;
                    let state = match prepared.take().filter(|_| is_same) {
                        Some(state) => state,
                        None => (side.prepare)(place),
                    };
                    prepared = Some(state.clone());
                    let at = b.plus(b.add(b.times(term, stride), place), base);
                    (state, term, at)
                })
                .collect()
        })
        .collect();
    let fetch = |first: V| -> Vec<V> {
        let items = sides.iter().zip(&items);
        items
            .flat_map(|(side, items)| {
                items.iter().map(move |(state, term, _)| {
                    let term = b.add(first, *term);
                    let (at, exists) = (side.locate)(state, term);
                    load_if(b, b.and(exists, b.less(term, to)), side.buffer, at)
                })
            })
            .collect()
    };

    let (own_row, own_column) = thread_origin(b, tile);
    let own = [own_row, b.plus(own_column, bases[1])];
    let sum_count = (tile.thread_rows * tile.thread_columns) as usize;
    let mut state = vec![b.float(0.0, b.f32()); sum_count];
    state.extend(fetch(from));
    let state = b.for_loop_carried(from, to, tile.depth, &state, |first, state| {
        let (sums, fetched) = state.split_at(sum_count);
        b.barrier();
        let places = items.iter().flatten().map(|(_, _, at)| *at);
        for (&value, at) in fetched.iter().zip(places) {
            b.store(value, memory, divi_onnx::DType::F32, at);
        }
        b.barrier();
        // The next slice is loaded into registers during the computation.
        let next = fetch(b.plus(first, tile.depth));
        let mut sums = sums.to_vec();
        for term in 0..tile.depth {
            let part = |side: usize, count: i64| -> Vec<V> {
                let at = b.plus(own[side], term * strides[side]);
                let width = count.min(4);
                (0..count / width)
                    .flat_map(|i| {
                        let vector = b.load_vector_aligned(memory, b.plus(at, i * width), width as usize);
                        (0..width as usize).map(move |j| b.element(vector, j)).collect::<Vec<_>>()
                    })
                    .collect()
            };
            let (rows, columns) = (part(0, tile.thread_rows), part(1, tile.thread_columns));
            for (i, &row) in rows.iter().enumerate() {
                for (j, &column) in columns.iter().enumerate() {
                    let sum = &mut sums[i * columns.len() + j];
                    *sum = b.fma(row, column, *sum);
                }
            }
        }
        sums.extend(next);
        sums
    });
    state[..sum_count].to_vec()
}

/// Returns an element, or zero if it does not exist. The load is unconditional, without a branch, so that loads of a thread overlap.
pub(super) fn load_if(b: &Builder, exists: V, buffer: V, at: V) -> V {
    let value = b.load(buffer, divi_onnx::DType::F32, b.select(exists, at, b.index(0)));
    b.select(exists, value, b.float(0.0, b.f32()))
}

/// Returns the first row and column of this thread's register tile, relative to the tile of its block.
pub(super) fn thread_origin(b: &Builder, tile: &Tile) -> (V, V) {
    let (down, across) = b.div_rem(b.thread(), tile.columns / tile.thread_columns);
    (b.times(down, tile.thread_rows), b.times(across, tile.thread_columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_are_split() {
        // 7x7 pixels by 512 filters of 4608 terms: without a split, 8 tiles would leave most of the GPU idle.
        assert!(Plan::of(1, 512, 49, 4608).splits >= 8);
        assert_eq!(Plan::of(1, 4096, 4096, 1024), Plan { tile: TILES[0], splits: 1 });
    }

    #[test]
    fn threads_share_tiles_evenly() {
        for tile in TILES {
            let threads = tile.threads();
            assert!(
                threads <= 256 && tile.rows * tile.depth % threads == 0 && tile.columns * tile.depth % threads == 0
            );
        }
    }
}
