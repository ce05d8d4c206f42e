//! Checkpoints of an import: rolling back removes from the IR all that was translated since.

use super::translate::Translator;
use crate::ir::ONNX_CONSTANT;
use divi_dialect::{Block, Operation};
use std::collections::BTreeMap;

/// State of an import that it can be rolled back to.
pub(super) struct Checkpoint<'c> {
    values: usize,
    scopes: usize,
    prefix: usize,
    unrolling: usize,
    folded_bytes: usize,
    opaque: BTreeMap<String, (usize, String)>,
    data_dependent: Option<(usize, String)>,
    undeclared: Option<(usize, String)>,
    warnings: usize,
    last_operation: Option<Operation<'c>>,
}

impl<'c> Translator<'c, '_> {
    pub(super) fn checkpoint(&self) -> Checkpoint<'c> {
        Checkpoint {
            values: self.values.len(),
            scopes: self.scopes.len(),
            prefix: self.prefix.len(),
            unrolling: self.unrolling,
            folded_bytes: self.folded_bytes,
            opaque: self.opaque.clone(),
            data_dependent: self.data_dependent.clone(),
            undeclared: self.undeclared.clone(),
            warnings: self.warnings.len(),
            last_operation: self.emitter.block().operations().pop(),
        }
    }

    /// Rolls back to a checkpoint of the same block. Constants, which are visible everywhere, stay in the IR.
    pub(super) fn roll_back(&mut self, checkpoint: Checkpoint<'c>) {
        self.values.truncate(checkpoint.values);
        self.scopes.truncate(checkpoint.scopes);
        self.prefix.truncate(checkpoint.prefix);
        self.unrolling = checkpoint.unrolling;
        self.folded_bytes = checkpoint.folded_bytes;
        self.opaque = checkpoint.opaque;
        self.data_dependent = checkpoint.data_dependent;
        self.undeclared = checkpoint.undeclared;
        self.warnings.truncate(checkpoint.warnings);
        erase_behind(self.emitter.block(), checkpoint.last_operation);
    }
}

/// Erases the operations after `last` in a block, except for constants.
fn erase_behind<'c>(block: Block<'c>, last: Option<Operation<'c>>) {
    let is_last = |operation: Operation<'c>| last == Some(operation);
    for operation in block.operations().into_iter().rev().take_while(|&operation| !is_last(operation)) {
        if !matches!(operation.name(), ONNX_CONSTANT | "onnx.NoValue") {
            operation.erase();
        }
    }
}
