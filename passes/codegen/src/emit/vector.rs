//! Vectors of `f32`.

use super::{Builder, NamedAttribute, Type, V};
use divi_onnx::DType;
use divi_runtime::bundle::ALIGNMENT;

/// Mask of the first lanes of a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    lanes: V,
    count: usize,
}

/// Combination of the elements of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// Largest element, of which none is NaN.
    Largest,
    Sum,
}

impl Mask {
    /// Returns a vector of booleans.
    pub(crate) fn lanes(self) -> V {
        self.lanes
    }
}

impl Builder {
    /// Returns the type of a full vector register of `f32`.
    pub(crate) fn vector(&self) -> Type {
        self.vector_of(self.lanes(), self.f32())
    }

    /// Broadcasts a scalar to all lanes.
    pub(crate) fn broadcast(&self, scalar: V, vector: Type) -> V {
        self.op("vector.broadcast", &[scalar], vector, &[])
    }

    /// Returns `a * b + c`, rounded once.
    pub(crate) fn fma(&self, a: V, b: V, c: V) -> V {
        self.op("math.fma", &[a, b, c], self.type_of(a), &[super::arithmetic::CONTRACT])
    }

    /// Loads a vector of consecutive `f32` elements, without alignment.
    pub(crate) fn load_vector(&self, pointer: V, index: V, ty: Type) -> V {
        let dtype = self.type_in_memory(pointer, DType::F32);
        let stored = self.stored(dtype);
        let address = self.address(pointer, stored, index);
        let alignment = format!("{} : i64", dtype.bits() / 8);
        let value = self.op("llvm.load", &[address], self.with_element(ty, stored), &[("alignment", &alignment)]);
        self.widened(value, dtype)
    }

    pub(crate) fn store_vector(&self, value: V, pointer: V, index: V) {
        let dtype = self.type_in_memory(pointer, DType::F32);
        let address = self.address(pointer, self.stored(dtype), index);
        let alignment = self.named("alignment", self.attribute(&format!("{} : i64", dtype.bits() / 8)));
        self.append("llvm.store", &[self.narrowed(value, dtype), address], &[], &[alignment], vec![]);
    }

    /// As [`Self::store_vector`], at an index that is a multiple of the lanes. Uses a non-temporal store if [`Self::stream`] was called for
    /// the buffer, which must then be aligned to the size of a vector.
    pub(crate) fn store_aligned(&self, value: V, pointer: V, index: V) {
        if !self.streamed.borrow().contains(&pointer) {
            return self.store_vector(value, pointer, index);
        }
        self.has_streamed.set(true);
        let address = self.address(pointer, self.f32(), index);
        let alignment = self.attribute(&format!("{} : i64", (self.lanes() * 4).min(ALIGNMENT as usize)));
        let attributes = [self.named("alignment", alignment), self.named("nontemporal", self.attribute("unit"))];
        self.append("llvm.store", &[value, address], &[], &attributes, vec![]);
    }

    /// Makes [`Self::store_aligned`] use non-temporal stores for a buffer.
    pub(crate) fn stream(&self, pointer: V) {
        self.streamed.borrow_mut().push(pointer);
    }

    /// Appends a store fence after non-temporal stores, which are weakly ordered, so that they are visible before any later store.
    pub(super) fn end_streams(&self) {
        if self.has_streamed.get() {
            self.intrinsic("llvm.x86.sse.sfence", &[]);
        }
    }

    /// Calls an intrinsic of LLVM without results.
    pub(super) fn intrinsic(&self, name: &str, operands: &[V]) {
        let attributes = [
            ("intrin", &*format!("\"{name}\"")),
            ("operandSegmentSizes", &format!("array<i32: {}, 0>", operands.len())),
            ("op_bundle_sizes", "array<i32>"),
        ];
        let attributes = attributes.map(|(name, text)| self.named(name, self.attribute(text)));
        self.append("llvm.call_intrinsic", operands, &[], &attributes, vec![]);
    }

    /// Transposes a square matrix of vectors of `f32`: step by step, swaps the off-diagonal quarters of blocks of 2, 4, 8, … rows.
    pub(crate) fn transpose(&self, mut square: Vec<V>) -> Vec<V> {
        let side = square.len();
        let ty = self.vector_of(side, self.f32());
        let mut half = 1;
        while half < side {
            for i in (0..side).filter(|i| i & half == 0) {
                let pair = [square[i], square[i + half]];
                let lane = |lane: usize, is_second: bool| match (lane & half == 0, is_second) {
                    (true, false) => lane,
                    (false, false) => side + lane - half,
                    (true, true) => lane + half,
                    (false, true) => side + lane,
                };
                for is_second in [false, true] {
                    let lanes: Vec<_> = (0..side).map(|i| lane(i, is_second).to_string()).collect();
                    let mask = format!("array<i64: {}>", lanes.join(", "));
                    square[i + if is_second { half } else { 0 }] =
                        self.op("vector.shuffle", &pair, ty, &[("mask", &mask)]);
                }
            }
            half *= 2;
        }
        square
    }

    /// Rounds a vector to `bf16`. Returns pairs of adjacent elements, with half as many lanes.
    pub(crate) fn half_pairs(&self, vector: V) -> V {
        let pairs = self.vector_of(self.lanes() / 2, self.f32());
        self.op("vector.bitcast", &[self.narrowed(vector, DType::BF16)], pairs, &[])
    }

