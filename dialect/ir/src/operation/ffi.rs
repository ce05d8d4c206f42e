//! References to MLIR's operations.

use crate::{
    Block, ContextLike, Region, Value,
    context::{RawContext, text},
    ffi::call,
};
use melior::{
    Context, ContextRef, StringRef,
    ir::{
        Attribute, AttributeLike, Identifier, Location, Module, Type, TypeLike,
        operation::{OperationLike, OperationRef},
    },
};
use mlir_sys::*;
use std::marker::PhantomData;

/// Reference to an operation inside a module that lives for `'m`.
///
/// References are `Copy` and allow mutation, like pointers in C++: after [`erase`](Self::erase), references to the operation
/// and to its results must not be used.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'m>(OperationRef<'m, 'm>);

impl PartialEq for Operation<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_raw().ptr == other.0.to_raw().ptr
    }
}

impl Eq for Operation<'_> {}

impl std::hash::Hash for Operation<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_raw().ptr.hash(state);
    }
}

impl<'m> From<OperationRef<'m, 'm>> for Operation<'m> {
    fn from(operation: OperationRef<'m, 'm>) -> Self {
        Self(operation)
    }
}

impl<'m> From<&'m Module<'_>> for Operation<'m> {
    fn from(module: &'m Module<'_>) -> Self {
        // SAFETY: the module is borrowed for `'m`, and its context outlives it.
        unsafe { Self::from_raw(module.as_operation().to_raw()) }
    }
}

