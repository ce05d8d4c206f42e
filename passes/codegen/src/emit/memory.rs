//! Elements in memory, as they are stored and as they are computed with.

use super::{Builder, Operation, Type, V};
use divi_onnx::DType;
use divi_runtime::bundle::Status;

impl Builder {
    /// The type that an element is stored as. `bfloat16` is stored as the integer of its bits: LLVM would call a library to
    /// convert it.
    fn stored(&self, dtype: DType) -> Type {
        match dtype {
            DType::F32 => self.f32(),
            DType::F64 => self.f64(),
            DType::F16 => self.f16(),
            _ => self.int((dtype.bits() as u32).max(8)),
        }
    }

    /// The address of an element.
    pub(crate) fn address(&self, pointer: V, element: Type, index: V) -> V {
        let attributes = [
            self.named("elem_type", element.as_attribute()),
            self.named("rawConstantIndices", self.attribute("array<i32: -2147483648>")),
        ];
        let operation = self.append("llvm.getelementptr", &[pointer, index], &[self.pointer()], &attributes, vec![]);
        self.result(operation, 0)
    }

    /// An element of a buffer as it is computed with. Types below a byte are packed, the first element in the low bits.
    pub(crate) fn load(&self, pointer: V, dtype: DType, index: V) -> V {
        if dtype.bits() < 8 {
            return self.load_packed(pointer, dtype, index);
        }
        let stored = self.stored(dtype);
        let value = self.op("llvm.load", &[self.address(pointer, stored, index)], stored, &[]);
        match dtype {
            DType::Bool => self.compare(super::Compare::NotEqual, value, self.zero(stored), false),
            DType::F16 => self.op("arith.extf", &[value], self.f32(), &[]),
            DType::BF16 => {
                let wide = self.resize(value, self.int(32), true);
                self.bitcast(self.shift_left(wide, self.integer(16, self.int(32))), self.f32())
            }
            _ => value,
        }
    }

    /// Writes an element that was computed.
    pub(crate) fn store(&self, value: V, pointer: V, dtype: DType, index: V) {
        if dtype.bits() < 8 {
            return self.store_packed(value, pointer, dtype, index);
        }
        let stored = self.stored(dtype);
        let value = match dtype {
            DType::Bool => self.resize(value, stored, true),
            DType::F16 => self.op("arith.truncf", &[value], stored, &[]),
            DType::BF16 => self.resize(self.rounded_to_bfloat16(value), stored, true),
            _ => value,
        };
        self.append("llvm.store", &[value, self.address(pointer, stored, index)], &[], &[], vec![]);
    }

    /// The upper half of an `f32`, rounded to nearest even, as the low half of an `i32`.
    fn rounded_to_bfloat16(&self, value: V) -> V {
        let ty = self.int(32);
        let number = |value| self.integer(value, ty);
        let bits = self.bitcast(value, ty);
        let upper = self.shift_right(bits, number(16), true);
        let odd = self.and(upper, number(1));
        let rounded = self.shift_right(self.add(self.add(bits, number(0x7fff)), odd), number(16), true);
        // Rounding must not make infinity of what is no number.
        self.select(self.is_nan(value), self.or(upper, number(0x40)), rounded)
    }

    fn load_packed(&self, pointer: V, dtype: DType, index: V) -> V {
        let byte = self.int(8);
        let per_byte = 8 / dtype.bits() as i64;
        let (place, part) = self.div_rem(index, per_byte);
        let value = self.op("llvm.load", &[self.address(pointer, byte, place)], byte, &[]);
        let shift = self.resize(self.times(part, dtype.bits() as i64), byte, true);
        // Up to the top, and down again with or without the sign.
        let top = self.sub(self.integer(8 - dtype.bits() as i64, byte), shift);
        self.shift_right(
            self.shift_left(value, top),
            self.integer(8 - dtype.bits() as i64, byte),
            dtype.is_unsigned_int(),
        )
    }

    /// Threads must not share a byte: whoever writes packed elements does so in one piece.
    fn store_packed(&self, value: V, pointer: V, dtype: DType, index: V) {
        let byte = self.int(8);
        let per_byte = 8 / dtype.bits() as i64;
        let (place, part) = self.div_rem(index, per_byte);
        let address = self.address(pointer, byte, place);
        let shift = self.resize(self.times(part, dtype.bits() as i64), byte, true);
        let ones = self.integer((1 << dtype.bits()) - 1, byte);
        let before = self.op("llvm.load", &[address], byte, &[]);
        let others = self.and(before, self.not(self.shift_left(ones, shift)));
        let value = self.shift_left(self.and(self.resize(value, byte, true), ones), shift);
        self.append("llvm.store", &[self.or(others, value), address], &[], &[], vec![]);
    }

    /// Memory of this call alone, for `count` elements; small ones only, and taken once, outside of loops.
    pub(crate) fn scratch(&self, count: i64, element: Type) -> V {
        let count = self.index(count);
        let attributes =
            [self.named("elem_type", element.as_attribute()), self.named("alignment", self.attribute("64 : i64"))];
        let operation = self.create("llvm.alloca", &[count], &[self.pointer()], &attributes, vec![]);
        self.at_entry(operation);
        self.result(operation, 0)
    }

    /// Puts an operation to the function's beginning, behind what was put there before.
    pub(super) fn at_entry(&self, operation: Operation) {
        match self.last_constant.get() {
            Some(last) => self.entry.get().insert_after(last, operation),
            None => self.entry.get().prepend(operation),
        }
        self.last_constant.set(Some(operation));
    }

    /// Makes the kernel return a status if the condition holds. It goes on, so what it does next must be safe.
    pub(crate) fn fail_when(&self, condition: V, status: Status) {
        let ty = self.int(32);
        let place = self.status.get().unwrap_or_else(|| {
            let place = self.scratch(1, ty);
            let done = self.integer(0, ty);
            let store = self.create("llvm.store", &[done, place], &[], &[], vec![]);
            self.at_entry(store);
            self.status.set(Some(place));
            place
        });
        self.when(condition, || {
            self.append("llvm.store", &[self.integer(status as i64, ty), place], &[], &[], vec![]);
        });
    }

    /// What the kernel returns.
    pub(super) fn final_status(&self) -> V {
        let ty = self.int(32);
        match self.status.get() {
            Some(place) => self.op("llvm.load", &[place], ty, &[]),
            None => self.integer(0, ty),
        }
    }

    /// An entry of a table that was made with the code, all of which are below `size`; 0 if the table was changed since.
    pub(crate) fn bounded_index(&self, index: V, size: i64) -> V {
        let outside = self.compare(super::Compare::GreaterOrEqual, index, self.index(size), true);
        self.select(outside, self.index(0), index)
    }

    /// An index of an axis, counted from the end if it is negative. Fails if it is outside, and is 0 then.
    pub(crate) fn checked_index(&self, index: V, size: i64) -> V {
        let size = self.index(size);
        let zero = self.index(0);
        let index = self.select(self.less(index, zero), self.add(index, size), index);
        let outside = self.compare(super::Compare::GreaterOrEqual, index, size, true);
        self.fail_when(outside, Status::IndexOutOfRange);
        self.select(outside, zero, index)
    }
}
