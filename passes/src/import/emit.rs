//! Building MLIR. Import creates thousands of operations, so this talks to the C API directly and caches what repeats.

use divi_onnx::{Attr, TensorType};
use melior::{
    Context, StringRef,
    ir::{AttributeLike, TypeLike},
};
use mlir_sys::*;
use rustc_hash::FxHashMap;

/// Creates operations at the end of the current block.
pub(super) struct Emitter<'c> {
    pub(super) context: &'c Context,
    raw: MlirContext,
    /// Blocks being filled, outermost first.
    blocks: Vec<MlirBlock>,
    file: MlirLocation,
    /// Attribute names seen before; hashing them here is cheaper than in MLIR.
    identifiers: FxHashMap<String, MlirIdentifier>,
    si64: MlirType,
    i64: MlirType,
    f32: MlirType,
    none: MlirType,
}

/// A location that names a node of the model's file.
fn named_location(context: MlirContext, file: MlirLocation, name: &str) -> MlirLocation {
    // SAFETY: the name outlives the call.
    unsafe { mlirLocationNameGet(context, StringRef::new(name).to_raw(), file) }
}

impl<'c> Emitter<'c> {
    pub(super) fn new(context: &'c Context, file: &str) -> Self {
        let raw = context.to_raw();
        // SAFETY: the context is alive and outlives the emitter.
        unsafe {
            Self {
                context,
                raw,
                blocks: vec![],
                file: mlirLocationFileLineColGet(raw, StringRef::new(file).to_raw(), 0, 0),
                identifiers: FxHashMap::default(),
                si64: mlirIntegerTypeSignedGet(raw, 64),
                i64: mlirIntegerTypeGet(raw, 64),
                f32: mlirF32TypeGet(raw),
                none: mlirNoneTypeGet(raw),
            }
        }
    }

    pub(super) fn file_location(&self) -> MlirLocation {
        self.file
    }

    pub(super) fn location(&self, name: &str) -> MlirLocation {
        named_location(self.raw, self.file, name)
    }

    pub(super) fn none_type(&self) -> MlirType {
        self.none
    }

    pub(super) fn tensor_type(&self, ty: &TensorType) -> MlirType {
        divi_dialect::tensor_type(self.context, ty).to_raw()
    }

    /// Opens a block for `operation` and the like to append to.
    pub(super) fn enter(&mut self, block: MlirBlock) {
        self.blocks.push(block);
    }

    /// The innermost open block.
    pub(super) fn block(&self) -> MlirBlock {
        *self.blocks.last().expect("a block is open while nodes are translated")
    }

    pub(super) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// An attribute under its name.
    pub(super) fn named(&mut self, name: &str, attribute: MlirAttribute) -> MlirNamedAttribute {
        let name = match self.identifiers.get(name) {
            Some(&identifier) => identifier,
            None => {
                // SAFETY: the name outlives the call.
                let identifier = unsafe { mlirIdentifierGet(self.raw, StringRef::new(name).to_raw()) };
                self.identifiers.insert(name.to_owned(), identifier);
                identifier
            }
        };
        MlirNamedAttribute { name, attribute }
    }

    pub(super) fn string(&self, text: &str) -> MlirAttribute {
        // SAFETY: the text outlives the call.
        unsafe { mlirStringAttrGet(self.raw, StringRef::new(text).to_raw()) }
    }

    /// The MLIR form of an attribute: integers are `si64`, lists are arrays of `i64`, `f32` or strings, as in onnx-mlir.
    /// `None` for kinds that have none.
    pub(super) fn attribute(&self, attr: &Attr) -> Option<MlirAttribute> {
        let array = |elements: Vec<MlirAttribute>| {
            // SAFETY: the elements outlive the call.
            unsafe { mlirArrayAttrGet(self.raw, elements.len() as isize, elements.as_ptr()) }
        };
        // SAFETY: types and texts are alive.
        unsafe {
            Some(match attr {
                Attr::Int(value) => mlirIntegerAttrGet(self.si64, *value),
                Attr::Float(value) => mlirFloatAttrDoubleGet(self.raw, self.f32, (*value).into()),
                Attr::Str(text) => self.string(text),
                Attr::Ints(values) => array(values.iter().map(|&v| mlirIntegerAttrGet(self.i64, v)).collect()),
                Attr::Floats(values) => {
                    array(values.iter().map(|&v| mlirFloatAttrDoubleGet(self.raw, self.f32, v.into())).collect())
                }
                Attr::Strs(values) => array(values.iter().map(|text| self.string(text)).collect()),
                Attr::Tensor(tensor) => divi_dialect::dense_elements(self.context, tensor).to_raw(),
                Attr::DType(dtype) => mlirTypeAttrGet(divi_dialect::element_type(self.context, *dtype).to_raw()),
                Attr::Other => return None,
            })
        }
    }

    /// Appends an operation to the innermost block.
    pub(super) fn append(&self, operation: &NewOperation<'_>) -> MlirOperation {
        create(operation, self.block())
    }

    /// Appends an operation to the outermost block, so that it is visible everywhere.
    pub(super) fn hoist(&self, operation: &NewOperation<'_>) -> MlirOperation {
        create(operation, *self.blocks.first().expect("a block is open while nodes are translated"))
    }
}

/// An operation to be created.
pub(super) struct NewOperation<'a> {
    pub(super) name: &'a str,
    pub(super) location: MlirLocation,
    pub(super) operands: &'a [MlirValue],
    pub(super) results: &'a [MlirType],
    pub(super) attributes: &'a [MlirNamedAttribute],
    pub(super) regions: &'a [MlirRegion],
}

impl<'a> NewOperation<'a> {
    pub(super) fn new(name: &'a str, location: MlirLocation) -> Self {
        Self { name, location, operands: &[], results: &[], attributes: &[], regions: &[] }
    }
}

fn create(operation: &NewOperation<'_>, block: MlirBlock) -> MlirOperation {
    let NewOperation { name, location, operands, results, attributes, regions } = *operation;
    // SAFETY: every slice outlives the call, values and types belong to this context, regions are owned by nobody yet.
    unsafe {
        let mut state = mlirOperationStateGet(StringRef::new(name).to_raw(), location);
        mlirOperationStateAddOperands(&mut state, operands.len() as isize, operands.as_ptr());
        mlirOperationStateAddResults(&mut state, results.len() as isize, results.as_ptr());
        mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
        mlirOperationStateAddOwnedRegions(&mut state, regions.len() as isize, regions.as_ptr());
        let operation = mlirOperationCreate(&mut state);
        mlirBlockAppendOwnedOperation(block, operation);
        operation
    }
}

/// A result of an operation that was just created.
pub(super) fn result(operation: MlirOperation, index: usize) -> MlirValue {
    // SAFETY: the caller asks for a result that it gave the operation.
    unsafe { mlirOperationGetResult(operation, index as isize) }
}
