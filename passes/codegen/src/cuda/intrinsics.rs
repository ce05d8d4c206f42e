//! Intrinsics of NVVM: special registers, barriers, shared memory, shuffles, wide loads and stores.

use crate::emit::{Builder, Type, V};

impl Builder {
    fn special(&self, register: &str) -> V {
        let value = self.op(&format!("nvvm.read.ptx.sreg.{register}"), &[], self.int(32), &[]);
        self.resize(value, self.i64(), true)
    }

    /// Which thread of its block this one is.
    pub(crate) fn thread(&self) -> V {
        self.special("tid.x")
    }

    /// Which block of the grid this one is.
    pub(crate) fn block(&self) -> V {
        self.special("ctaid.x")
    }

    /// Waits until all threads of the block are here, and sees what they have written.
    pub(crate) fn barrier(&self) {
        self.append("nvvm.barrier0", &[], &[], &[], vec![]);
    }

    /// Memory that the threads of a block share, for as many elements of `f32`; taken once.
    pub(crate) fn shared(&self, count: i64) -> V {
        let bytes = count as u64 * 4;
        self.shared.set(bytes);
        let place = self.op(
            "llvm.mlir.addressof",
            &[],
            self.parsed_type("!llvm.ptr<3>"),
            &[("global_name", &format!("@{}", shared_name(bytes)))],
        );
        self.op("llvm.addrspacecast", &[place], self.pointer(), &[])
    }

    /// A number of the thread whose place in the warp differs in these bits.
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

    /// Some neighbours of `f32` at once, the first of which is at a multiple of their number.
    pub(crate) fn load_wide(&self, pointer: V, index: V, count: usize) -> V {
        let address = self.address(pointer, self.f32(), index);
        self.op("llvm.load", &[address], self.wide(count), &[("alignment", &format!("{} : i64", count * 4))])
    }

    /// Writes neighbours of `f32` at once, the first of them to a multiple of their number.
    pub(crate) fn store_wide(&self, values: &[V], pointer: V, index: V) {
        let vector = self.op("vector.from_elements", values, self.wide(values.len()), &[]);
        let address = self.address(pointer, self.f32(), index);
        let alignment = self.named("alignment", self.attribute(&format!("{} : i64", values.len() * 4)));
        self.append("llvm.store", &[vector, address], &[], &[alignment], vec![]);
    }

    fn wide(&self, count: usize) -> Type {
        self.vector_of(count, self.f32())
    }

    /// An element of a vector.
    pub(crate) fn element(&self, vector: V, index: usize) -> V {
        let ty = self.element_of(self.type_of(vector));
        self.op("vector.extract", &[vector], ty, &[("static_position", &format!("array<i64: {index}>"))])
    }
}

/// What the memory is called that a block's threads share.
pub(crate) fn shared_name(bytes: u64) -> String {
    format!("shared_{bytes}")
}
