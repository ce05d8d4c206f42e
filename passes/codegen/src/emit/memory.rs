//! Loads and stores with conversion between storage and compute types, stack memory, status and index checks.

use super::{Builder, Operation, Tiles, Type, V};
use divi_onnx::DType;
use divi_runtime::bundle::Status;

impl Builder {
    /// Returns the storage type of elements. `bfloat16` is an integer here, because LLVM calls a library function to convert it on
    /// processors without an instruction for that.
    pub(super) fn stored(&self, dtype: DType) -> Type {
        match dtype {
            DType::F32 => self.f32(),
            DType::F64 => self.f64(),
            DType::F16 => self.f16(),
            _ => self.int((dtype.bits() as u32).max(8)),
        }
    }

    /// Returns the address of an element.
    pub(crate) fn address(&self, pointer: V, element: Type, index: V) -> V {
        let attributes = [
            self.named("elem_type", element.as_attribute()),
            self.named("rawConstantIndices", self.attribute("array<i32: -2147483648>")),
        ];
        let operation = self.append("llvm.getelementptr", &[pointer, index], &[self.pointer()], &attributes, vec![]);
        self.result(operation, 0)
    }

    /// Loads an element of a buffer and converts it to the compute type. Types narrower than a byte are packed, the first element in the
    /// low bits.
    pub(crate) fn load(&self, pointer: V, dtype: DType, index: V) -> V {
        if dtype.bits() < 8 {
            return self.load_packed(pointer, dtype, index);
        }
        let dtype = self.type_in_memory(pointer, dtype);
        let stored = self.stored(dtype);
        let value = self.op("llvm.load", &[self.address(pointer, stored, index)], stored, &[]);
        match dtype {
            DType::Bool => self.compare(super::Compare::NotEqual, value, self.zero(stored), false),
            _ => self.widened(value, dtype),
        }
    }

    /// Makes loads and stores of `f32` elements of a buffer convert from and to the half-precision type that they have in memory.
    pub(crate) fn set_half_precision(&self, pointer: V, dtype: DType) {
        self.half_precision.borrow_mut().push((pointer, dtype));
    }

    /// Returns the type that elements of a buffer have in memory if a kernel accesses them as `dtype`.
    pub(super) fn type_in_memory(&self, pointer: V, dtype: DType) -> DType {
        let buffers = self.half_precision.borrow();
        let half = buffers.iter().find(|(known, _)| dtype == DType::F32 && *known == pointer);
        half.map_or(dtype, |&(_, half)| half)
    }

    /// Converts an element or a vector of a half-precision type to `f32`; returns values of other types as they are.
    pub(super) fn widened(&self, value: V, dtype: DType) -> V {
        let of = |element: Type| self.with_element(self.type_of(value), element);
        match dtype {
            DType::F16 => self.op("arith.extf", &[value], of(self.f32()), &[]),
            DType::BF16 => {
                let ty = of(self.int(32));
                let wide = self.op("arith.extui", &[value], ty, &[]);
                self.bitcast(self.shift_left(wide, self.integer(16, ty)), of(self.f32()))
            }
            _ => value,
        }
    }

    /// Rounds an element or a vector of `f32` to a half-precision type; returns values for other types as they are.
    pub(super) fn narrowed(&self, value: V, dtype: DType) -> V {
        let of = |element: Type| self.with_element(self.type_of(value), element);
        match dtype {
            DType::F16 => self.op("arith.truncf", &[value], of(self.f16()), &[]),
            DType::BF16 if self.form.tiles == Tiles::Registers => {
                self.uses_tiles.set(true);
                let rounded = self.op("arith.truncf", &[value], of(self.bf16()), &[]);
                self.bitcast(rounded, of(self.int(16)))
            }
            DType::BF16 => self.op("arith.trunci", &[self.rounded_to_bfloat16(value)], of(self.int(16)), &[]),
            _ => value,
        }
    }

    /// Rounds an element or a vector of `f32` to a half-precision type.
    pub(crate) fn rounded_to_half(&self, value: V, dtype: DType) -> V {
        self.widened(self.narrowed(value, dtype), dtype)
    }

    /// Converts an element to the storage type and stores it.
    pub(crate) fn store(&self, value: V, pointer: V, dtype: DType, index: V) {
        if dtype.bits() < 8 {
            return self.store_packed(value, pointer, dtype, index);
        }
        let dtype = self.type_in_memory(pointer, dtype);
        let stored = self.stored(dtype);
        let value = if dtype == DType::Bool { self.resize(value, stored, true) } else { self.narrowed(value, dtype) };
        self.append("llvm.store", &[value, self.address(pointer, stored, index)], &[], &[], vec![]);
    }

