//! Operations: references ([`Operation`]) and creation ([`NewOperation`]).

mod ffi;

use crate::{
    Block, Value,
    attr::{self, Key, Kind},
};
use divi_onnx::Op;
pub use ffi::{NamedAttribute, NewOperation, Operation, parse_module};
use melior::ir::Attribute;
use rustc_hash::FxHashMap;

impl<'m> Operation<'m> {
    /// Returns the ONNX operator; `None` for other dialects and for operations that are not operators.
    pub fn op(self) -> Option<Op> {
        Op::from_operation(self.name())
    }

    /// Returns a snapshot of the operations of all blocks of all regions, in order.
    pub fn children(self) -> Vec<Operation<'m>> {
        self.blocks().into_iter().flat_map(Block::operations).collect()
    }

    /// Calls `visit` on this operation and all nested operations, in preorder.
    pub fn walk(self, mut visit: impl FnMut(Operation<'m>)) {
        let mut pending = vec![self];
        while let Some(operation) = pending.pop() {
            visit(operation);
            pending.extend(operation.children().into_iter().rev());
        }
    }

    /// Replaces operands of this operation and of all nested operations.
    pub fn replace_operands(self, replacements: &FxHashMap<Value<'m>, Value<'m>>) {
        self.walk(|inner| {
            for (i, operand) in inner.operands().into_iter().enumerate() {
                if let Some(&replacement) = replacements.get(&operand) {
                    inner.set_operand(i, replacement);
                }
            }
        });
    }

    /// Returns true if this operation is in a region of `outer`, at any depth.
    pub fn is_inside(self, outer: Operation<'m>) -> bool {
        let mut next = self.parent();
        while let Some(operation) = next {
            if operation == outer {
                return true;
            }
            next = operation.parent();
        }
        false
    }

    /// Returns a typed attribute; `None` if it is absent or of another type.
    pub fn get<K: Kind>(self, key: Key<K>) -> Option<K::Read<'m>> {
        K::read(self.attribute(key.name())?)
    }

    /// Returns true if the operation has an attribute, of any type.
    pub fn has<K>(self, key: Key<K>) -> bool {
        self.attribute(key.name()).is_some()
    }

    /// Sets a typed attribute.
    pub fn set<K: Kind>(self, key: Key<K>, value: K::Write<'_, 'm>) {
        self.set_attribute(key.name(), K::write(self.context(), value));
    }

    /// Removes an attribute, if the operation has it.
    pub fn remove<K>(self, key: Key<K>) {
        self.remove_attribute(key.name());
    }

    /// Returns the name that a symbol operation defines.
    pub fn symbol_name(self) -> Option<&'m str> {
        self.get(attr::SYM_NAME)
    }

    /// Returns true for a symbol with private visibility.
    pub fn is_private(self) -> bool {
        self.get(attr::SYM_VISIBILITY) == Some("private")
    }

    /// Returns an attribute of a function's argument or result; `list` is `arg_attrs` or `res_attrs`.
    pub fn signature_attribute(self, list: Key<attr::Array>, index: usize, name: &str) -> Option<Attribute<'m>> {
        attr::entry(*self.get(list)?.get(index)?, name)
    }
}
