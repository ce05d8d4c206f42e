//! NVVM intrinsics (special registers, barriers, shared memory, shuffles), and vector loads and stores.

use crate::emit::{Builder, Type, V};

impl Builder {
    /// Reads a special register as `i64`.
    fn special(&self, register: &str) -> V {
        let value = self.op(&format!("nvvm.read.ptx.sreg.{register}"), &[], self.int(32), &[]);
        self.resize(value, self.i64(), true)
    }

    /// Returns the index of the thread in its block.
    pub(crate) fn thread(&self) -> V {
        self.special("tid.x")
    }

    /// Returns the index of the block in the grid.
    pub(crate) fn block(&self) -> V {
        self.special("ctaid.x")
    }

    /// Synchronizes the threads of the block and makes their writes visible to each other.
    pub(crate) fn barrier(&self) {
        self.append("nvvm.barrier0", &[], &[], &[], vec![]);
    }

    /// Returns shared memory of `count` elements of `f32`. Must be called at most once per kernel.
    pub(crate) fn shared(&self, count: i64) -> V {
        let bytes = count as u64 * 4;
        self.shared.set(bytes);
        let address = self.op(
            "llvm.mlir.addressof",
            &[],
            self.parsed_type("!llvm.ptr<3>"),
            &[("global_name", &format!("@{}", shared_name(bytes)))],
        );
        self.op("llvm.addrspacecast", &[address], self.pointer(), &[])
    }

    /// Returns the value of the lane whose index differs in these bits (butterfly shuffle).
    pub(crate) fn shuffled(&self, value: V, bits: i64) -> V {
        let int = self.int(32);
        let number = |value| self.integer(value, int);
        self.op(
            "nvvm.shfl.sync",
            &[number(-1), value, number(bits), number(31)],
            self.type_of(value),
            &[("kind", "#nvvm<shfl_kind bfly>")],
        )
    }

    /// Loads a vector of `count` elements of `f32` at an index that is a multiple of `count`.
    pub(crate) fn load_vector_aligned(&self, pointer: V, index: V, count: usize) -> V {
        let address = self.address(pointer, self.f32(), index);
        self.op("llvm.load", &[address], self.wide(count), &[("alignment", &format!("{} : i64", count * 4))])
    }

    /// Stores elements of `f32` as a vector at an index that is a multiple of their number.
    pub(crate) fn store_vector_aligned(&self, values: &[V], pointer: V, index: V) {
        let vector = self.op("vector.from_elements", values, self.wide(values.len()), &[]);
        let address = self.address(pointer, self.f32(), index);
        let alignment = self.named("alignment", self.attribute(&format!("{} : i64", values.len() * 4)));
        self.append("llvm.store", &[vector, address], &[], &[alignment], vec![]);
    }

    fn wide(&self, count: usize) -> Type {
        self.vector_of(count, self.f32())
    }

    /// Extracts an element of a vector.
    pub(crate) fn element(&self, vector: V, index: usize) -> V {
        let ty = self.element_of(self.type_of(vector));
        self.op("vector.extract", &[vector], ty, &[("static_position", &format!("array<i64: {index}>"))])
    }
}

/// Returns the symbol name of the shared memory of a size.
pub(crate) fn shared_name(bytes: u64) -> String {
    format!("shared_{bytes}")
}
