//! Raw handles of the IR of kernels.
//!
//! Handles belong to the context of the builder that created them, which [`crate::kernels::Kernels`] keeps alive as long as its kernels.

use melior::{Context, StringRef, ir::Module};
use mlir_sys::*;
use std::ffi::c_void;

/// Calls a function of MLIR's C API. Callers guarantee that handles are alive (see above), indices are in range, accessors of a kind of type
/// are called on that kind only, and slices and strings outlive the call.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: see above.
        unsafe { $function($($argument),*) }
    }};
}
pub(crate) use call;

/// SSA value.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct V(MlirValue);

impl PartialEq for V {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr == other.0.ptr
    }
}

impl V {
    pub(super) fn r#type(self) -> Type {
        Type(call!(mlirValueGetType(self.0)))
    }
}

/// MLIR type.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Type(MlirType);

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        call!(mlirTypeEqual(self.0, other.0))
    }
}

impl Type {
    /// Returns an identifier that is unique among the types of its context.
    pub(super) fn id(self) -> usize {
        self.0.ptr as usize
    }

    pub(super) fn is_vector(self) -> bool {
        call!(mlirTypeIsAVector(self.0))
    }

    /// Returns the element type of a vector type; scalar types are returned as they are.
    pub(super) fn element(self) -> Self {
        if self.is_vector() { Self(call!(mlirShapedTypeGetElementType(self.0))) } else { self }
    }

    /// Returns the number of lanes of a vector type; `None` for scalars.
    pub(super) fn lanes(self) -> Option<usize> {
        self.is_vector().then(|| call!(mlirShapedTypeGetDimSize(self.0, 0)) as usize)
    }

    pub(super) fn is_float(self) -> bool {
        call!(mlirTypeIsAFloat(self.0))
    }

    /// Returns the width in bits of an integer or floating-point type.
    pub(super) fn bits(self) -> u32 {
        if self.is_float() { call!(mlirFloatTypeGetWidth(self.0)) } else { call!(mlirIntegerTypeGetWidth(self.0)) }
    }

    /// Returns the vector type with this element type.
    pub(super) fn vector(self, lanes: usize) -> Self {
        let shape = [lanes as i64];
        Self(call!(mlirVectorTypeGet(1, shape.as_ptr(), self.0)))
    }

