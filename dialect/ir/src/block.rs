//! Blocks and regions.

mod ffi;

use crate::{Operation, Value};
pub use ffi::{Block, Region};
use rustc_hash::FxHashSet;

impl<'m> Block<'m> {
    /// Returns a snapshot of the block's operations.
    pub fn operations(self) -> Vec<Operation<'m>> {
        std::iter::successors(self.first_operation(), |operation| operation.next_in_block()).collect()
    }

    /// Returns the arguments of the block.
    pub fn arguments(self) -> Vec<Value<'m>> {
        (0..self.argument_count()).map(|i| self.argument(i)).collect()
    }
}

fn successors(block: Block<'_>) -> Vec<Block<'_>> {
    block.terminator().map(Operation::successors).unwrap_or_default()
}

/// Returns the blocks of all regions of an operation in reverse postorder: each block follows its dominators.
pub fn blocks_in_order(operation: Operation<'_>) -> Vec<Block<'_>> {
    let mut ordered = vec![];
    let mut visited = FxHashSet::default();
    // A region's entry block comes first and reaches all other blocks except unreachable ones.
    for root in operation.blocks() {
        if !visited.insert(root) {
            continue;
        }
        let start = ordered.len();
        let mut path = vec![(root, successors(root).into_iter())];
        while let Some((block, next)) = path.last_mut() {
            match next.next() {
                Some(successor) if visited.insert(successor) => {
                    path.push((successor, successors(successor).into_iter()))
                }
                Some(_) => {}
                None => {
                    ordered.push(*block);
                    path.pop();
                }
            }
        }
        ordered[start..].reverse();
    }
    ordered
}