    /// Returns the bits of `f32` rounded to `bfloat16` (nearest, ties to even), in the low half of `i32`.
    fn rounded_to_bfloat16(&self, value: V) -> V {
        let ty = self.with_element(self.type_of(value), self.int(32));
        let number = |value| self.integer(value, ty);
        let bits = self.bitcast(value, ty);
        let upper = self.shift_right(bits, number(16), true);
        let odd = self.and(upper, number(1));
        let rounded = self.shift_right(self.add(self.add(bits, number(0x7fff)), odd), number(16), true);
        // Rounding must not turn NaN into infinity.
        self.select(self.is_nan(value), self.or(upper, number(0x40)), rounded)
    }

    fn load_packed(&self, pointer: V, dtype: DType, index: V) -> V {
        let byte = self.int(8);
        let per_byte = 8 / dtype.bits() as i64;
        let (place, part) = self.div_rem(index, per_byte);
        let value = self.op("llvm.load", &[self.address(pointer, byte, place)], byte, &[]);
        let shift = self.resize(self.times(part, dtype.bits() as i64), byte, true);
        // Shift to the top, then back with zero or sign extension.
        let top = self.sub(self.integer(8 - dtype.bits() as i64, byte), shift);
        self.shift_right(
            self.shift_left(value, top),
            self.integer(8 - dtype.bits() as i64, byte),
            dtype.is_unsigned_int(),
        )
    }

    /// Stores a packed element by a read-modify-write of its byte, which is not atomic: threads must not share bytes.
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

    /// Allocates `count` elements on the stack, in the entry block; for small counts only.
    pub(crate) fn alloca(&self, count: i64, element: Type) -> V {
        let count = self.index(count);
        let attributes =
            [self.named("elem_type", element.as_attribute()), self.named("alignment", self.attribute("64 : i64"))];
        let operation = self.create("llvm.alloca", &[count], &[self.pointer()], &attributes, vec![]);
        self.at_entry(operation);
        self.result(operation, 0)
    }

    /// As [`Self::alloca`], for elements of `bf16` that are accessed as `f32`.
    pub(crate) fn half_alloca(&self, count: i64) -> V {
        let memory = self.alloca((count + 1) / 2, self.f32());
        self.set_half_precision(memory, DType::BF16);
        memory
    }

    /// Inserts an operation at the start of the entry block, after those inserted before.
    pub(super) fn at_entry(&self, operation: Operation) {
        match self.last_constant.get() {
            Some(last) => self.entry.get().insert_after(last, operation),
            None => self.entry.get().prepend(operation),
        }
        self.last_constant.set(Some(operation));
    }

    /// Makes the kernel return a status if the condition holds. Execution continues, so subsequent code must be safe.
    pub(crate) fn fail_if(&self, condition: V, status: Status) {
        let ty = self.int(32);
        let place = self.status.get().unwrap_or_else(|| {
            let place = self.alloca(1, ty);
            let done = self.integer(0, ty);
            let store = self.create("llvm.store", &[done, place], &[], &[], vec![]);
            self.at_entry(store);
            self.status.set(Some(place));
            place
        });
        self.if_then(condition, || {
            self.append("llvm.store", &[self.integer(status as i64, ty), place], &[], &[], vec![]);
        });
    }

    /// Returns the status of the kernel.
    pub(super) fn final_status(&self) -> V {
        let ty = self.int(32);
        match self.status.get() {
            Some(place) => self.op("llvm.load", &[place], ty, &[]),
            None => self.integer(0, ty),
        }
    }

    /// Returns an index from a table that was generated with the code, or 0 if it is not below `size`, which only a modified table can
    /// cause.
    pub(crate) fn bounded_index(&self, index: V, size: i64) -> V {
        let outside = self.compare(super::Compare::GreaterOrEqual, index, self.index(size), true);
        self.select(outside, self.index(0), index)
    }

    /// Returns an index into an axis, from the end if negative. If it is out of range, the kernel fails and the result is 0.
    pub(crate) fn checked_index(&self, index: V, size: i64) -> V {
        let size = self.index(size);
        let zero = self.index(0);
        let index = self.select(self.less(index, zero), self.add(index, size), index);
        let outside = self.compare(super::Compare::GreaterOrEqual, index, size, true);
        self.fail_if(outside, Status::IndexOutOfRange);
        self.select(outside, zero, index)
    }
}
