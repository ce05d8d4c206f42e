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

    /// Returns the layout of an image in blocks.
    pub(crate) fn layout(&self, id: Id) -> Option<Blocked> {
        self.layouts.get(&id).copied()
    }

    /// Makes a value an image in blocks.
    pub(crate) fn set_layout(&mut self, id: Id, layout: Blocked) {
        self.layouts.insert(id, layout);
    }

    /// Returns the halo that readers of a value want.
    pub(crate) fn halo(&self, id: Id) -> Halo {
        self.halos.get(&id).copied().unwrap_or_default()
    }

    pub(crate) fn set_halos(&mut self, halos: FxHashMap<Id, Halo>) {
        self.halos = halos;
    }

    /// Widens the halo of a value, if it can have both.
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

    /// Says that threads write some rows of an image, with all channels.
    pub(crate) fn write_by_rows(&mut self, id: Id) {
        self.by_rows.insert(id);
    }

    /// Returns true if a thread that reads some rows of an image finds most of them in its own core's cache: convolutions with few weights
    /// compute all channels of a pixel before the next one's.
    pub(crate) fn is_near_by_rows(&self, id: Id) -> bool {
        /// Larger images have left that cache before they are read.
        const LARGE: u64 = 4 << 20;
        self.by_rows.contains(&id) && self.values[id.0].bytes() <= LARGE
    }

    /// Makes an image be written into a part of another, if both have the same layout and the image has no place yet.
    pub(crate) fn place_inside(&mut self, part: Id, whole: Id, first_block: i64) -> bool {
        let (Some(own), Some(target)) = (self.layouts.get(&part), self.layouts.get(&whole)) else { return false };
        let is_alike = target.batch == 1
            && (own.height, own.width, own.halo) == (target.height, target.width, target.halo)
            && self.storage[part.0] == Storage::Unplaced;
        if is_alike {
            let first = (first_block * target.plane()) as u64 * 4;
            self.storage[part.0] = Storage::Part(whole, first);
            self.wholes.insert(whole);
        }
        is_alike
    }

    /// Requests non-temporal stores for an output in this layout.
    pub(crate) fn request_streaming(&mut self, output: Id, layout: Layout) {
        self.streamed.insert(output, layout);
    }

    /// Returns true if kernels that write whole cache lines of a value use non-temporal stores: the value has the layout of the output,
    /// and the stage itself does not read it.
    pub(crate) fn is_streamed(&self, id: Id) -> bool {
        let has_layout = match (self.streamed.get(&id), self.layouts.get(&id)) {
            (None, _) | (Some(Layout::Blocked(_)), None) | (Some(Layout::RowMajor), Some(_)) => false,
            (Some(Layout::Blocked(wanted)), Some(layout)) => wanted == layout,
            (Some(Layout::Unassigned), Some(layout)) => layout.is_worth_it(),
            (Some(Layout::Unassigned | Layout::RowMajor), None) => true,
        };
        let is_read_here = self.wholes.contains(&id) || self.readers.get(&id).is_some_and(|readers| readers.len() > 1);
        has_layout && !is_read_here && !self.is_preparing
    }
}
