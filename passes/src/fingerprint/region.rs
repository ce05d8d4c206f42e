//! Operators that have bodies of their own: branches and loops.

use super::{Hasher, Looking};
use crate::ir::{arguments_of, blocks_in_order};
use mlir_sys::*;
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

impl Hasher<'_> {
    /// What is in an operator's regions, with what they read from outside. Blocks are known by where they are.
    pub(super) fn regions(&mut self, operation: MlirOperation, hash: &mut Sha256) {
        let blocks = blocks_in_order(operation);
        if blocks.is_empty() {
            return;
        }
        let places = places(operation);
        self.depth += 1;
        let around = std::mem::take(&mut self.operators);
        for block in blocks {
            let place = &places[&block.ptr];
            for (i, argument) in arguments_of(block).into_iter().enumerate() {
                let role = format!("argument {i} of {place} at depth {}", self.depth);
                let value = self.hash_of(&role, &[], argument);
                hash.update(value);
                self.values.insert(argument.ptr, value);
            }
            self.body(block, Looking::AtLaunches);
            // SAFETY: the block is alive, and so is its end, where it has one.
            let end = unsafe { mlirBlockGetTerminator(block) };
            if !end.ptr.is_null() {
                let given = self.operands(end);
                let what = self.what(end, &given);
                hash.update(place);
                hash.update(what);
                // SAFETY: the operation is alive, and the index is below the count.
                let next =
                    unsafe { (0..mlirOperationGetNumSuccessors(end)).map(|i| mlirOperationGetSuccessor(end, i)) };
                next.for_each(|next| hash.update(&places[&next.ptr]));
            }
        }
        self.depth -= 1;
        let mut inside = std::mem::replace(&mut self.operators, around);
        inside.sort_unstable();
        inside.iter().for_each(|operator| hash.update(operator));
    }
}

/// The name of each block: its region, and its position there.
fn places(operation: MlirOperation) -> FxHashMap<*mut std::ffi::c_void, String> {
    let mut places = FxHashMap::default();
    // SAFETY: the operation is alive; lists end with null.
    unsafe {
        for region in 0..mlirOperationGetNumRegions(operation) {
            let mut next = mlirRegionGetFirstBlock(mlirOperationGetRegion(operation, region));
            let mut position = 0;
            while !next.ptr.is_null() {
                places.insert(next.ptr, format!("block {region}.{position};"));
                position += 1;
                next = mlirBlockGetNextInRegion(next);
            }
        }
    }
    places
}
