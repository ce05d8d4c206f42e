//! References to MLIR's values.

use crate::{Block, Operation, ffi::call};
use melior::ir::{Location, Type, TypeLike, Value as MeliorValue};
use mlir_sys::*;
use std::marker::PhantomData;

/// Reference to a value inside a module that lives for `'m`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Value<'m>(MlirValue, PhantomData<MeliorValue<'m, 'm>>);

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr == other.0.ptr
    }
}

impl Eq for Value<'_> {}

impl std::hash::Hash for Value<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.ptr.hash(state);
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.as_melior(), formatter)
    }
}

impl<'m> Value<'m> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The value must be alive for `'m`.
    pub unsafe fn from_raw(raw: MlirValue) -> Self {
        Self(raw, PhantomData)
    }

    /// Returns the pointer.
    pub(crate) fn to_raw(self) -> MlirValue {
        self.0
    }

    /// Returns melior's reference.
    pub fn as_melior(self) -> MeliorValue<'m, 'm> {
        // SAFETY: the value is alive for `'m`.
        unsafe { MeliorValue::from_raw(self.0) }
    }

    /// Returns the type.
    pub fn r#type(self) -> Type<'m> {
        let r#type = call!(mlirValueGetType(self.0));
        // SAFETY: types live as long as their context.
        unsafe { Type::from_raw(r#type) }
    }

    /// Changes the type in place.
    pub fn set_type(self, r#type: Type<'m>) {
        call!(mlirValueSetType(self.0, r#type.to_raw()));
    }

    /// Returns the location of the defining operation or block argument.
    pub fn location(self) -> Location<'m> {
        let location = call!(mlirValueGetLocation(self.0));
        // SAFETY: locations live as long as their context.
        unsafe { Location::from_raw(location) }
    }

    /// Returns the defining operation; `None` for a block argument.
    pub fn defining_op(self) -> Option<Operation<'m>> {
        call!(mlirValueIsAOpResult(self.0)).then(|| {
            let operation = call!(mlirOpResultGetOwner(self.0));
            // SAFETY: an operation lives as long as its results.
            unsafe { Operation::from_raw(operation) }
        })
    }

    /// Returns the index of the value among the results of its operation; `None` for a block argument.
    pub fn result_number(self) -> Option<usize> {
        call!(mlirValueIsAOpResult(self.0)).then(|| call!(mlirOpResultGetResultNumber(self.0)) as usize)
    }

    /// Returns the block that owns the argument; `None` for a result of an operation.
    pub fn argument_block(self) -> Option<Block<'m>> {
        call!(mlirValueIsABlockArgument(self.0)).then(|| {
            let block = call!(mlirBlockArgumentGetOwner(self.0));
            // SAFETY: a block lives as long as its arguments.
            unsafe { Block::from_raw(block) }
        })
    }

    /// Returns the index of the value among the arguments of its block; `None` for a result of an operation.
    pub fn argument_number(self) -> Option<usize> {
        call!(mlirValueIsABlockArgument(self.0)).then(|| call!(mlirBlockArgumentGetArgNumber(self.0)) as usize)
    }

    /// Returns a snapshot of the uses: the user and the index of its operand.
    pub fn uses(self) -> Vec<(Operation<'m>, usize)> {
        let mut uses = vec![];
        let mut next = call!(mlirValueGetFirstUse(self.0));
        while !call!(mlirOpOperandIsNull(next)) {
            let owner = call!(mlirOpOperandGetOwner(next));
            // SAFETY: users of a live value are alive.
            let owner = unsafe { Operation::from_raw(owner) };
            uses.push((owner, call!(mlirOpOperandGetOperandNumber(next)) as usize));
            next = call!(mlirOpOperandGetNextUse(next));
        }
        uses
    }

    /// Replaces all uses of the value.
    pub fn replace_all_uses_with(self, other: Value<'m>) {
        call!(mlirValueReplaceAllUsesOfWith(self.0, other.0));
    }
}
