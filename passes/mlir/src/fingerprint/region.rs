//! Operators that have bodies of their own: branches and loops.

use super::{Hasher, Looking};
use divi_dialect::{Block, Operation, blocks_in_order};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

impl<'m> Hasher<'m> {
    /// What is in an operator's regions, with what they read from outside. Blocks are known by where they are.
    pub(super) fn regions(&mut self, operation: Operation<'m>, hash: &mut Sha256) {
        let blocks = blocks_in_order(operation);
        if blocks.is_empty() {
            return;
        }
        let places = places(operation);
        self.depth += 1;
        let around = std::mem::take(&mut self.operators);
        for block in blocks {
            let place = &places[&block];
            for (i, argument) in block.arguments().into_iter().enumerate() {
                let role = format!("argument {i} of {place} at depth {}", self.depth);
                let value = self.hash_of(&role, &[], argument);
                hash.update(value);
                self.values.insert(argument, value);
            }
            self.body(block, Looking::AtLaunches);
            if let Some(end) = block.terminator() {
                let given = self.operands(end);
                let what = self.what(end, &given);
                hash.update(place);
                hash.update(what);
                end.successors().into_iter().for_each(|next| hash.update(&places[&next]));
            }
        }
        self.depth -= 1;
        let mut inside = std::mem::replace(&mut self.operators, around);
        inside.sort_unstable();
        inside.iter().for_each(|operator| hash.update(operator));
    }
}

/// The name of each block: its region, and its position there.
fn places(operation: Operation<'_>) -> FxHashMap<Block<'_>, String> {
    let mut places = FxHashMap::default();
    for (number, region) in operation.regions().into_iter().enumerate() {
        for (position, block) in region.blocks().into_iter().enumerate() {
            places.insert(block, format!("block {number}.{position};"));
        }
    }
    places
}
