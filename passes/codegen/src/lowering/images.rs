//! Images in blocks: which values are, and copies for those who want them otherwise.

use super::{Lowering, Storage};
use crate::{
    graph::Id,
    hot::{
        self,
        layout::{self, Blocked, Margin},
    },
};
use divi_onnx::DType;

impl Lowering<'_> {
    pub(crate) fn is_blocked(&self, id: Id) -> bool {
        self.layouts.contains_key(&id)
    }

    /// A value as others than kernels of blocks read it.
    pub(crate) fn dense(&mut self, id: Id) -> Id {
        let Some(&layout) = self.layouts.get(&id) else { return id };
        if let Some(&dense) = self.dense.get(&id) {
            return dense;
        }
        let shape = self.shape(id).to_vec();
        let dense = self.temporary(DType::F32, &shape);
        layout::to_dense(self, id, dense, &layout);
        self.dense.insert(id, dense);
        dense
    }

    /// An image in blocks with at least a margin.
    pub(crate) fn blocked(&mut self, id: Id, margin: Margin) -> (Id, Blocked) {
        for known in [Some(id), self.blocked.get(&id).copied()].into_iter().flatten() {
            if let Some(&layout) = self.layouts.get(&known).filter(|layout| layout.margin.covers(&margin)) {
                return (known, layout);
            }
        }
        let shape = self.shape(id).to_vec();
        let wanted = self.margins.get(&id).copied().unwrap_or_default();
        let margin = if wanted.covers(&margin) { wanted } else { margin };
        let layout = Blocked::of(&shape, self.lanes(), margin).expect("only images are asked for in blocks");
        let copy = self.temporary(DType::F32, &shape);
        self.layouts.insert(copy, layout);
        match self.layouts.get(&id).copied() {
            Some(source) => layout::with_margin(self, id, copy, &source, &layout),
            None => layout::to_blocks(self, id, copy, &layout),
        }
        self.blocked.insert(id, copy);
        (copy, layout)
    }

    /// Says that a result is written in blocks, with the margin that its readers want, which is filled.
    pub(crate) fn make_blocked(&mut self, id: Id) -> Blocked {
        let margin = self.margins.get(&id).copied().unwrap_or_default();
        let layout = Blocked::of(self.shape(id), self.lanes(), margin).expect("only images are written in blocks");
        self.layouts.insert(id, layout);
        layout::fill_margin(self, id, &layout);
        layout
    }

    /// Says that threads write some rows of an image, with all channels.
    pub(crate) fn write_by_rows(&mut self, id: Id) {
        self.by_rows.insert(id);
    }

    /// Whether a thread that reads some rows of an image finds most of them in its own core's cache: convolutions with few weights
    /// compute all channels of a pixel before the next one's.
    pub(crate) fn is_near_by_rows(&self, id: Id) -> bool {
        /// Beyond it, what was written first is in no such cache any more.
        const LARGE: u64 = 4 << 20;
        self.by_rows.contains(&id) && self.values[id.0].bytes() <= LARGE
    }

    /// Makes an image be written into a part of another, if it lies in memory as that part does and is nowhere else.
    pub(crate) fn place_inside(&mut self, part: Id, whole: Id, first_block: i64) -> bool {
        let (Some(own), Some(target)) = (self.layouts.get(&part), self.layouts.get(&whole)) else { return false };
        let is_alike = target.batch == 1
            && (own.height, own.width, own.margin) == (target.height, target.width, target.margin)
            && self.storage[part.0] == Storage::Unplaced;
        if is_alike {
            let first = (first_block * target.plane()) as u64 * 4;
            self.storage[part.0] = Storage::Part(whole, first);
            self.wholes.insert(whole);
        }
        is_alike
    }

    /// Planes of channels with a margin of zeros around them.
    pub(crate) fn padded_planes(&mut self, id: Id, margin: Margin) -> (Id, Blocked) {
        let id = self.dense(id);
        let shape = self.shape(id).to_vec();
        let layout = hot::planes(&shape, margin);
        if margin.is_empty() {
            return (id, layout);
        }
        let padded = self.temporary(DType::F32, &[layout.elements()]);
        layout::pad_planes(self, id, padded, &layout);
        (padded, layout)
    }
}