impl<'m> Operation<'m> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The operation must be alive for `'m`.
    pub unsafe fn from_raw(raw: MlirOperation) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { OperationRef::from_raw(raw) })
    }

    /// Wraps a pointer that may be null.
    ///
    /// # Safety
    /// The operation must be alive for `'m`.
    pub(crate) unsafe fn from_option_raw(raw: MlirOperation) -> Option<Self> {
        // SAFETY: guaranteed by the caller.
        (!raw.ptr.is_null()).then(|| unsafe { Self::from_raw(raw) })
    }

    /// Returns melior's reference.
    pub fn as_melior(self) -> OperationRef<'m, 'm> {
        self.0
    }

    fn raw(self) -> MlirOperation {
        self.0.to_raw()
    }

    /// Returns the context.
    pub fn context(self) -> ContextRef<'m> {
        self.0.context()
    }

    /// Returns the name with its dialect: `onnx.Conv`.
    pub fn name(self) -> &'m str {
        let name = call!(mlirOperationGetName(self.raw()));
        let name = call!(mlirIdentifierStr(name));
        call!(text(name))
    }

    /// Returns the source location.
    pub fn location(self) -> Location<'m> {
        self.0.location()
    }

    /// Returns the block that contains the operation.
    pub fn block(self) -> Option<Block<'m>> {
        let block = call!(mlirOperationGetBlock(self.raw()));
        // SAFETY: a block lives as long as its operations.
        unsafe { Block::from_option_raw(block) }
    }

    /// Returns the operation whose region contains this one.
    pub fn parent(self) -> Option<Operation<'m>> {
        // MLIR's own accessor requires a block.
        self.block().and_then(Block::parent)
    }

    /// Returns the number of operands.
    pub fn operand_count(self) -> usize {
        call!(mlirOperationGetNumOperands(self.raw())) as usize
    }

    /// Returns an operand.
    ///
    /// # Panics
    /// If there are fewer operands.
    pub fn operand(self, index: usize) -> Value<'m> {
        assert!(index < self.operand_count(), "'{}' has operand {index}", self.name());
        let value = call!(mlirOperationGetOperand(self.raw(), index as isize));
        // SAFETY: operands live as long as their users.
        unsafe { Value::from_raw(value) }
    }

    /// Returns all operands.
    pub fn operands(self) -> Vec<Value<'m>> {
        (0..self.operand_count()).map(|i| self.operand(i)).collect()
    }

    /// Replaces an operand.
    ///
    /// # Panics
    /// If there are fewer operands.
    pub fn set_operand(self, index: usize, value: Value<'m>) {
        assert!(index < self.operand_count(), "'{}' has operand {index}", self.name());
        call!(mlirOperationSetOperand(self.raw(), index as isize, value.to_raw()));
    }

    /// Returns the number of results.
    pub fn result_count(self) -> usize {
        call!(mlirOperationGetNumResults(self.raw())) as usize
    }

    /// Returns a result.
    ///
    /// # Panics
    /// If there are fewer results.
    pub fn result(self, index: usize) -> Value<'m> {
        assert!(index < self.result_count(), "'{}' has result {index}", self.name());
        let value = call!(mlirOperationGetResult(self.raw(), index as isize));
        // SAFETY: results live as long as their operation.
        unsafe { Value::from_raw(value) }
    }

    /// Returns all results.
    pub fn results(self) -> Vec<Value<'m>> {
        (0..self.result_count()).map(|i| self.result(i)).collect()
    }

    /// Returns all regions.
    pub fn regions(self) -> Vec<Region<'m>> {
        let count = call!(mlirOperationGetNumRegions(self.raw()));
        let region = |i| {
            let region = call!(mlirOperationGetRegion(self.raw(), i));
            // SAFETY: regions live as long as their operation.
            unsafe { Region::from_raw(region) }
        };
        (0..count).map(region).collect()
    }

    /// Returns the blocks of all regions.
    pub fn blocks(self) -> Vec<Block<'m>> {
        self.regions().into_iter().flat_map(Region::blocks).collect()
    }

    /// Returns an attribute, inherent or discardable.
    pub fn attribute(self, name: &str) -> Option<Attribute<'m>> {
        let attribute = call!(mlirOperationGetAttributeByName(self.raw(), StringRef::new(name).to_raw()));
        // SAFETY: attributes live as long as their context.
        unsafe { Attribute::from_option_raw(attribute) }
    }

    /// Returns all attributes with their names.
    pub fn attributes(self) -> Vec<(&'m str, Attribute<'m>)> {
        let count = call!(mlirOperationGetNumAttributes(self.raw()));
        (0..count).map(|i| named(call!(mlirOperationGetAttribute(self.raw(), i)))).collect()
    }

    /// Returns the discardable attributes with their names.
    pub fn discardable_attributes(self) -> Vec<(&'m str, Attribute<'m>)> {
        let count = call!(mlirOperationGetNumDiscardableAttributes(self.raw()));
        (0..count).map(|i| named(call!(mlirOperationGetDiscardableAttribute(self.raw(), i)))).collect()
    }

    /// Sets an attribute, inherent or discardable.
    pub fn set_attribute(self, name: &str, attribute: Attribute<'m>) {
        call!(mlirOperationSetAttributeByName(self.raw(), StringRef::new(name).to_raw(), attribute.to_raw()));
    }

    /// Removes an attribute. Returns true if the operation had it.
    pub fn remove_attribute(self, name: &str) -> bool {
        call!(mlirOperationRemoveAttributeByName(self.raw(), StringRef::new(name).to_raw()))
    }

    /// Returns a detached deep copy, including regions.
    pub fn clone_detached(self) -> Operation<'m> {
        let copy = call!(mlirOperationClone(self.raw()));
        // SAFETY: the copy is alive until it is erased.
        unsafe { Self::from_raw(copy) }
    }

    /// Removes the operation from its block; it must be inserted again or erased.
    pub fn detach(self) {
        call!(mlirOperationRemoveFromParent(self.raw()));
    }

    /// Destroys the operation. Its results must have no uses.
    pub fn erase(self) {
        debug_assert!(self.results().into_iter().all(|result| result.uses().is_empty()), "results are not used");
        call!(mlirOperationDestroy(self.raw()));
    }

    /// Inserts a detached operation before `other`.
    ///
    /// # Panics
    /// If `other` is in no block.
    pub fn insert_before(self, other: Operation<'m>) -> Operation<'m> {
        let block = other.block().expect("the other operation is in a block");
        call!(mlirBlockInsertOwnedOperationBefore(block.to_raw(), other.raw(), self.raw()));
        self
    }

    /// Inserts a detached operation after `other`.
    ///
    /// # Panics
    /// If `other` is in no block.
    pub fn insert_after(self, other: Operation<'m>) -> Operation<'m> {
        let block = other.block().expect("the other operation is in a block");
        call!(mlirBlockInsertOwnedOperationAfter(block.to_raw(), other.raw(), self.raw()));
        self
    }

    /// Appends a detached operation to a block.
    pub fn append_to(self, block: Block<'m>) -> Operation<'m> {
        call!(mlirBlockAppendOwnedOperation(block.to_raw(), self.raw()));
        self
    }

    /// Inserts a detached operation at a position in a block.
    pub fn insert_at(self, block: Block<'m>, position: usize) -> Operation<'m> {
        call!(mlirBlockInsertOwnedOperation(block.to_raw(), position as isize, self.raw()));
        self
    }

    /// Returns the blocks that a terminator branches to.
    pub fn successors(self) -> Vec<Block<'m>> {
        let count = call!(mlirOperationGetNumSuccessors(self.raw()));
        let successor = |i| {
            let block = call!(mlirOperationGetSuccessor(self.raw(), i));
            // SAFETY: successors live as long as their region.
            unsafe { Block::from_raw(block) }
        };
        (0..count).map(successor).collect()
    }

    /// Returns true if a loaded dialect defines the operation.
    pub fn is_registered(self) -> bool {
        let name = StringRef::new(self.name()).to_raw();
        call!(mlirContextIsRegisteredOperation(self.context().raw(), name))
    }

    /// Runs MLIR's verifier, which emits diagnostics. Returns true on success.
    pub fn verify(self) -> bool {
        self.0.verify()
    }
}

fn named<'m>(named: MlirNamedAttribute) -> (&'m str, Attribute<'m>) {
    let name = call!(mlirIdentifierStr(named.name));
    // SAFETY: names and attributes live as long as their context.
    (call!(text(name)), unsafe { Attribute::from_raw(named.attribute) })
}

/// Attribute with its name.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NamedAttribute<'m>(MlirNamedAttribute, PhantomData<Attribute<'m>>);

impl<'m> NamedAttribute<'m> {
    /// Pairs an attribute with an interned name.
    pub fn new(name: Identifier<'m>, attribute: Attribute<'m>) -> Self {
        Self(MlirNamedAttribute { name: name.to_raw(), attribute: attribute.to_raw() }, PhantomData)
    }

    /// Pairs an attribute with a name.
    pub fn with_name(name: &str, attribute: Attribute<'m>) -> Self {
        Self::new(attribute.context().identifier(name), attribute)
    }
}

/// State from which an operation is created.
#[derive(Clone, Copy)]
pub struct NewOperation<'a, 'm> {
    /// Name with its dialect: `onnx.Conv`.
    pub name: &'a str,
    /// Source location.
    pub location: Location<'m>,
    /// Operands.
    pub operands: &'a [Value<'m>],
    /// Types of the results.
    pub results: &'a [Type<'m>],
    /// Attributes, inherent and discardable.
    pub attributes: &'a [NamedAttribute<'m>],
    /// Detached regions; the operation takes ownership.
    pub regions: &'a [Region<'m>],
}