    pub(super) fn as_attribute(self) -> Attribute {
        Attribute(call!(mlirTypeAttrGet(self.0)))
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Attribute(MlirAttribute);

/// An attribute under its name.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct NamedAttribute(MlirNamedAttribute);

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Region(MlirRegion);

impl Region {
    /// Creates a region without blocks.
    pub(super) fn empty() -> Self {
        Self(call!(mlirRegionCreate()))
    }

    /// Creates a region with one block.
    pub(super) fn of(block: Block) -> Self {
        let region = Self::empty();
        call!(mlirRegionAppendOwnedBlock(region.0, block.0));
        region
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(MlirBlock);

impl Block {
    pub(super) fn argument(self, index: usize) -> V {
        V(call!(mlirBlockGetArgument(self.0, index as isize)))
    }

    pub(super) fn append(self, operation: Operation) {
        call!(mlirBlockAppendOwnedOperation(self.0, operation.0));
    }

    pub(super) fn prepend(self, operation: Operation) {
        call!(mlirBlockInsertOwnedOperation(self.0, 0, operation.0));
    }

    pub(super) fn insert_after(self, other: Operation, operation: Operation) {
        call!(mlirBlockInsertOwnedOperationAfter(self.0, other.0, operation.0));
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation(MlirOperation);

impl Operation {
    pub(super) fn result(self, index: usize) -> V {
        V(call!(mlirOperationGetResult(self.0, index as isize)))
    }

    /// Destroys a detached operation.
    pub(crate) fn erase(self) {
        call!(mlirOperationDestroy(self.0));
    }

    /// Renames a detached function and appends it to a module.
    pub(crate) fn append_to(self, module: &Module<'_>, name: &str) {
        let context = call!(mlirOperationGetContext(self.0));
        let name = call!(mlirStringAttrGet(context, StringRef::new(name).to_raw()));
        call!(mlirOperationSetAttributeByName(self.0, StringRef::new("sym_name").to_raw(), name));
        let body = call!(mlirModuleGetBody(module.to_raw()));
        call!(mlirBlockAppendOwnedOperation(body, self.0));
    }

    /// Prints the operation into `sink`, piece by piece.
    pub(crate) fn print(self, mut sink: &mut dyn FnMut(&[u8])) {
        unsafe extern "C" fn write(text: MlirStringRef, sink: *mut c_void) {
            if text.length == 0 {
                return;
            }
            // SAFETY: MLIR passes text that outlives the call.
            let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
            // SAFETY: MLIR passes the user data of `mlirOperationPrint`, which is the sink.
            let sink = unsafe { &mut *sink.cast::<&mut dyn FnMut(&[u8])>() };
            sink(bytes);
        }
        call!(mlirOperationPrint(self.0, Some(write), (&raw mut sink).cast()));
    }
}

/// MLIR context and the location of all operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ir {
    context: MlirContext,
    location: MlirLocation,
}

impl Ir {
    pub(super) fn new(context: &Context) -> Self {
        let context = context.to_raw();
        Self { context, location: call!(mlirLocationUnknownGet(context)) }
    }

    pub(super) fn f16(self) -> Type {
        Type(call!(mlirF16TypeGet(self.context)))
    }

    pub(super) fn bf16(self) -> Type {
        Type(call!(mlirBF16TypeGet(self.context)))
    }

    pub(super) fn f32(self) -> Type {
        Type(call!(mlirF32TypeGet(self.context)))
    }

    pub(super) fn f64(self) -> Type {
        Type(call!(mlirF64TypeGet(self.context)))
    }

    pub(super) fn int(self, bits: u32) -> Type {
        Type(call!(mlirIntegerTypeGet(self.context, bits)))
    }

    pub(super) fn parsed_type(self, text: &str) -> Type {
        let r#type = call!(mlirTypeParseGet(self.context, StringRef::new(text).to_raw()));
        assert!(!r#type.ptr.is_null(), "{text} is not a type");
        Type(r#type)
    }

    pub(super) fn function_type(self, arguments: &[Type], result: Type) -> Type {
        let (count, arguments) = (arguments.len() as isize, arguments.as_ptr().cast());
        Type(call!(mlirFunctionTypeGet(self.context, count, arguments, 1, &result.0)))
    }

    pub(super) fn parsed_attribute(self, text: &str) -> Attribute {
        let attribute = call!(mlirAttributeParseGet(self.context, StringRef::new(text).to_raw()));
        assert!(!attribute.ptr.is_null(), "{text} is not an attribute");
        Attribute(attribute)
    }

    pub(super) fn string(self, text: &str) -> Attribute {
        Attribute(call!(mlirStringAttrGet(self.context, StringRef::new(text).to_raw())))
    }

    pub(super) fn array(self, elements: &[Attribute]) -> Attribute {
        Attribute(call!(mlirArrayAttrGet(self.context, elements.len() as isize, elements.as_ptr().cast())))
    }

    /// Returns an integer attribute; a splat for vector types.
    pub(super) fn integer(self, r#type: Type, value: i64) -> Attribute {
        let element = call!(mlirIntegerAttrGet(r#type.element().0, value));
        splat(r#type, element)
    }

    /// Returns a floating-point attribute; a splat for vector types.
    pub(super) fn float(self, r#type: Type, value: f64) -> Attribute {
        let element = call!(mlirFloatAttrDoubleGet(self.context, r#type.element().0, value));
        splat(r#type, element)
    }

    pub(super) fn named(self, name: &str, attribute: Attribute) -> NamedAttribute {
        let name = call!(mlirIdentifierGet(self.context, StringRef::new(name).to_raw()));
        NamedAttribute(MlirNamedAttribute { name, attribute: attribute.0 })
    }

    /// Creates a detached block.
    pub(super) fn block(self, arguments: &[Type]) -> Block {
        let locations = vec![self.location; arguments.len()];
        Block(call!(mlirBlockCreate(arguments.len() as isize, arguments.as_ptr().cast(), locations.as_ptr())))
    }

    /// Creates a detached operation, which takes ownership of the regions.
    pub(super) fn create(
        self,
        name: &str,
        operands: &[V],
        results: &[Type],
        attributes: &[NamedAttribute],
        regions: &[Region],
    ) -> Operation {
        let mut state = call!(mlirOperationStateGet(StringRef::new(name).to_raw(), self.location));
        let state = &mut state;
        call!(mlirOperationStateAddOperands(state, operands.len() as isize, operands.as_ptr().cast()));
        call!(mlirOperationStateAddResults(state, results.len() as isize, results.as_ptr().cast()));
        call!(mlirOperationStateAddAttributes(state, attributes.len() as isize, attributes.as_ptr().cast()));
        call!(mlirOperationStateAddOwnedRegions(state, regions.len() as isize, regions.as_ptr().cast()));
        Operation(call!(mlirOperationCreate(state)))
    }
}

fn splat(r#type: Type, element: MlirAttribute) -> Attribute {
    match r#type.is_vector() {
        true => Attribute(call!(mlirDenseElementsAttrSplatGet(r#type.0, element))),
        false => Attribute(element),
    }
}