    /// Stores pairs of elements of `bf16` in a buffer of these, at the index of the first element.
    pub(crate) fn store_half_pairs(&self, pairs: V, pointer: V, index: V) {
        let address = self.address(pointer, self.int(16), index);
        let alignment = self.named("alignment", self.attribute("2 : i64"));
        self.append("llvm.store", &[pairs, address], &[], &[alignment], vec![]);
    }

    /// Combines all elements of a vector of `f32`, in any order.
    pub(crate) fn reduce(&self, vector: V, how: Reduction) -> V {
        let (kind, flags) = match how {
            Reduction::Largest => ("#vector.kind<maxnumf>", "#arith.fastmath<reassoc,nnan>"),
            Reduction::Sum => ("#vector.kind<add>", "#arith.fastmath<reassoc>"),
        };
        let attributes = [("kind", kind), ("fastmath", flags)];
        self.op("vector.reduction", &[vector], self.f32(), &attributes)
    }

    /// Returns a vector whose groups of `size` lanes have the element `index` of the group in all lanes.
    pub(crate) fn spread_in_groups(&self, vector: V, size: usize, index: usize) -> V {
        let lanes: Vec<_> = (0..self.lanes()).map(|lane| (lane / size * size + index).to_string()).collect();
        let mask = format!("array<i64: {}>", lanes.join(", "));
        self.op("vector.shuffle", &[vector, vector], self.vector(), &[("mask", &mask)])
    }

    /// Returns vectors of alternating elements of two vectors: of their first halves, and of their second halves.
    pub(crate) fn interleave(&self, a: V, b: V) -> [V; 2] {
        let (lanes, ty) = (self.lanes(), self.vector());
        [0, lanes / 2].map(|first| {
            let lanes: Vec<_> = (0..lanes).map(|i| (first + i / 2 + i % 2 * lanes).to_string()).collect();
            self.op("vector.shuffle", &[a, b], ty, &[("mask", &format!("array<i64: {}>", lanes.join(", ")))])
        })
    }

    /// Returns the elements of vectors, whose number is a power of two, in turns: the first elements of all, then the second ones, and so on.
    pub(crate) fn interleave_all(&self, mut vectors: Vec<V>) -> Vec<V> {
        let count = vectors.len();
        for _ in 0..count.ilog2() {
            let (first, second) = vectors.split_at(count / 2);
            vectors = first.iter().zip(second).flat_map(|(&a, &b)| self.interleave(a, b)).collect();
        }
        vectors
    }

    /// Returns a mask of the first `count` lanes.
    pub(crate) fn mask(&self, count: usize) -> Mask {
        let bits: Vec<_> = (0..self.lanes()).map(|lane| if lane < count { "true" } else { "false" }).collect();
        let ty = self.vector_of(self.lanes(), self.i1());
        let text = format!("dense<[{}]> : vector<{}xi1>", bits.join(", "), self.lanes());
        Mask { lanes: self.constant(ty, count as u64 | 1 << 32, || self.attribute(&text)), count }
    }

    /// As [`Self::load_vector`], with zeros in lanes that are masked off.
    pub(crate) fn load_masked(&self, pointer: V, index: V, mask: Mask) -> V {
        let dtype = self.type_in_memory(pointer, DType::F32);
        let stored = self.stored(dtype);
        let ty = self.with_element(self.vector(), stored);
        let operands = [self.address(pointer, stored, index), mask.lanes, self.zero(ty)];
        let alignment = format!("{} : i32", dtype.bits() / 8);
        self.widened(self.op("llvm.intr.masked.load", &operands, ty, &[("alignment", &alignment)]), dtype)
    }

    pub(crate) fn store_masked(&self, value: V, pointer: V, index: V, mask: Mask) {
        let dtype = self.type_in_memory(pointer, DType::F32);
        // LLVM 22 stores two elements for a mask of one lane if it can fuse the store with a truncation.
        if mask.count == 1 {
            let first = self.op("vector.extract", &[value], self.f32(), &[("static_position", "array<i64: 0>")]);
            return self.store(first, pointer, DType::F32, index);
        }
        let address = self.address(pointer, self.stored(dtype), index);
        let alignment = self.named("alignment", self.attribute(&format!("{} : i32", dtype.bits() / 8)));
        let operands = [self.narrowed(value, dtype), address, mask.lanes];
        self.append("llvm.intr.masked.store", &operands, &[], &[alignment], vec![]);
    }

    /// Prefetches a cache line for reading.
    pub(crate) fn prefetch(&self, pointer: V, index: V) {
        self.prefetch_into(pointer, index, "3 : i32");
    }

    /// Prefetches a cache line into the L2 cache for reading.
    pub(crate) fn prefetch_l2(&self, pointer: V, index: V) {
        self.prefetch_into(pointer, index, "2 : i32");
    }

    fn prefetch_into(&self, pointer: V, index: V, locality: &str) {
        let address = self.address(pointer, self.stored(self.type_in_memory(pointer, DType::F32)), index);
        let attributes = [("rw", "0 : i32"), ("hint", locality), ("cache", "1 : i32")];
        let attributes: Vec<NamedAttribute> =
            attributes.iter().map(|(name, text)| self.named(name, self.attribute(text))).collect();
        self.append("llvm.intr.prefetch", &[address], &[], &attributes, vec![]);
    }
}