impl<'a, 'm> NewOperation<'a, 'm> {
    /// Returns the state of an operation without operands, results, attributes and regions.
    pub fn new(name: &'a str, location: Location<'m>) -> Self {
        Self { name, location, operands: &[], results: &[], attributes: &[], regions: &[] }
    }

    /// Creates a detached operation.
    pub fn create(&self) -> Operation<'m> {
        let results: Vec<_> = self.results.iter().map(TypeLike::to_raw).collect();
        let mut state = call!(mlirOperationStateGet(StringRef::new(self.name).to_raw(), self.location.to_raw()));
        let operands = self.operands.as_ptr().cast();
        call!(mlirOperationStateAddOperands(&mut state, self.operands.len() as isize, operands));
        call!(mlirOperationStateAddResults(&mut state, results.len() as isize, results.as_ptr()));
        let attributes = self.attributes.as_ptr().cast();
        call!(mlirOperationStateAddAttributes(&mut state, self.attributes.len() as isize, attributes));
        let regions = self.regions.as_ptr().cast();
        call!(mlirOperationStateAddOwnedRegions(&mut state, self.regions.len() as isize, regions));
        let operation = call!(mlirOperationCreate(&mut state));
        // SAFETY: the operation is alive until it is erased.
        unsafe { Operation::from_raw(operation) }
    }
}

/// Parses text or bytecode, which need not be UTF-8. Returns `None` and emits diagnostics if it is invalid.
pub fn parse_module<'c>(context: &'c Context, bytes: &[u8]) -> Option<Module<'c>> {
    let text = MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
    let module = call!(mlirModuleCreateParse(context.to_raw(), text));
    // SAFETY: a module that is not null has no other owner.
    unsafe { Module::from_option_raw(module) }
}
