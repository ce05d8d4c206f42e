//! Kernels in the making: operations of `scf`, `arith`, `math`, `vector` and `llvm` (for memory), appended one by one.
//!
//! Counters and offsets are `i64`. Buffers are pointers, elements are addressed by index. What is loaded has the type that
//! is computed with: `i1` for `bool`, `f32` for `float16` and `bfloat16`, the type itself for all others.

mod arithmetic;
mod control;
mod ffi;
mod function;
mod math;
mod memory;
mod small_float;
mod vector;

pub(crate) use arithmetic::Compare;
pub(crate) use ffi::{Attribute, NamedAttribute, Operation, Region, Type, V, call};
pub(crate) use function::{Form, Grid, Kernel, Signature};

use divi_onnx::DType;
use ffi::{Block, Ir};
use std::cell::{Cell, RefCell};

/// Appends operations to the block that it is at.
pub(crate) struct Builder {
    ir: Ir,
    block: Cell<Block>,
    /// Constants of the function, made once each at its beginning.
    constants: RefCell<rustc_hash::FxHashMap<(usize, u64), V>>,
    entry: Cell<Block>,
    /// The last constant at the function's beginning, behind which the next one goes.
    last_constant: Cell<Option<Operation>>,
    form: Form,
    /// Bytes of the memory that the threads of a GPU's block share.
    pub(crate) shared: Cell<u64>,
    /// Where the kernel keeps its status, if it can fail.
    status: Cell<Option<V>>,
    /// Buffers that whole lines are written to past the caches, and whether any was.
    streamed: RefCell<Vec<V>>,
    has_streamed: Cell<bool>,
}

impl Builder {
    /// Elements of `f32` that a register holds.
    pub(crate) fn lanes(&self) -> usize {
        self.form.lanes
    }

    /// Returns true if a GPU's thread runs it, and neighbours are other threads'.
    pub(crate) fn is_simt(&self) -> bool {
        self.form.grid.is_some()
    }

    // --- Types ------------------------------------------------------------------------------------------------------

    pub(crate) fn f32(&self) -> Type {
        self.ir.f32()
    }

    pub(crate) fn f64(&self) -> Type {
        self.ir.f64()
    }

    fn f16(&self) -> Type {
        self.ir.f16()
    }

    /// Signless integers of any width.
    pub(crate) fn int(&self, bits: u32) -> Type {
        self.ir.int(bits)
    }

    pub(crate) fn i64(&self) -> Type {
        self.int(64)
    }

    pub(crate) fn i1(&self) -> Type {
        self.int(1)
    }

    pub(crate) fn pointer(&self) -> Type {
        self.parsed_type("!llvm.ptr")
    }

    /// A register's worth of elements, or any other number of them.
    pub(crate) fn vector_of(&self, lanes: usize, element: Type) -> Type {
        element.vector(lanes)
    }

    /// The type that elements are computed with.
    pub(crate) fn computed(&self, dtype: DType) -> Type {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => self.f32(),
            DType::F64 => self.f64(),
            DType::Bool => self.i1(),
            _ => self.int((dtype.bits() as u32).max(8)),
        }
    }

    pub(crate) fn type_of(&self, value: V) -> Type {
        value.r#type()
    }

    /// A scalar's type, or that of a vector's elements.
    pub(crate) fn element_of(&self, ty: Type) -> Type {
        ty.element()
    }

    /// How many elements a vector has; `None` for scalars.
    pub(crate) fn lanes_of(&self, ty: Type) -> Option<usize> {
        ty.lanes()
    }

    pub(crate) fn is_float(&self, ty: Type) -> bool {
        ty.element().is_float()
    }

    /// The width of an integer or floating-point type.
    pub(crate) fn bits(&self, ty: Type) -> u32 {
        ty.element().bits()
    }

    /// A type with other elements: a vector of as many, or a scalar.
    pub(crate) fn with_element(&self, ty: Type, element: Type) -> Type {
        self.lanes_of(ty).map_or(element, |lanes| self.vector_of(lanes, element))
    }

    pub(crate) fn parsed_type(&self, text: &str) -> Type {
        self.ir.parsed_type(text)
    }

    // --- Operations -------------------------------------------------------------------------------------------------

    pub(crate) fn attribute(&self, text: &str) -> Attribute {
        self.ir.parsed_attribute(text)
    }

    pub(crate) fn named(&self, name: &str, attribute: Attribute) -> NamedAttribute {
        self.ir.named(name, attribute)
    }

    fn create(
        &self,
        name: &str,
        operands: &[V],
        results: &[Type],
        attributes: &[NamedAttribute],
        regions: Vec<Region>,
    ) -> Operation {
        self.ir.create(name, operands, results, attributes, &regions)
    }

    /// Appends an operation.
    pub(crate) fn append(
        &self,
        name: &str,
        operands: &[V],
        results: &[Type],
        attributes: &[NamedAttribute],
        regions: Vec<Region>,
    ) -> Operation {
        let operation = self.create(name, operands, results, attributes, regions);
        self.block.get().append(operation);
        operation
    }

    /// Appends an operation with one result.
    pub(crate) fn op(&self, name: &str, operands: &[V], result: Type, attributes: &[(&str, &str)]) -> V {
        let attributes: Vec<_> = attributes.iter().map(|(name, text)| self.named(name, self.attribute(text))).collect();
        let operation = self.append(name, operands, &[result], &attributes, vec![]);
        self.result(operation, 0)
    }

    fn result(&self, operation: Operation, index: usize) -> V {
        operation.result(index)
    }

    // --- Constants --------------------------------------------------------------------------------------------------

    fn constant(&self, ty: Type, bits: u64, attribute: impl FnOnce() -> Attribute) -> V {
        if let Some(&value) = self.constants.borrow().get(&(ty.id(), bits)) {
            return value;
        }
        let value = self.named("value", attribute());
        let operation = self.create("arith.constant", &[], &[ty], &[value], vec![]);
        self.at_entry(operation);
        let value = self.result(operation, 0);
        self.constants.borrow_mut().insert((ty.id(), bits), value);
        value
    }

    /// An `i64`.
    pub(crate) fn index(&self, value: i64) -> V {
        self.integer(value, self.i64())
    }

    /// An integer of a type, or a vector with all elements the same.
    pub(crate) fn integer(&self, value: i64, ty: Type) -> V {
        self.constant(ty, value as u64, || self.ir.integer(ty, value))
    }

    /// A floating-point number of a type, or a vector with all elements the same.
    pub(crate) fn float(&self, value: f64, ty: Type) -> V {
        self.constant(ty, value.to_bits(), || self.ir.float(ty, value))
    }

    /// A number of a type of either kind.
    pub(crate) fn number(&self, value: f64, ty: Type) -> V {
        if self.is_float(ty) { self.float(value, ty) } else { self.integer(value as i64, ty) }
    }

    pub(crate) fn zero(&self, ty: Type) -> V {
        self.number(0.0, ty)
    }
}
