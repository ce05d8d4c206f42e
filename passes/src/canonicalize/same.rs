//! Which operators compute the same.

use crate::ir::{operands, operation_name, results, text, type_of};
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// What makes two operators the same: everything but the name of the node that they came from. Types and attributes are
/// unique in a context, so that large constants are compared by where they are.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: &'static str,
    operands: Vec<*const c_void>,
    types: Vec<*const c_void>,
    attributes: Vec<(*const c_void, *const c_void)>,
}

impl Key {
    fn of(operation: MlirOperation) -> Self {
        // SAFETY: the operation is alive, and the index is below the count.
        let named =
            unsafe { (0..mlirOperationGetNumAttributes(operation)).map(|i| mlirOperationGetAttribute(operation, i)) };
        // SAFETY: a name lives as long as its context.
        let counts = |named: &MlirNamedAttribute| unsafe { text(mlirIdentifierStr(named.name)) } != "onnx_node_name";
        Self {
            // The name lives as long as the context, and the key only for one round.
            op: operation_name(operation),
            operands: operands(operation).into_iter().map(|operand| operand.ptr).collect(),
            types: results(operation).into_iter().map(|result| type_of(result).ptr).collect(),
            attributes: named.filter(counts).map(|named| (named.name.ptr, named.attribute.ptr)).collect(),
        }
    }
}

/// The operators that can be used at a place, by what they compute: those in front of it in its block and, unless something
/// in between is isolated from above, in the blocks around it.
#[derive(Default)]
pub(super) struct Scopes {
    scopes: Vec<Scope>,
}

struct Scope {
    isolated: bool,
    operations: FxHashMap<Key, MlirOperation>,
}

impl Scopes {
    pub(super) fn enter(&mut self, isolated: bool) {
        self.scopes.push(Scope { isolated, operations: FxHashMap::default() });
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// An operator that computes the same; if there is none, this one is from now on.
    pub(super) fn find_or_add(&mut self, operation: MlirOperation) -> Option<MlirOperation> {
        let key = Key::of(operation);
        for scope in self.scopes.iter().rev() {
            if let Some(&other) = scope.operations.get(&key) {
                return Some(other);
            }
            if scope.isolated {
                break;
            }
        }
        self.scopes.last_mut()?.operations.insert(key, operation);
        None
    }
}
