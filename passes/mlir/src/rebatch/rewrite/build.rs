//! Builds operators of the `onnx` dialect.

use crate::ir::new_constant;
use divi_dialect::{NamedAttribute, NewOperation, Operation, Value, attr};
use divi_onnx::Tensor;
use melior::ir::Type;

/// Inserts operators before one, at its location.
pub(crate) struct Builder<'m> {
    pub(crate) before: Operation<'m>,
}

impl<'m> Builder<'m> {
    /// Creates an integer attribute of the dialect's type.
    pub(crate) fn int(&self, name: &str, value: i64) -> NamedAttribute<'m> {
        NamedAttribute::with_name(name, attr::signed_integer(self.before.context(), value))
    }

    /// Returns the result of a new operator.
    pub(crate) fn result(
        &self,
        op: &str,
        operands: &[Value<'m>],
        r#type: Type<'m>,
        attributes: &[NamedAttribute<'m>],
        name: Option<&str>,
    ) -> Value<'m> {
        let mut attributes = attributes.to_vec();
        attributes.extend(name.map(|name| attr::NODE_NAME.named(self.before.context(), name)));
        let operation = NewOperation {
            operands,
            results: &[r#type],
            attributes: &attributes,
            ..NewOperation::new(op, self.before.location())
        };
        operation.create().insert_before(self.before).result(0)
    }

    pub(crate) fn constant(&self, tensor: &Tensor, name: Option<&str>) -> Value<'m> {
        new_constant(self.before.location(), tensor, name).insert_before(self.before).result(0)
    }
}
