//! Kernels in the making: operations of `scf`, `arith`, `math`, `vector` and `llvm` (for memory), appended one by one.
//!
//! Counters and offsets are `i64`. Buffers are pointers, elements are addressed by index. What is loaded has the type that
//! is computed with: `i1` for `bool`, `f32` for `float16` and `bfloat16`, the type itself for all others.

mod arithmetic;
mod control;
mod function;
mod math;
mod memory;
mod small_float;
mod vector;

pub(crate) use arithmetic::Compare;
pub(crate) use function::{Form, Grid, Kernel, Signature};

use divi_onnx::DType;
use melior::StringRef;
use mlir_sys::*;
use std::cell::{Cell, RefCell};

/// A value of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V(pub(crate) MlirValue);

/// A type of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type(pub(crate) MlirType);

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: types live as long as their context.
        unsafe { mlirTypeEqual(self.0, other.0) }
    }
}

/// Appends operations to the block that it is at.
pub(crate) struct Builder {
    context: MlirContext,
    location: MlirLocation,
    block: Cell<MlirBlock>,
    /// Constants of the function, made once each at its beginning.
    constants: RefCell<rustc_hash::FxHashMap<(usize, u64), V>>,
    entry: Cell<MlirBlock>,
    /// The last constant at the function's beginning, behind which the next one goes.
    last_constant: Cell<Option<MlirOperation>>,
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

    /// Whether a GPU's thread runs it, and neighbours are other threads'.
    pub(crate) fn is_simt(&self) -> bool {
        self.form.grid.is_some()
    }

    // --- Types ------------------------------------------------------------------------------------------------------

    pub(crate) fn f32(&self) -> Type {
        // SAFETY: the context is alive.
        Type(unsafe { mlirF32TypeGet(self.context) })
    }

    pub(crate) fn f64(&self) -> Type {
        // SAFETY: the context is alive.
        Type(unsafe { mlirF64TypeGet(self.context) })
    }

    fn f16(&self) -> Type {
        // SAFETY: the context is alive.
        Type(unsafe { mlirF16TypeGet(self.context) })
    }

    /// Signless integers of any width.
    pub(crate) fn int(&self, bits: u32) -> Type {
        // SAFETY: the context is alive.
        Type(unsafe { mlirIntegerTypeGet(self.context, bits) })
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
        let shape = [lanes as i64];
        // SAFETY: the element type is alive, the shape outlives the call.
        Type(unsafe { mlirVectorTypeGet(1, shape.as_ptr(), element.0) })
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
        // SAFETY: the value is alive.
        Type(unsafe { mlirValueGetType(value.0) })
    }

    /// A scalar's type, or that of a vector's elements.
    pub(crate) fn element_of(&self, ty: Type) -> Type {
        // SAFETY: the type is alive, and a vector where it is asked for elements.
        unsafe { if mlirTypeIsAVector(ty.0) { Type(mlirShapedTypeGetElementType(ty.0)) } else { ty } }
    }

    /// How many elements a vector has; `None` for scalars.
    pub(crate) fn lanes_of(&self, ty: Type) -> Option<usize> {
        // SAFETY: the type is alive, and a vector where it is asked for its size.
        unsafe { mlirTypeIsAVector(ty.0).then(|| mlirShapedTypeGetDimSize(ty.0, 0) as usize) }
    }

    pub(crate) fn is_float(&self, ty: Type) -> bool {
        // SAFETY: the type is alive.
        unsafe { mlirTypeIsAFloat(self.element_of(ty).0) }
    }

    /// The width of an integer or floating-point type.
    pub(crate) fn bits(&self, ty: Type) -> u32 {
        let element = self.element_of(ty);
        // SAFETY: the type is alive, and of the kind that the accessor is for.
        unsafe {
            if mlirTypeIsAFloat(element.0) {
                mlirFloatTypeGetWidth(element.0)
            } else {
                mlirIntegerTypeGetWidth(element.0)
            }
        }
    }

    /// A type with other elements: a vector of as many, or a scalar.
    pub(crate) fn with_element(&self, ty: Type, element: Type) -> Type {
        self.lanes_of(ty).map_or(element, |lanes| self.vector_of(lanes, element))
    }

    pub(crate) fn parsed_type(&self, text: &str) -> Type {
        // SAFETY: the context is alive, the text outlives the call.
        Type(unsafe { mlirTypeParseGet(self.context, StringRef::new(text).to_raw()) })
    }

    // --- Operations -------------------------------------------------------------------------------------------------

