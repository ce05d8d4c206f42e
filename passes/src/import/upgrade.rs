//! Operators of older opsets, brought into the form of the newest.

use super::translate::{Result, Translator, ValueId};
use divi_onnx::Attributes;

/// What an older form becomes.
pub(super) enum Upgraded {
    /// One operator in the newest form.
    Node { op: String, inputs: Vec<Option<ValueId>>, attributes: Attributes },
    /// Several operators, applied already.
    Done(Vec<ValueId>),
}

impl Translator<'_, '_> {
    pub(super) fn upgrade(
        &mut self,
        op: &str,
        inputs: Vec<Option<ValueId>>,
        attributes: Attributes,
        outputs: usize,
    ) -> Result<Upgraded> {
        let _ = outputs;
        Ok(Upgraded::Node { op: op.to_owned(), inputs, attributes })
    }
}
