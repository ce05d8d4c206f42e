//! Reorders between row-major and blocked layouts, and between halos.

use crate::{
    emit::{Builder, Compare, V},
    graph::Id,
    layout::{Blocked, Halo},
    lowering::Lowering,
};
use divi_onnx::DType;

impl Lowering<'_> {
    /// Returns a value in row-major order; copies it if it is blocked.
    pub(crate) fn dense(&mut self, id: Id) -> Id {
        let Some(layout) = self.layout(id) else { return id };
        if let Some(dense) = self.dense_copy(id) {
            return dense;
        }
        let shape = self.shape(id).to_vec();
        let copy = self.temporary(self.type_in_memory(id), &shape);
        to_dense(self, id, copy, &layout);
        let dense = if self.dtype(id) == self.dtype(copy) { copy } else { self.temporary(self.dtype(id), &shape) };
        if dense != copy {
            self.view_converted(dense, copy);
        }
        self.set_dense_copy(id, dense);
        dense
    }

    /// Returns a blocked image whose halo covers `halo`, and its layout; copies the image if it has another layout.
    pub(crate) fn blocked(&mut self, id: Id, halo: Halo) -> (Id, Blocked) {
        for known in [Some(id), self.blocked_copy(id)].into_iter().flatten() {
            if let Some(layout) = self.layout(known).filter(|layout| layout.halo.covers(&halo)) {
                return (known, layout);
            }
        }
        let shape = self.shape(id).to_vec();
        let wanted = self.halo(id);
        let halo = if wanted.covers(&halo) { wanted } else { halo };
        let layout = Blocked::of(&shape, self.lanes(), halo).expect("only images are read in blocks");
        let copy = self.temporary(self.type_in_memory(id), &shape);
        self.set_layout(copy, layout);
        self.copy_into_blocks(id, copy, &layout);
        self.set_blocked_copy(id, copy);
        (copy, layout)
    }

    /// Copies an image, blocked or row-major, into a blocked value.
    pub(crate) fn copy_into_blocks(&mut self, from: Id, to: Id, layout: &Blocked) {
        match self.layout(from) {
            Some(source) => with_halo(self, from, to, &source, layout),
            None => to_blocks(self, from, to, layout),
        }
    }

    /// Makes a result blocked, with the halo that its users require, and adds a call that fills the halo.
    pub(crate) fn make_blocked(&mut self, id: Id) -> Blocked {
        let layout =
            Blocked::of(self.shape(id), self.lanes(), self.halo(id)).expect("only images are written in blocks");
        self.set_layout(id, layout);
        fill_halo(self, id, &layout);
        layout
    }

    /// Returns a blocked image whose lanes beyond the last channel are finite: it, with zeros there, or a copy if
    /// its bytes are not its own.
    pub(crate) fn with_finite_lanes(&mut self, id: Id, layout: &Blocked) -> Id {
        if self.has_finite_lanes(id, layout) {
            return id;
        }
        let known = self.blocked_copy(id).filter(|&copy| self.layout(copy) == Some(*layout));
        if let Some(copy) = known.filter(|&copy| self.has_finite_lanes(copy, layout)) {
            return copy;
        }
        let id = if self.owns_lanes(id) { id } else { self.copy(id, layout) };
        clear_lanes(self, id, layout);
        self.set_finite_lanes(id);
        id
    }

    /// Returns a copy of a blocked image.
    fn copy(&mut self, id: Id, layout: &Blocked) -> Id {
        let shape = self.shape(id).to_vec();
        let copy = self.temporary(self.type_in_memory(id), &shape);
        self.set_layout(copy, *layout);
        with_halo(self, id, copy, layout, layout);
        self.set_blocked_copy(id, copy);
        copy
    }

    /// Returns an image of few channels in `bf16`, with blocks of `lanes` channels, zeros in lanes beyond the last channel and a halo of
    /// zeros, and its layout.
    pub(crate) fn narrow_blocks(&mut self, id: Id, lanes: i64, halo: Halo) -> (Id, Blocked) {
        let id = self.dense(id);
        let layout = Blocked::of(self.shape(id), lanes as usize, halo).expect("only images are read in blocks");
        let copy = self.temporary(DType::BF16, &[layout.elements()]);
        interleave(self, id, copy, &layout);
        (copy, layout)
    }

    /// Returns an NCHW image with a halo of zeros around each plane, and its layout.
    pub(crate) fn padded_planes(&mut self, id: Id, halo: Halo) -> (Id, Blocked) {
        let id = self.dense(id);
        let layout = Blocked::planes(self.shape(id), halo);
        if halo.is_empty() {
            return (id, layout);
        }
        let padded = self.temporary(self.type_in_memory(id), &[layout.elements()]);
        pad_planes(self, id, padded, &layout);
        (padded, layout)
    }
}

