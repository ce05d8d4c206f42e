//! Hooks of a back end in the lowering of a stage.

use super::Lowering;
use crate::{
    error::Result,
    graph::{Id, Node, Value},
    kernels::Kernels,
    layout::{Blocked, Halo, Layout},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Part of the lowering of a stage that differs between back ends whose kernels are generated from loops.
pub(crate) trait Hooks {
    /// Lowers the node at a position, possibly fused with the following ones, to fast kernels. Returns the number of nodes; `None` if the
    /// first has no fast kernel.
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>>;

    /// Returns true if a fast kernel computes a node in `f32` from first two operands in half precision.
    fn reads_half(&self, node: &Node, values: &[Value], kernels: &Kernels) -> bool {
        let _ = (node, values, kernels);
        false
    }

    /// Returns the halos of the values that fast kernels read.
    fn halos(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashMap<Id, Halo> {
        let _ = (cx, nodes);
        FxHashMap::default()
    }

    /// Returns the values that fast kernels prefer blocked.
    fn blocked_values(&self, cx: &Lowering<'_>, nodes: &[Node]) -> FxHashSet<Id> {
        let _ = (cx, nodes);
        FxHashSet::default()
    }

    /// Requests non-temporal stores, if the back end has them, for an output that only transfers to other devices read.
    fn stream(&self, cx: &mut Lowering<'_>, output: Id, layout: Layout) {
        let _ = (cx, output, layout);
    }

    /// Reads a blocked input of the stage.
    fn read_blocked(&self, cx: &mut Lowering<'_>, input: usize, value: Id, layout: Blocked);

    /// Writes a blocked output of the stage.
    fn write_blocked(&self, cx: &mut Lowering<'_>, output: usize, value: Id, layout: Blocked, is_streamed: bool);
}
