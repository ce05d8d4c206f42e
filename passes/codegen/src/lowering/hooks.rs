//! Hooks of a back end in the lowering of a stage.

use super::Lowering;
use crate::{
    error::Result,
    graph::{Id, Node},
    layout::{Blocked, Halo, Layout},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Part of the lowering of a stage that differs between back ends whose kernels are generated from loops.
pub(crate) trait Hooks {
    /// Lowers the node at a position, and perhaps some behind it, to fast kernels. Returns the number of nodes; `None` if there is no fast
    /// kernel for the first.
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>>;

    /// Returns the halos that fast kernels read around values.
    fn halos(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
        let _ = (cx, nodes);
        FxHashMap::default()
    }

    /// Returns the values that fast kernels prefer in blocks.
    fn blocked_values(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
        let _ = (cx, nodes);
        FxHashSet::default()
    }

    /// Requests non-temporal stores for an output that only device copies read, where the back end has such stores.
    fn stream(&self, cx: &mut Lowering<'_>, output: Id, layout: Layout) {
        let _ = (cx, output, layout);
    }

    /// Reads an input of the stage that is in blocks.
    fn read_blocked(&self, cx: &mut Lowering<'_>, input: usize, value: Id, layout: Blocked);

    /// Writes an output of the stage in blocks.
    fn write_blocked(&self, cx: &mut Lowering<'_>, output: usize, value: Id, layout: Blocked, is_streamed: bool);
}
