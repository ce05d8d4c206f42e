//! Hashes regions: branches and loops.

use super::{Hasher, LaunchMode};
use divi_dialect::{Block, Operation, blocks_in_order};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

impl<'m> Hasher<'m> {
    /// Hashes an operator's regions, including the values that they read from outside. Blocks are identified by
    /// position.
    pub(super) fn regions(&mut self, operation: Operation<'m>, hash: &mut Sha256) {
        let blocks = blocks_in_order(operation);
        if blocks.is_empty() {
            return;
        }
        let places = places(operation);
        self.depth += 1;
        let outer = std::mem::take(&mut self.operators);
        for block in blocks {
            let place = &places[&block];
            for (i, argument) in block.arguments().into_iter().enumerate() {
                let role = format!("argument {i} of {place} at depth {}", self.depth);
                let value = self.hash_of(&role, &[], argument);
                hash.update(value);
                self.values.insert(argument, value);
            }
            self.body(block, LaunchMode::Opaque);
            if let Some(end) = block.terminator() {
                let operands = self.operands(end);
                let what = self.what(end, &operands);
                hash.update(place);
                hash.update(what);
                end.successors().into_iter().for_each(|next| hash.update(&places[&next]));
            }
        }
        self.depth -= 1;
        let mut inside = std::mem::replace(&mut self.operators, outer);
        inside.sort_unstable();
        inside.iter().for_each(|operator| hash.update(operator));
    }
}

/// Returns an identifier of each block: its region, and its position there.
fn places(operation: Operation<'_>) -> FxHashMap<Block<'_>, String> {
    let mut places = FxHashMap::default();
    for (number, region) in operation.regions().into_iter().enumerate() {
        for (position, block) in region.blocks().into_iter().enumerate() {
            places.insert(block, format!("block {number}.{position};"));
        }
    }
    places
}