/// Fills the halo of a value with its padding value.
fn fill_halo(cx: &mut Lowering<'_>, id: Id, layout: &Blocked) {
    let (halo, layout) = (layout.halo, *layout);
    if halo.is_empty() {
        return;
    }
    let value = halo.value();
    cx.call(layout.batch * layout.blocks(), 8, &[], &[id], |b, kernel| {
        let (out, ty) = (kernel.buffers[0], b.vector());
        let fill = b.float(value, ty);
        let run = |start: V, pixels: i64| {
            b.repeat(pixels, |x| b.store_aligned(fill, out, b.add(start, b.times(x, layout.lanes))));
        };
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            let base = b.times(plane, layout.plane());
            let columns = layout.row() / layout.lanes;
            run(base, halo.top * columns);
            run(b.plus(base, (halo.top + layout.height) * layout.row()), halo.bottom * columns);
            b.repeat(layout.height, |y| {
                let row = b.plus(b.add(base, b.times(y, layout.row())), halo.top * layout.row());
                run(row, halo.left);
                run(b.plus(row, (halo.left + layout.width) * layout.lanes), halo.right);
            });
        });
    });
}

/// Reorders a row-major value into a blocked one.
fn to_blocks(cx: &mut Lowering<'_>, dense: Id, blocked: Id, layout: &Blocked) {
    fill_halo(cx, blocked, layout);
    for_each_tile(cx, dense, blocked, *layout, |b, buffers, tile| {
        let [source, target] = [buffers[0], buffers[1]];
        let Some(start) = tile.start else {
            tile.one_by_one(b, |dense, blocked| {
                b.store(b.load(source, DType::F32, dense), target, DType::F32, blocked);
            });
            return;
        };
        let channel = |channel| b.load_vector(source, tile.dense(b, channel, start), b.vector());
        let mut channels: Vec<V> = (0..tile.channels).map(channel).collect();
        // Lanes beyond the last channel are undefined.
        channels.resize(tile.layout.lanes as usize, channels[0]);
        for (i, pixel) in (0..).zip(b.transpose(channels)) {
            b.store_aligned(pixel, target, tile.blocked(b, b.plus(start, i)));
        }
    });
}

/// Reorders a blocked value into a row-major one.
fn to_dense(cx: &mut Lowering<'_>, blocked: Id, dense: Id, layout: &Blocked) {
    for_each_tile(cx, blocked, dense, *layout, |b, buffers, tile| {
        let [source, target] = [buffers[0], buffers[1]];
        let Some(start) = tile.start else {
            tile.one_by_one(b, |dense, blocked| {
                b.store(b.load(source, DType::F32, blocked), target, DType::F32, dense);
            });
            return;
        };
        let pixel = |i| b.load_vector(source, tile.blocked(b, b.plus(start, i)), b.vector());
        let channels = b.transpose((0..tile.layout.lanes).map(pixel).collect());
        for (channel, values) in (0..tile.channels).zip(channels) {
            b.store_vector(values, target, tile.dense(b, channel, start));
        }
    });
}

/// A square tile of channels by pixels, `lanes` of each, which is transposed in registers.
struct Tile {
    layout: Blocked,
    /// Index of the channel block over all images.
    plane: V,
    /// Index of the block's first channel over all images.
    first_channel: V,
    /// Number of channels in the block; fewer than `lanes` in the last one.
    channels: i64,
    /// Index of the first pixel in row-major order; `None` if the image has fewer than `lanes` pixels.
    start: Option<V>,
}

impl Tile {
    /// Emits the offset of a pixel of a channel in the row-major value.
    fn dense(&self, b: &Builder, channel: i64, pixel: V) -> V {
        b.add(b.times(b.plus(self.first_channel, channel), self.layout.height * self.layout.width), pixel)
    }

