//! Builds MLIR. Import creates thousands of operations, so recurring identifiers and types are cached.

use divi_dialect::{Block, NamedAttribute, NewOperation, Operation, Region, attr};
use divi_onnx::{Attr, TensorType};
use melior::{
    Context,
    ir::{Attribute, Identifier, Location, Type, r#type::IntegerType},
};
use rustc_hash::FxHashMap;

/// Creates operations at the end of the current block.
pub(super) struct Emitter<'c> {
    pub(super) context: &'c Context,
    /// Blocks being filled, outermost first.
    blocks: Vec<Block<'c>>,
    file: Location<'c>,
    /// Cache of attribute names; a lookup here is cheaper than in MLIR.
    identifiers: FxHashMap<String, Identifier<'c>>,
    si64: Type<'c>,
    i64: Type<'c>,
    f32: Type<'c>,
    none: Type<'c>,
}

impl<'c> Emitter<'c> {
    pub(super) fn new(context: &'c Context, file: &str) -> Self {
        Self {
            context,
            blocks: vec![],
            file: Location::new(context, file, 0, 0),
            identifiers: FxHashMap::default(),
            si64: IntegerType::signed(context, 64).into(),
            i64: IntegerType::new(context, 64).into(),
            f32: Type::float32(context),
            none: Type::none(context),
        }
    }

    pub(super) fn file_location(&self) -> Location<'c> {
        self.file
    }

    /// Returns a location that names a node of the model's file.
    pub(super) fn location(&self, name: &str) -> Location<'c> {
        Location::name(self.context, name, self.file)
    }

    pub(super) fn none_type(&self) -> Type<'c> {
        self.none
    }

    pub(super) fn tensor_type(&self, ty: &TensorType) -> Type<'c> {
        divi_dialect::tensor_type(self.context, ty)
    }

    /// Opens a block to append operations to.
    pub(super) fn enter(&mut self, block: Block<'c>) {
        self.blocks.push(block);
    }

    /// Returns the innermost open block.
    pub(super) fn block(&self) -> Block<'c> {
        *self.blocks.last().expect("a block is open while nodes are translated")
    }

    pub(super) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Returns an attribute with its name.
    pub(super) fn named(&mut self, name: &str, attribute: Attribute<'c>) -> NamedAttribute<'c> {
        let name = match self.identifiers.get(name) {
            Some(&identifier) => identifier,
            None => {
                let identifier = Identifier::new(self.context, name);
                self.identifiers.insert(name.to_owned(), identifier);
                identifier
            }
        };
        NamedAttribute::new(name, attribute)
    }

    pub(super) fn string(&self, text: &str) -> Attribute<'c> {
        attr::string(self.context, text)
    }

    /// Converts an attribute to MLIR: integers to `si64`, lists to arrays of `i64`, `f32` or strings, as in onnx-mlir.
    /// `None` for kinds that have no MLIR form.
    pub(super) fn attribute(&self, value: &Attr) -> Option<Attribute<'c>> {
        let array = |elements: Vec<Attribute<'c>>| attr::array(self.context, &elements);
        let float = |value: f32| attr::float_of_type(self.f32, value.into());
        Some(match value {
            Attr::Int(value) => attr::integer_of_type(self.si64, *value),
            Attr::Float(value) => float(*value),
            Attr::Str(text) => self.string(text),
            Attr::Ints(values) => array(values.iter().map(|&v| attr::integer_of_type(self.i64, v)).collect()),
            Attr::Floats(values) => array(values.iter().map(|&v| float(v)).collect()),
            Attr::Strs(values) => array(values.iter().map(|text| self.string(text)).collect()),
            Attr::Tensor(tensor) => divi_dialect::dense_elements(self.context, tensor),
            Attr::DType(dtype) => attr::type_attribute(divi_dialect::element_type(self.context, *dtype)),
            Attr::Other => return None,
        })
    }

    /// Appends an operation to the innermost block.
    pub(super) fn append(&self, operation: &NewOperation<'_, 'c>) -> Operation<'c> {
        operation.create().append_to(self.block())
    }

    /// Appends an operation to the outermost block, so that it is visible everywhere.
    pub(super) fn hoist(&self, operation: &NewOperation<'_, 'c>) -> Operation<'c> {
        let outermost = *self.blocks.first().expect("a block is open while nodes are translated");
        operation.create().append_to(outermost)
    }
}

/// Region under construction. It is destroyed with its contents unless an operation takes it.
pub(super) struct NewRegion<'c>(Option<Region<'c>>);

impl<'c> NewRegion<'c> {
    /// Creates a region with one block.
    pub(super) fn of(block: Block<'c>) -> Self {
        let region = Region::create();
        region.append(block);
        Self(Some(region))
    }

    /// Returns the region for an operation that is about to be created.
    pub(super) fn into_region(mut self) -> Region<'c> {
        self.0.take().expect("only this takes the region")
    }
}

impl Drop for NewRegion<'_> {
    fn drop(&mut self) {
        if let Some(region) = self.0.take() {
            region.destroy();
        }
    }
}
