//! Layouts of the values of a stage.

use super::{Lowering, Storage};
use crate::{
    graph::Id,
    layout::{Blocked, Halo, Layout},
};
use rustc_hash::FxHashMap;

impl Lowering<'_> {
    pub(crate) fn is_blocked(&self, id: Id) -> bool {
        self.layouts.contains_key(&id)
    }

    /// Returns the layout of a blocked value; `None` if it is row-major.
    pub(crate) fn layout(&self, id: Id) -> Option<Blocked> {
        self.layouts.get(&id).copied()
    }

    /// Makes a value blocked.
    pub(crate) fn set_layout(&mut self, id: Id, layout: Blocked) {
        self.layouts.insert(id, layout);
    }

    /// Returns the halo that users of a value require.
    pub(crate) fn halo(&self, id: Id) -> Halo {
        self.halos.get(&id).copied().unwrap_or_default()
    }

    pub(crate) fn set_halos(&mut self, halos: FxHashMap<Id, Halo>) {
        self.halos = halos;
    }

    /// Extends the halo of a value to cover another one, unless their padding values differ.
    pub(crate) fn widen_halo(&mut self, id: Id, halo: &Halo) {
        let known = self.halos.entry(id).or_insert(Halo::NONE);
        *known = known.union(halo).unwrap_or(*known);
    }

    pub(crate) fn dense_copy(&self, id: Id) -> Option<Id> {
        self.dense.get(&id).copied()
    }

    pub(crate) fn set_dense_copy(&mut self, id: Id, copy: Id) {
        self.dense.insert(id, copy);
    }

    pub(crate) fn blocked_copy(&self, id: Id) -> Option<Id> {
        self.blocked.get(&id).copied()
    }

    pub(crate) fn set_blocked_copy(&mut self, id: Id, copy: Id) {
        self.blocked.insert(id, copy);
    }

    /// Returns true if the lanes of a blocked value beyond its last channel are finite, so that their products with zeros are zero.
    pub(crate) fn has_finite_lanes(&self, id: Id, layout: &Blocked) -> bool {
        layout.channels % layout.lanes == 0 || self.finite_lanes.contains(&self.viewed(id))
    }

    pub(crate) fn set_finite_lanes(&mut self, id: Id) {
        self.finite_lanes.insert(self.viewed(id));
    }

    /// Returns the value that a value is an alias of.
    fn viewed(&self, mut id: Id) -> Id {
        while let Storage::Alias(other) = self.storage[id.0] {
            id = other;
        }
        id
    }

    /// Returns true if a stage may write to bytes of a blocked value beyond its elements: they are in no input and in no other value.
    pub(crate) fn owns_lanes(&self, id: Id) -> bool {
        matches!(self.storage[self.viewed(id).0], Storage::Unassigned | Storage::Output(_))
    }

    /// Records that the kernel that writes an image is parallel over rows, with all channels per thread.
    pub(crate) fn set_row_parallel(&mut self, id: Id) {
        self.by_rows.insert(id);
    }

    /// Returns true if rows of an image are likely in the private cache of the core that reads them: the image was written by rows (as
    /// convolutions with few weights do), and is small enough.
    pub(crate) fn is_row_parallel_and_cached(&self, id: Id) -> bool {
        /// Bytes above which an image is evicted from private caches before it is read.
        const LARGE: u64 = 4 << 20;
        self.by_rows.contains(&id) && self.values[id.0].bytes() <= LARGE
    }

    /// Places an image inside another one, from a channel block on. Returns false if their layouts differ or the image is already placed.
    pub(crate) fn place_blocked_subview(&mut self, part: Id, whole: Id, first_block: i64) -> bool {
        let (Some(own), Some(target)) = (self.layouts.get(&part), self.layouts.get(&whole)) else { return false };
        let is_alike = target.batch == 1
            && (own.height, own.width, own.halo) == (target.height, target.width, target.halo)
            && self.type_in_memory(part) == self.type_in_memory(whole)
            && self.storage[part.0] == Storage::Unassigned;
        if is_alike {
            let bytes = self.type_in_memory(whole).bits() / 8;
            let first = (first_block * target.plane()) as u64 * bytes;
            self.storage[part.0] = Storage::Subview(whole, first);
            self.containers.insert(whole);
        }
        is_alike
    }

    /// Requests non-temporal stores for an output in this layout.
    pub(crate) fn request_streaming(&mut self, output: Id, layout: Layout) {
        self.streamed.insert(output, layout);
    }

    /// Returns true if kernels write a value with non-temporal stores: it has the layout of the output, and the stage itself does not read
    /// it.
    pub(crate) fn is_streamed(&self, id: Id) -> bool {
        let has_layout = match (self.streamed.get(&id), self.layouts.get(&id)) {
            (None, _) | (Some(Layout::Blocked(_)), None) | (Some(Layout::RowMajor), Some(_)) => false,
            (Some(Layout::Blocked(wanted)), Some(layout)) => wanted == layout,
            (Some(Layout::Unassigned), Some(layout)) => layout.is_profitable(),
            (Some(Layout::Unassigned | Layout::RowMajor), None) => true,
        };
        let is_read_here =
            self.containers.contains(&id) || self.readers.get(&id).is_some_and(|readers| readers.len() > 1);
        has_layout && !is_read_here && !self.is_at_load && self.half_precision(id).is_none()
    }
}