    /// Emits the offset of the first lane of a pixel in the blocked value.
    fn blocked(&self, b: &Builder, pixel: V) -> V {
        let Halo { left: 0, right: 0, .. } = self.layout.halo else {
            let (y, x) = b.div_rem(pixel, self.layout.width);
            return self.layout.at(b, self.plane, y, x);
        };
        self.layout.at(b, self.plane, b.index(0), pixel)
    }

    /// Emits a scalar loop over the pixels of the image for each channel of the block. `body` gets the offset in the row-major value and
    /// the offset in the blocked value.
    fn one_by_one(&self, b: &Builder, body: impl Fn(V, V)) {
        for channel in 0..self.channels {
            b.repeat(self.layout.height * self.layout.width, |pixel| {
                body(self.dense(b, channel, pixel), b.plus(self.blocked(b, pixel), channel));
            });
        }
    }
}

/// Squares that one iteration copies.
const SQUARES: i64 = 8;
/// Minimal number of bytes per thread.
const GRAIN: i64 = 32 * 1024;

/// Copies between a row-major value and a blocked one, tile by tile.
fn for_each_tile(cx: &mut Lowering<'_>, from: Id, to: Id, layout: Blocked, copy: impl Fn(&Builder, &[V], &Tile)) {
    let (blocks, lanes, pixels) = (layout.blocks(), layout.lanes, layout.height * layout.width);
    let count = (pixels + lanes - 1) / lanes;
    // The last piece also has the remaining tiles.
    let pieces = (count / SQUARES).max(1);
    let grain = GRAIN / (lanes * lanes * 4 * count.min(SQUARES));
    cx.call(layout.batch * blocks * pieces, grain, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, piece) = b.div_rem(number, pieces);
            let (image, block) = b.div_rem(plane, blocks);
            let first_channel = b.add(b.times(image, layout.channels), b.times(block, lanes));
            let of_block = |channels: i64| {
                let tile = |start| Tile { layout, plane, first_channel, channels, start };
                if pixels < lanes {
                    copy(b, kernel.buffers, &tile(None));
                    return vec![];
                }
                let is_last = b.equal(piece, b.index(pieces - 1));
                let first = b.times(piece, SQUARES);
                let end = b.select(is_last, b.index(count), b.plus(first, SQUARES));
                b.for_each(first, end, 1, |number| {
                    // The last tile overlaps the previous one if the number of pixels is not a multiple of `lanes`.
                    let start = b.min(b.times(number, lanes), b.index(pixels - lanes), false);
                    copy(b, kernel.buffers, &tile(Some(start)));
                });
                vec![]
            };
            match layout.channels % lanes {
                0 => _ = of_block(lanes),
                rest if blocks == 1 => _ = of_block(rest),
                rest => {
                    let is_last = b.equal(block, b.index(blocks - 1));
                    b.if_else(is_last, || of_block(rest), || of_block(lanes));
                }
            }
        });
    });
}

/// Copies a blocked value into one with another halo.
fn with_halo(cx: &mut Lowering<'_>, from: Id, to: Id, source: &Blocked, target: &Blocked) {
    fill_halo(cx, to, target);
    let (source, target) = (*source, *target);
    cx.call(target.batch * target.blocks(), 1, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            b.repeat(target.height, |y| {
                let (read, write) = (source.at(b, plane, y, b.index(0)), target.at(b, plane, y, b.index(0)));
                b.repeat(target.width, |x| {
                    let pixel = b.times(x, target.lanes);
                    let value = b.load_vector(kernel.buffers[0], b.add(read, pixel), b.vector());
                    b.store_aligned(value, kernel.buffers[1], b.add(write, pixel));
                });
            });
        });
    });
}

/// Writes zeros to the lanes beyond the last channel.
fn clear_lanes(cx: &mut Lowering<'_>, id: Id, layout: &Blocked) {
    let layout = *layout;
    cx.call(layout.batch * layout.height, 8, &[], &[id], |b, kernel| {
        let (ty, zero) = (b.vector(), b.float(0.0, b.vector()));
        let used = b.mask((layout.channels % layout.lanes) as usize).lanes();
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (image, y) = b.div_rem(number, layout.height);
            let plane = b.plus(b.times(image, layout.blocks()), layout.blocks() - 1);
            let row = layout.at(b, plane, y, b.index(0));
            b.repeat(layout.width, |x| {
                let at = b.add(row, b.times(x, layout.lanes));
                let pixel = b.select(used, b.load_vector(kernel.buffers[0], at, ty), zero);
                b.store_aligned(pixel, kernel.buffers[0], at);
            });
        });
    });
}

