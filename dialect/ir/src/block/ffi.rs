//! References to MLIR's blocks and regions.

use crate::{Operation, Value, ffi::call};
use melior::ir::{BlockRef, Location, RegionRef, Type, TypeLike};
use mlir_sys::*;
use std::marker::PhantomData;

/// Reference to a block inside a module that lives for `'m`.
#[derive(Clone, Copy)]
pub struct Block<'m>(MlirBlock, PhantomData<BlockRef<'m, 'm>>);

impl PartialEq for Block<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr == other.0.ptr
    }
}

impl Eq for Block<'_> {}

impl std::hash::Hash for Block<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.ptr.hash(state);
    }
}

impl<'m> Operation<'m> {
    pub(super) fn next_in_block(self) -> Option<Operation<'m>> {
        let next = call!(mlirOperationGetNextInBlock(self.as_melior().to_raw()));
        // SAFETY: the operations of a block live as long as the module.
        unsafe { Operation::from_option_raw(next) }
    }
}

impl<'m> Block<'m> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The block must be alive for `'m`.
    pub unsafe fn from_raw(raw: MlirBlock) -> Self {
        Self(raw, PhantomData)
    }

    /// Wraps a pointer that may be null.
    ///
    /// # Safety
    /// The block must be alive for `'m`.
    pub(crate) unsafe fn from_option_raw(raw: MlirBlock) -> Option<Self> {
        (!raw.ptr.is_null()).then_some(Self(raw, PhantomData))
    }

    /// Returns the pointer.
    pub(crate) fn to_raw(self) -> MlirBlock {
        self.0
    }

    /// Creates a block that belongs to no region yet.
    pub fn create(arguments: &[(Type<'m>, Location<'m>)]) -> Self {
        let types: Vec<_> = arguments.iter().map(|(r#type, _)| r#type.to_raw()).collect();
        let locations: Vec<_> = arguments.iter().map(|(_, location)| location.to_raw()).collect();
        Self(call!(mlirBlockCreate(types.len() as isize, types.as_ptr(), locations.as_ptr())), PhantomData)
    }

    pub(super) fn first_operation(self) -> Option<Operation<'m>> {
        let first = call!(mlirBlockGetFirstOperation(self.0));
        // SAFETY: the operations of a block live as long as the module.
        unsafe { Operation::from_option_raw(first) }
    }

    /// Returns the terminator; `None` if the block does not end in one.
    pub fn terminator(self) -> Option<Operation<'m>> {
        let terminator = call!(mlirBlockGetTerminator(self.0));
        // SAFETY: the operations of a block live as long as the module.
        unsafe { Operation::from_option_raw(terminator) }
    }

    /// Returns the operation whose region contains the block.
    pub fn parent(self) -> Option<Operation<'m>> {
        let parent = call!(mlirBlockGetParentOperation(self.0));
        // SAFETY: an operation lives as long as its blocks.
        unsafe { Operation::from_option_raw(parent) }
    }

    /// Returns the number of arguments.
    pub fn argument_count(self) -> usize {
        call!(mlirBlockGetNumArguments(self.0)) as usize
    }

    /// Returns an argument.
    ///
    /// # Panics
    /// If there are fewer arguments.
    pub fn argument(self, index: usize) -> Value<'m> {
        assert!(index < self.argument_count(), "the block has argument {index}");
        let value = call!(mlirBlockGetArgument(self.0, index as isize));
        // SAFETY: arguments live as long as their block.
        unsafe { Value::from_raw(value) }
    }

    /// Appends an argument.
    pub fn add_argument(self, r#type: Type<'m>, location: Location<'m>) -> Value<'m> {
        let value = call!(mlirBlockAddArgument(self.0, r#type.to_raw(), location.to_raw()));
        // SAFETY: arguments live as long as their block.
        unsafe { Value::from_raw(value) }
    }

    /// Destroys a block that belongs to no region.
    pub fn destroy(self) {
        call!(mlirBlockDestroy(self.0));
    }
}

/// Reference to a region of an operation, or to a detached region.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Region<'m>(MlirRegion, PhantomData<RegionRef<'m, 'm>>);

impl<'m> Region<'m> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The region must be alive for `'m`.
    pub(crate) unsafe fn from_raw(raw: MlirRegion) -> Self {
        Self(raw, PhantomData)
    }

    /// Creates a region that belongs to no operation yet.
    pub fn create() -> Self {
        Self(call!(mlirRegionCreate()), PhantomData)
    }

    /// Destroys a region that belongs to no operation, with its blocks.
    pub fn destroy(self) {
        call!(mlirRegionDestroy(self.0));
    }

    /// Appends a block that belongs to no region yet.
    pub fn append(self, block: Block<'m>) {
        call!(mlirRegionAppendOwnedBlock(self.0, block.0));
    }

    /// Returns the blocks of the region.
    pub fn blocks(self) -> Vec<Block<'m>> {
        let first = call!(mlirRegionGetFirstBlock(self.0));
        // SAFETY: the blocks of a region live as long as the module.
        let first = unsafe { Block::from_option_raw(first) };
        std::iter::successors(first, |block| {
            let next = call!(mlirBlockGetNextInRegion(block.0));
            // SAFETY: see above.
            unsafe { Block::from_option_raw(next) }
        })
        .collect()
    }
}
