//! IR builder for kernels in the dialects `scf`, `arith`, `math`, `vector` and `llvm` (for memory).
//!
//! Counters and offsets are `i64`. Buffers are pointers; elements are addressed by index. A load converts an element to the type that
//! kernels compute with: `i1` for `bool`, `f32` for `float16` and `bfloat16`, the stored type for all others.
//!
//! Methods of [`Builder`] append operations to the current block and return their results.

mod arithmetic;
mod control;
mod ffi;
mod function;
mod math;
mod memory;
mod small_float;
mod tile;
mod vector;

pub(crate) use arithmetic::Compare;
pub(crate) use ffi::{Attribute, NamedAttribute, Operation, Region, Type, V, call};
pub(crate) use function::{Grid, Kernel, KernelTarget, Signature};
pub(crate) use math::Math;
pub(crate) use tile::{TILE_COLUMNS, TileShape, Tiles};
pub(crate) use vector::{Mask, Reduction};

use divi_onnx::DType;
use ffi::{Block, Ir};
use std::cell::{Cell, RefCell};

/// Builder of one kernel. Appends operations at the end of the current block.
pub(crate) struct Builder {
    ir: Ir,
    block: Cell<Block>,
    /// Constants at the start of the entry block, by type and bits, without duplicates.
    constants: RefCell<rustc_hash::FxHashMap<(usize, u64), V>>,
    entry: Cell<Block>,
    /// Last operation inserted at the start of the entry block; the next one follows it.
    last_constant: Cell<Option<Operation>>,
    form: KernelTarget,
    /// Bytes of shared memory per block of a GPU.
    pub(crate) shared: Cell<u64>,
    /// Pointer to the kernel's status; `None` if it cannot fail.
    status: Cell<Option<V>>,
    /// Buffers of half-precision elements that kernels access as `f32`.
    half_precision: RefCell<Vec<(V, DType)>>,
    /// Buffers that [`Builder::store_aligned`] writes with non-temporal stores.
    streamed: RefCell<Vec<V>>,
    /// True if the kernel contains a non-temporal store.
    has_streamed: Cell<bool>,
    /// True if the kernel has instructions that only processors with tile registers have.
    uses_tiles: Cell<bool>,
    /// Memory of emulated tile registers.
    emulated: Cell<Option<V>>,
}

impl Builder {
    /// Returns the number of `f32` lanes of a vector register.
    pub(crate) fn lanes(&self) -> usize {
        self.form.lanes
    }

    /// Returns true if the kernel is for a SIMT device, where each thread computes single elements.
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

    fn bf16(&self) -> Type {
        self.ir.bf16()
    }

    /// Returns a signless integer type.
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

    /// Returns a vector type with any number of lanes.
    pub(crate) fn vector_of(&self, lanes: usize, element: Type) -> Type {
        element.vector(lanes)
    }

    /// Returns the type that kernels compute elements with.
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

    /// Returns the element type of a vector type; scalar types are returned as they are.
    pub(crate) fn element_of(&self, ty: Type) -> Type {
        ty.element()
    }

    /// Returns the number of lanes of a vector type; `None` for scalars.
    pub(crate) fn lanes_of(&self, ty: Type) -> Option<usize> {
        ty.lanes()
    }

    pub(crate) fn is_float(&self, ty: Type) -> bool {
        ty.element().is_float()
    }

    /// Returns the width in bits of the element type.
    pub(crate) fn bits(&self, ty: Type) -> u32 {
        ty.element().bits()
    }

    /// Returns a type of the same lanes with another element type.
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

    /// Returns the constant of a type with these bits; inserts it at the start of the entry block if it is new.
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

    /// Returns an `i64` constant.
    pub(crate) fn index(&self, value: i64) -> V {
        self.integer(value, self.i64())
    }

    /// Returns an integer constant of a type; a splat for vectors.
    pub(crate) fn integer(&self, value: i64, ty: Type) -> V {
        self.constant(ty, value as u64, || self.ir.integer(ty, value))
    }

    /// Returns a floating-point constant of a type; a splat for vectors.
    pub(crate) fn float(&self, value: f64, ty: Type) -> V {
        self.constant(ty, value.to_bits(), || self.ir.float(ty, value))
    }

    /// Returns a constant of an integer or floating-point type.
    pub(crate) fn number(&self, value: f64, ty: Type) -> V {
        if self.is_float(ty) { self.float(value, ty) } else { self.integer(value as i64, ty) }
    }

    pub(crate) fn zero(&self, ty: Type) -> V {
        self.number(0.0, ty)
    }
}