/// Copies an NCHW image into one of a single channel block, with zeros in the halo and in lanes beyond the last channel.
fn interleave(cx: &mut Lowering<'_>, from: Id, to: Id, layout: &Blocked) {
    copy_padded_rows(cx, from, to, layout, 16, |b, [source, target], image, y, to| {
        let zero = b.float(0.0, b.f32());
        let first = b.times(image, layout.channels);
        let row = |lane: i64| {
            let row = b.add(b.times(b.plus(first, lane), layout.height), y);
            b.times(row, layout.width)
        };
        let rows: Vec<_> = (0..layout.channels).map(row).collect();
        let pixels = b.lanes() as i64;
        if layout.width < pixels {
            b.repeat(layout.width, |x| {
                for lane in 0..layout.lanes {
                    let row = rows.get(lane as usize);
                    let value = row.map_or(zero, |&row| b.load(source, DType::F32, b.add(row, x)));
                    b.store(value, target, DType::F32, b.plus(b.add(to, b.times(x, layout.lanes)), lane));
                }
            });
            return;
        }
        b.repeat((layout.width + pixels - 1) / pixels, |number| {
            // The last pixels overlap the ones before if the width is not a multiple.
            let x = b.min(b.times(number, pixels), b.index(layout.width - pixels), false);
            let channel = |row: &V| b.load_vector(source, b.add(*row, x), b.vector());
            let mut channels: Vec<_> = rows.iter().map(channel).collect();
            channels.resize(layout.lanes as usize, b.float(0.0, b.vector()));
            let to = b.add(to, b.times(x, layout.lanes));
            for (i, vector) in (0..).zip(b.interleave_all(channels)) {
                b.store_vector(vector, target, b.plus(to, i * pixels));
            }
        });
    });
}

/// Copies an NCHW image into one with a halo of zeros around each plane.
fn pad_planes(cx: &mut Lowering<'_>, from: Id, to: Id, layout: &Blocked) {
    copy_padded_rows(cx, from, to, layout, 64, |b, [source, target], plane, y, to| {
        let from = b.times(b.add(b.times(plane, layout.height), y), layout.width);
        b.repeat(layout.width, |x| {
            let value = b.load(source, DType::F32, b.add(from, x));
            b.store(value, target, DType::F32, b.add(to, x));
        });
    });
}

/// Copies an image row by row into one with a halo, which is filled with zeros. `copy` gets source and target, a channel block of all
/// images, a row and its offset in the target.
fn copy_padded_rows(
    cx: &mut Lowering<'_>,
    from: Id,
    to: Id,
    layout: &Blocked,
    grain: i64,
    copy: impl Fn(&Builder, [V; 2], V, V, V),
) {
    let Halo { top, left, bottom, right, .. } = layout.halo;
    let rows = layout.height + top + bottom;
    cx.call(layout.batch * layout.blocks() * rows, grain, &[from], &[to], |b, kernel| {
        let zero = b.float(0.0, b.f32());
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, row) = b.div_rem(number, rows);
            let start = b.times(number, layout.row());
            let y = b.plus(row, -top);
            let fill = |from: i64, pixels: i64| {
                b.repeat(pixels * layout.lanes, |i| {
                    b.store(zero, target, DType::F32, b.plus(b.add(start, i), from * layout.lanes));
                });
            };
            // The unsigned comparison covers rows above the image (negative) and below it.
            let is_inside = b.compare(Compare::Less, y, b.index(layout.height), true);
            b.if_else(
                is_inside,
                || {
                    fill(0, left);
                    copy(b, [source, target], plane, y, b.plus(start, left * layout.lanes));
                    fill(left + layout.width, right);
                    vec![]
                },
                || {
                    fill(0, layout.row() / layout.lanes);
                    vec![]
                },
            );
        });
    });
}