    pub(crate) fn attribute(&self, text: &str) -> MlirAttribute {
        // SAFETY: the context is alive, the text outlives the call.
        let attribute = unsafe { mlirAttributeParseGet(self.context, StringRef::new(text).to_raw()) };
        debug_assert!(!attribute.ptr.is_null(), "{text} is no attribute");
        attribute
    }

    pub(crate) fn named(&self, name: &str, attribute: MlirAttribute) -> MlirNamedAttribute {
        // SAFETY: the context is alive, the name outlives the call.
        unsafe { mlirNamedAttributeGet(mlirIdentifierGet(self.context, StringRef::new(name).to_raw()), attribute) }
    }

    fn create(
        &self,
        name: &str,
        operands: &[V],
        results: &[Type],
        attributes: &[MlirNamedAttribute],
        regions: Vec<MlirRegion>,
    ) -> MlirOperation {
        let operands: Vec<_> = operands.iter().map(|value| value.0).collect();
        let results: Vec<_> = results.iter().map(|ty| ty.0).collect();
        // SAFETY: everything is alive and of one context; the lists outlive the calls; regions are given away.
        unsafe {
            let mut state = mlirOperationStateGet(StringRef::new(name).to_raw(), self.location);
            mlirOperationStateAddOperands(&mut state, operands.len() as isize, operands.as_ptr());
            mlirOperationStateAddResults(&mut state, results.len() as isize, results.as_ptr());
            mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
            mlirOperationStateAddOwnedRegions(&mut state, regions.len() as isize, regions.as_ptr());
            mlirOperationCreate(&mut state)
        }
    }

    /// Appends an operation.
    pub(crate) fn append(
        &self,
        name: &str,
        operands: &[V],
        results: &[Type],
        attributes: &[MlirNamedAttribute],
        regions: Vec<MlirRegion>,
    ) -> MlirOperation {
        let operation = self.create(name, operands, results, attributes, regions);
        // SAFETY: block and operation are alive, and nobody owns the operation yet.
        unsafe { mlirBlockAppendOwnedOperation(self.block.get(), operation) };
        operation
    }

    /// Appends an operation with one result.
    pub(crate) fn op(&self, name: &str, operands: &[V], result: Type, attributes: &[(&str, &str)]) -> V {
        let attributes: Vec<_> = attributes.iter().map(|(name, text)| self.named(name, self.attribute(text))).collect();
        let operation = self.append(name, operands, &[result], &attributes, vec![]);
        self.result(operation, 0)
    }

    fn result(&self, operation: MlirOperation, index: usize) -> V {
        // SAFETY: the operation is alive and has that many results.
        V(unsafe { mlirOperationGetResult(operation, index as isize) })
    }

    // --- Constants --------------------------------------------------------------------------------------------------

    fn constant(&self, ty: Type, bits: u64, attribute: impl FnOnce() -> MlirAttribute) -> V {
        if let Some(&value) = self.constants.borrow().get(&(ty.0.ptr as usize, bits)) {
            return value;
        }
        let value = self.named("value", attribute());
        let operation = self.create("arith.constant", &[], &[ty], &[value], vec![]);
        self.at_entry(operation);
        let value = self.result(operation, 0);
        self.constants.borrow_mut().insert((ty.0.ptr as usize, bits), value);
        value
    }

    /// An `i64`.
    pub(crate) fn index(&self, value: i64) -> V {
        self.integer(value, self.i64())
    }

    /// An integer of a type, or a vector with all elements the same.
    pub(crate) fn integer(&self, value: i64, ty: Type) -> V {
        // SAFETY: types are alive.
        self.constant(ty, value as u64, || unsafe {
            let element = mlirIntegerAttrGet(self.element_of(ty).0, value);
            if self.lanes_of(ty).is_some() { mlirDenseElementsAttrSplatGet(ty.0, element) } else { element }
        })
    }

    /// A floating-point number of a type, or a vector with all elements the same.
    pub(crate) fn float(&self, value: f64, ty: Type) -> V {
        // SAFETY: types are alive.
        self.constant(ty, value.to_bits(), || unsafe {
            let element = mlirFloatAttrDoubleGet(self.context, self.element_of(ty).0, value);
            if self.lanes_of(ty).is_some() { mlirDenseElementsAttrSplatGet(ty.0, element) } else { element }
        })
    }

    /// A number of a type of either kind.
    pub(crate) fn number(&self, value: f64, ty: Type) -> V {
        if self.is_float(ty) { self.float(value, ty) } else { self.integer(value as i64, ty) }
    }

    pub(crate) fn zero(&self, ty: Type) -> V {
        self.number(0.0, ty)
    }
}
