//! Products of matrices, tile by tile: a block of threads brings a piece of both sides into the memory that it shares, and each
//! thread has some rows and columns of the result in its registers.

use crate::emit::{Builder, V};

/// What a block computes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Terms of the sums that are in shared memory at once.
    pub(super) depth: i64,
    /// Of each thread.
    pub(super) own_rows: i64,
    pub(super) own_columns: i64,
}

/// The tiles of a product, and the parts that its sums are split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) tile: Tile,
    pub(super) splits: i64,
}

const TILES: [Tile; 4] = [
    Tile { rows: 128, columns: 128, depth: 8, own_rows: 8, own_columns: 8 },
    Tile { rows: 64, columns: 64, depth: 16, own_rows: 4, own_columns: 4 },
    Tile { rows: 64, columns: 32, depth: 16, own_rows: 4, own_columns: 4 },
    Tile { rows: 32, columns: 32, depth: 16, own_rows: 4, own_columns: 2 },
];

/// Multiprocessors that a large GPU has.
const PROCESSORS: i64 = 132;
/// Warps that a multiprocessor has instructions of in a cycle.
const SCHEDULERS: i64 = 4;
/// Instructions for an element that is brought into shared memory.
const BRING: i64 = 16;
/// Cycles of a step of a block that is alone on its multiprocessor, and waits for memory and for its threads.
const STEP: f64 = 1300.0;
/// Cycles that another kernel takes, for sums that were split.
const ANOTHER: f64 = 4000.0;
/// Bytes of a cycle, to and from memory.
const BYTES: f64 = 2000.0;

impl Tile {
    pub(super) fn threads(&self) -> i64 {
        self.rows / self.own_rows * (self.columns / self.own_columns)
    }

    /// Cycles in which a multiprocessor issues the instructions of a step.
    fn cycles(&self) -> f64 {
        let loads = (self.own_rows + self.own_columns + 3) / 4;
        let brought = (self.rows + self.columns) * self.depth / self.threads();
        let of_thread = self.depth * (self.own_rows * self.own_columns + loads) + brought * BRING;
        (of_thread * self.threads() / 32) as f64 / SCHEDULERS as f64
    }
}

impl Plan {
    /// The plan that is likely to be fastest, of `count` products.
    pub(super) fn of(count: i64, rows: i64, columns: i64, depth: i64) -> Self {
        let plans =
            TILES.iter().flat_map(|&tile| [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].map(|splits| Self { tile, splits }));
        let plans = plans.filter(|plan| plan.splits == 1 || depth / plan.splits >= 4 * plan.tile.depth);
        let cost = |plan: &Self| {
            let Self { tile, splits } = *plan;
            let blocks = plan.blocks(count, rows, columns);
            let steps = up(up(depth, splits), tile.depth);
            // Blocks that share a multiprocessor hide each other's waiting.
            let step = (up(blocks, PROCESSORS) as f64 * tile.cycles()).max(STEP + tile.cycles() / 4.0);
            let sums = if splits > 1 { ANOTHER + (splits * count * rows * columns * 8) as f64 / BYTES } else { 0.0 };
            steps as f64 * step + sums
        };
        plans.min_by(|a, b| cost(a).total_cmp(&cost(b))).expect("there are tiles")
    }

    /// The blocks of `count` products.
    pub(super) fn blocks(&self, count: i64, rows: i64, columns: i64) -> i64 {
        count * up(rows, self.tile.rows) * up(columns, self.tile.columns) * self.splits
    }
}

/// `a / by`, rounded up.
pub(super) fn up(a: i64, by: i64) -> i64 {
    (a + by - 1) / by
}

/// By what was prepared and the number of a term.
pub(super) type Locate<'a> = dyn Fn(&[V], V) -> (V, V) + 'a;

/// One side of a product: how its elements are brought into shared memory.
pub(super) struct Side<'a> {
    /// Rows or columns of the tile.
    pub(super) width: i64,
    /// Whether neighbours in memory are terms of one sum, rather than of neighbouring sums.
    pub(super) is_along_depth: bool,
    /// What is the same for all terms of a row or column, by its place in the tile; made once.
    pub(super) prepare: &'a dyn Fn(V) -> Vec<V>,
    pub(super) buffer: V,
    /// Where an element is in the buffer, and whether it is there at all.
    pub(super) locate: &'a Locate<'a>,
}

/// The sums of this thread: its tile's products over the terms `from..to`, row by row.
pub(super) fn multiply(b: &Builder, tile: &Tile, left: &Side<'_>, right: &Side<'_>, from: V, to: V) -> Vec<V> {
    let threads = tile.threads();
    // Rows are a little longer than they must be, so that threads that write a column use different banks.
    const GAP: i64 = 4;
    let strides = [left.width + GAP, right.width + GAP];
    let memory = b.shared(tile.depth * (strides[0] + strides[1]));
    let bases = [0, tile.depth * strides[0]];
    let thread = b.thread();
    let sides = [left, right];

    // What each thread brings: places in the tile, and terms.
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
                    // A thread's places are all the same where a round covers whole rows.
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
    let bring = |first: V| -> Vec<V> {
        let items = sides.iter().zip(&items);
        items
            .flat_map(|(side, items)| {
                items.iter().map(move |(state, term, _)| {
                    let term = b.add(first, *term);
                    let (at, is_there) = (side.locate)(state, term);
                    load_if(b, b.and(is_there, b.less(term, to)), side.buffer, at)
                })
            })
            .collect()
    };

    let (own_row, own_column) = own_place(b, tile);
    let own = [own_row, b.plus(own_column, bases[1])];
    let sum_count = (tile.own_rows * tile.own_columns) as usize;
    let mut state = vec![b.float(0.0, b.f32()); sum_count];
    state.extend(bring(from));
    let state = b.for_with(from, to, tile.depth, &state, |first, state| {
        let (sums, brought) = state.split_at(sum_count);
        b.barrier();
        let places = items.iter().flatten().map(|(_, _, at)| *at);
        for (&value, at) in brought.iter().zip(places) {
            b.store(value, memory, divi_onnx::DType::F32, at);
        }
        b.barrier();
        let next = bring(b.plus(first, tile.depth));
        let mut sums = sums.to_vec();
        for term in 0..tile.depth {
            let part = |side: usize, count: i64| -> Vec<V> {
                let at = b.plus(own[side], term * strides[side]);
                // Vectors of four at most.
                let width = count.min(4);
                (0..count / width)
                    .flat_map(|i| {
                        let vector = b.load_wide(memory, b.plus(at, i * width), width as usize);
                        (0..width as usize).map(move |j| b.element(vector, j)).collect::<Vec<_>>()
                    })
                    .collect()
            };
            let (rows, columns) = (part(0, tile.own_rows), part(1, tile.own_columns));
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

/// An element, or zero. It is loaded in either case, so that a thread need not wait for one load before it begins the next.
pub(super) fn load_if(b: &Builder, is_there: V, buffer: V, at: V) -> V {
    let value = b.load(buffer, divi_onnx::DType::F32, b.select(is_there, at, b.index(0)));
    b.select(is_there, value, b.float(0.0, b.f32()))
}

/// Where in its tile the first of a thread's rows and columns is.
pub(super) fn own_place(b: &Builder, tile: &Tile) -> (V, V) {
    let (down, across) = b.div_rem(b.thread(), tile.columns / tile.own_columns);
    (b.times(down, tile.own_rows), b.times(across, tile.own_columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_are_split() {
        // 7x7 pixels by 512 filters of 4608 terms: 8 tiles would leave most of the GPU idle.
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
