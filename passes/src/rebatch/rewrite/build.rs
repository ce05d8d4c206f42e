//! Building operators of the `onnx` dialect.

use crate::ir::{ONNX_CONSTANT, named_attribute};
use divi_dialect::dense_elements;
use divi_onnx::Tensor;
use melior::{Context, StringRef, ir::AttributeLike};
use mlir_sys::*;

/// Puts operators in front of one, at its location.
pub(crate) struct Builder<'a> {
    pub(crate) context: &'a Context,
    pub(crate) before: MlirOperation,
}

impl Builder<'_> {
    /// An attribute as the dialect writes integers.
    pub(crate) fn int(&self, name: &str, value: i64) -> MlirNamedAttribute {
        // SAFETY: the type belongs to the context.
        let attribute = unsafe { mlirIntegerAttrGet(mlirIntegerTypeSignedGet(self.context.to_raw(), 64), value) };
        named_attribute(self.context, name, attribute)
    }

    fn string(&self, value: &str) -> MlirAttribute {
        // SAFETY: the text outlives the call.
        unsafe { mlirStringAttrGet(self.context.to_raw(), StringRef::new(value).to_raw()) }
    }

    /// Says which node an operator came from.
    pub(crate) fn set_name(&self, operation: MlirOperation, name: &str) {
        let attribute = self.string(name);
        // SAFETY: operation and attribute are alive.
        unsafe { mlirOperationSetAttributeByName(operation, StringRef::new("onnx_node_name").to_raw(), attribute) };
    }

    /// The result of a new operator.
    pub(crate) fn result(
        &self,
        op: &str,
        operands: &[MlirValue],
        r#type: MlirType,
        attributes: &[MlirNamedAttribute],
        name: Option<&str>,
    ) -> MlirValue {
        let mut attributes = attributes.to_vec();
        attributes.extend(name.map(|name| named_attribute(self.context, "onnx_node_name", self.string(name))));
        // SAFETY: everything belongs to one context and outlives the call; the block takes ownership of the operation.
        unsafe {
            let location = mlirOperationGetLocation(self.before);
            let mut state = mlirOperationStateGet(StringRef::new(op).to_raw(), location);
            mlirOperationStateAddOperands(&mut state, operands.len() as isize, operands.as_ptr());
            mlirOperationStateAddResults(&mut state, 1, &r#type);
            mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
            let operation = mlirOperationCreate(&mut state);
            mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(self.before), self.before, operation);
            mlirOperationGetResult(operation, 0)
        }
    }

    pub(crate) fn constant(&self, tensor: &Tensor, name: Option<&str>) -> MlirValue {
        let value = dense_elements(self.context, tensor).to_raw();
        // SAFETY: elements have a type.
        let r#type = unsafe { mlirAttributeGetType(value) };
        self.result(ONNX_CONSTANT, &[], r#type, &[named_attribute(self.context, "value", value)], name)
    }
}
