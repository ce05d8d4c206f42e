//! Finds operators that compute the same values (common subexpressions).

use divi_dialect::{Operation, Value, attr};
use melior::ir::{Attribute, Type};
use rustc_hash::FxHashMap;

/// Identity of an operator's computation: everything but the node name. Types and attributes are uniqued in a context,
/// so large constants are compared by address.
#[derive(PartialEq, Eq, Hash)]
struct Key<'m> {
    op: &'m str,
    operands: Vec<Value<'m>>,
    types: Vec<Type<'m>>,
    attributes: Vec<(&'m str, Attribute<'m>)>,
}

impl<'m> Key<'m> {
    fn of(operation: Operation<'m>) -> Self {
        let mut attributes = operation.attributes();
        attributes.retain(|&(name, _)| name != attr::NODE_NAME.name());
        Self {
            op: operation.name(),
            operands: operation.operands(),
            types: operation.results().into_iter().map(Value::r#type).collect(),
            attributes,
        }
    }
}

/// Operators that are available at a program point, by computation: those before it in its block and, up to the
/// innermost operation that is isolated from above, in the enclosing blocks.
#[derive(Default)]
pub(super) struct Scopes<'m> {
    scopes: Vec<Scope<'m>>,
}

struct Scope<'m> {
    isolated: bool,
    operations: FxHashMap<Key<'m>, Operation<'m>>,
}

impl<'m> Scopes<'m> {
    pub(super) fn enter(&mut self, isolated: bool) {
        self.scopes.push(Scope { isolated, operations: FxHashMap::default() });
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Returns an available operator with the same computation; if there is none, adds this one.
    pub(super) fn find_or_add(&mut self, operation: Operation<'m>) -> Option<Operation<'m>> {
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
