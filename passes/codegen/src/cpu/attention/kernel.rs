//! Loop nest of attention: blocks of queries, blocks of keys, and the Softmax of each row.

use super::{
    super::softmax::{self, larger},
    pattern::Attention,
};
use crate::{
    emit::{Builder, Mask, Reduction, Signature, V},
    graph::Id,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Keys of a block: scores of 32 queries stay in the L2 cache.
const MOST_KEYS: i64 = 512;

/// Products of blocks of queries, keys and values.
pub(super) trait Products {
    /// Returns the number of queries of a block.
    fn rows(&self) -> i64;

    /// Returns the number of keys that a block has a multiple of.
    fn key_unit(&self) -> i64;

    /// Returns true if probabilities are rounded to `bf16`.
    fn rounds(&self) -> bool;

    /// Returns the number of elements between rows of the sums of a block.
    fn sum_stride(&self) -> i64;

    /// Adds calls that rearrange keys and values. Returns what the kernel reads instead.
    fn operands(&self, cx: &mut Lowering<'_>) -> [Id; 2];

    /// Emits code at the start of the kernel, for blocks of `rows` queries; `last` in the last block.
    fn begin(&self, b: &Builder, rows: i64, last: i64);

    /// Emits code at the end of the kernel.
    fn end(&self, b: &Builder);

    /// Emits code before the blocks of keys of a block of queries.
    fn load_queries(&self, b: &Builder, block: &QueryBlock<'_>);

    /// Emits the products of a block of queries with a block of keys.
    fn scores(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock);

    /// Emits the products of probabilities with values, added to the sums, or in place of them if `starts`.
    fn sums(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock, starts: bool);
}

/// Buffers on the stack.
#[derive(Clone, Copy)]
pub(super) struct Scratch {
    /// Scores: a row of [`AttentionKernel::width`] elements for each query.
    pub(super) scores: V,
    /// Probabilities, in the same order; the memory of the scores unless they are rounded.
    pub(super) shares: V,
    /// Sums of values times probabilities.
    pub(super) sums: V,
    /// Largest score of each query so far.
    largest: V,
    /// Sum of the probabilities of each query so far.
    total: V,
    /// Elements of a row of scores.
    pub(super) width: i64,
}

/// Block of queries of a matrix.
pub(super) struct QueryBlock<'a> {
    pub(super) signature: &'a Signature<'a>,
    pub(super) scratch: Scratch,
    /// Number of the matrix.
    pub(super) matrix: V,
    /// First query.
    pub(super) first: V,
    /// Number of queries.
    pub(super) rows: i64,
    /// True for the last block of a matrix.
    pub(super) is_last: bool,
}

/// Block of keys.
pub(super) struct KeyBlock {
    /// First key.
    pub(super) first: V,
    /// Number of keys.
    pub(super) count: i64,
}

/// Kernel of attention. Buffers: queries, keys, values, mask if there is one, result.
pub(super) struct AttentionKernel<'a> {
    attention: &'a Attention,
    products: &'a dyn Products,
    /// Keys of a block.
    width: i64,
}

impl<'a> AttentionKernel<'a> {
    pub(super) fn new(attention: &'a Attention, products: &'a dyn Products) -> Self {
        let unit = products.key_unit();
        let units = (attention.keys + unit - 1) / unit;
        // Blocks of about equal size.
        let blocks = (units * unit + MOST_KEYS - 1) / MOST_KEYS;
        Self { attention, products, width: (units + blocks - 1) / blocks * unit }
    }

    fn query_blocks(&self) -> i64 {
        (self.attention.rows + self.products.rows() - 1) / self.products.rows()
    }

    fn key_blocks(&self) -> i64 {
        (self.attention.keys + self.width - 1) / self.width
    }

    /// Adds the calls.
    pub(super) fn lower(&self, cx: &mut Lowering<'_>) {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 200_000;
        let Attention { rows, keys, depth, columns, queries, mask, result, .. } = self.attention;
        let [packed_keys, values] = self.products.operands(cx);
        let mut reads = vec![queries.id, packed_keys, values];
        reads.extend(mask.as_ref().map(|mask| mask.matrices.id));
        let extent = result.count() * self.query_blocks();
        let work = self.products.rows().min(*rows) * keys * (depth + columns);
        cx.call(extent, WORK / work.max(1), &reads, &[result.id], |b, signature| self.emit(b, &signature));
    }

    fn emit(&self, b: &Builder, signature: &Signature<'_>) {
        let rows = self.products.rows().min(self.attention.rows);
        let blocks = self.query_blocks();
        let last_rows = self.attention.rows - (blocks - 1) * self.products.rows();
        let scores = b.alloca(rows * self.width, b.f32());
        let shares = if self.products.rounds() { b.half_alloca(rows * self.width) } else { scores };
        let scratch = Scratch {
            scores,
            shares,
            sums: b.alloca(rows * self.products.sum_stride(), b.f32()),
            largest: b.alloca(rows, b.f32()),
            total: b.alloca(rows, b.f32()),
            width: self.width,
        };
        self.products.begin(b, rows, last_rows);
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (matrix, block) = b.div_rem(number, blocks);
            let first = b.times(block, self.products.rows());
            b.specialize_last(block, blocks, last_rows != rows, |is_last| {
                let rows = if is_last { last_rows } else { rows };
                self.query_block(b, &QueryBlock { signature, scratch, matrix, first, rows, is_last });
            });
        });
        self.products.end(b);
    }

    fn query_block(&self, b: &Builder, block: &QueryBlock<'_>) {
        let blocks = self.key_blocks();
        self.products.load_queries(b, block);
        let Scratch { sums, largest, total, .. } = block.scratch;
        if blocks > 1 {
            b.repeat(block.rows, |row| {
                b.store(b.float(f64::NEG_INFINITY, b.f32()), largest, DType::F32, row);
                b.store(b.float(0.0, b.f32()), total, DType::F32, row);
            });
            let zero = b.float(0.0, b.vector());
            let lanes = b.lanes() as i64;
            let vectors = block.rows * self.products.sum_stride() / lanes;
            b.repeat(vectors, |i| b.store_vector(zero, sums, b.times(i, lanes)));
        }
        let last = self.attention.keys - (blocks - 1) * self.width;
        b.repeat(blocks, |number| {
            let first = b.times(number, self.width);
            b.specialize_last(number, blocks, last != self.width, |is_last| {
                let keys = KeyBlock { first, count: if is_last { last } else { self.width } };
                self.products.scores(b, block, &keys);
                b.repeat(block.rows, |row| self.softmax(b, block, &keys, row));
                self.products.sums(b, block, &keys, blocks == 1);
            });
        });
        b.repeat(block.rows, |row| self.finish(b, block, row));
    }

    /// Replaces the scores of a row by probabilities, up to a factor. Updates the row's maximum and sum, and scales its sums of values.
    fn softmax(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock, row: V) {
        let (ty, lanes) = (b.vector(), b.lanes() as i64);
        let Scratch { scores, shares, sums, largest, total, width } = block.scratch;
        let start = b.times(row, width);
        let (vectors, rest) = (keys.count / lanes, keys.count % lanes);
        let mask = (rest > 0).then(|| b.mask(rest as usize));
        let end = b.plus(start, vectors * lanes);
        let lowest = b.float(f64::NEG_INFINITY, ty);
        let scale = b.float(self.attention.scale, ty);

        let addend = self.addend(b, block, keys, row);
        let scaled = |at: V, offset: V, is_rest: bool| {
            let value = b.mul(b.load_vector(scores, at, ty), scale);
            match &addend {
                None => value,
                Some(addend) => b.add(value, addend(offset, mask.filter(|_| is_rest))),
            }
        };
        let block_largest = b.for_loop_carried(b.index(0), b.index(vectors), 1, &[lowest], |i, state| {
            let offset = b.times(i, lanes);
            let at = b.add(start, offset);
            let value = scaled(at, offset, false);
            b.store_vector(value, scores, at);
            vec![larger(b, state[0], value)]
        })[0];
        let block_largest = mask.map_or(block_largest, |mask| {
            let value = scaled(end, b.index(vectors * lanes), true);
            b.store_vector(value, scores, end);
            larger(b, block_largest, b.select(mask.lanes(), value, lowest))
        });
        let mut new_largest = b.reduce(block_largest, Reduction::Largest);
        let is_running = self.key_blocks() > 1;
        let old_largest = is_running.then(|| b.load(largest, DType::F32, row));
        if let Some(old) = old_largest {
            new_largest = larger(b, old, new_largest);
            b.store(new_largest, largest, DType::F32, row);
        }
        // Rows without a finite score so far stay 0.
        let is_lowest = b.equal(new_largest, b.float(f64::NEG_INFINITY, b.f32()));
        let reference = b.select(is_lowest, b.float(0.0, b.f32()), new_largest);

        let is_rough = self.products.rounds() || self.attention.rounding.is_some();
        let all = b.broadcast(reference, ty);
        let share = |at: V| {
            let term = softmax::term(b, b.load_vector(scores, at, ty), all, is_rough);
            self.attention.rounding.filter(|_| !self.products.rounds()).map_or(term, |to| b.rounded_to_half(term, to))
        };
        let zero = b.float(0.0, ty);
        let sum = b.for_loop_carried(b.index(0), b.index(vectors), 1, &[zero], |i, state| {
            let at = b.add(start, b.times(i, lanes));
            let term = share(at);
            b.store_vector(term, shares, at);
            vec![b.add(state[0], term)]
        })[0];
        let sum = mask.map_or(sum, |mask| {
            let term = b.select(mask.lanes(), share(end), zero);
            b.store_vector(term, shares, end);
            b.add(sum, term)
        });
        let mut sum = b.reduce(sum, Reduction::Sum);
        if let Some(old) = old_largest {
            let factor = softmax::term(b, old, reference, is_rough);
            sum = b.add(b.mul(b.load(total, DType::F32, row), factor), sum);
            let factors = b.broadcast(factor, ty);
            let first = b.times(row, self.products.sum_stride());
            b.repeat(self.products.sum_stride() / lanes, |i| {
                let at = b.add(first, b.times(i, lanes));
                b.store_vector(b.mul(b.load_vector(sums, at, ty), factors), sums, at);
            });
        }
        b.store(sum, total, DType::F32, row);
    }

    /// Returns a function that emits the mask of a row at an offset in a block of keys, for all lanes or those of a mask.
    fn addend<'b>(
        &self,
        b: &'b Builder,
        block: &QueryBlock<'_>,
        keys: &KeyBlock,
        row: V,
    ) -> Option<impl Fn(V, Option<Mask>) -> V + use<'b>> {
        let mask = self.attention.mask.as_ref()?;
        let pointer = block.signature.buffers[3];
        let query = b.add(block.first, row);
        let first = b.add(mask.matrices.offset(b, block.matrix), b.times(query, mask.matrices.row));
        let (is_repeated, first) = (mask.is_repeated, if mask.is_repeated { first } else { b.add(first, keys.first) });
        Some(move |offset: V, lanes: Option<Mask>| match lanes {
            _ if is_repeated => b.broadcast(b.load(pointer, DType::F32, first), b.vector()),
            Some(lanes) => b.load_masked(pointer, b.add(first, offset), lanes),
            None => b.load_vector(pointer, b.add(first, offset), b.vector()),
        })
    }

    /// Divides the sums of a row by the sum of its probabilities and stores the result.
    fn finish(&self, b: &Builder, block: &QueryBlock<'_>, row: V) {
        let (ty, lanes) = (b.vector(), b.lanes() as i64);
        let Attention { result, columns, .. } = self.attention;
        let Scratch { sums, total, .. } = block.scratch;
        let total = b.load(total, DType::F32, row);
        let factor = b.broadcast(b.div(b.float(1.0, b.f32()), total, false), ty);
        let target = *block.signature.buffers.last().expect("the last buffer is the result");
        let from = b.times(row, self.products.sum_stride());
        let to = b.add(result.offset(b, block.matrix), b.times(b.add(block.first, row), result.row));
        for vector in 0..(columns + lanes - 1) / lanes {
            let left = columns - vector * lanes;
            let value = b.mul(b.load_vector(sums, b.plus(from, vector * lanes), ty), factor);
            let at = b.plus(to, vector * lanes);
            match left < lanes {
                true => b.store_masked(value, target, at, b.mask(left as usize)),
                false => b.store_vector(value, target, at),
            }
        }
    }
}
