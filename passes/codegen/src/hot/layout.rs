//! Images in blocks: a register's worth of channels side by side for each pixel, and a margin around each image.
//!
//! `[batch][channel blocks][rows][columns][lanes]`. The margin has what a window reads beyond the image, so that kernels test no
//! borders. Lanes beyond the last channel hold anything: nothing reads them but what computes other such lanes.

use crate::{
    emit::{Builder, V},
    graph::Id,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Pixels around an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Margin {
    pub(crate) top: i64,
    pub(crate) left: i64,
    pub(crate) bottom: i64,
    pub(crate) right: i64,
    /// Whether they are less than all numbers, instead of zero.
    pub(crate) is_lowest: bool,
}

impl Margin {
    /// No pixels.
    pub(crate) const NONE: Self = Self { top: 0, left: 0, bottom: 0, right: 0, is_lowest: false };

    pub(crate) fn is_empty(&self) -> bool {
        self.top == 0 && self.left == 0 && self.bottom == 0 && self.right == 0
    }

    /// What its pixels are.
    pub(crate) fn value(&self) -> f64 {
        if self.is_lowest { f64::NEG_INFINITY } else { 0.0 }
    }

    /// Whether what needs `other` can read a value with this margin.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_wide = self.top >= other.top
            && self.left >= other.left
            && self.bottom >= other.bottom
            && self.right >= other.right;
        is_wide && (other.is_empty() || self.is_lowest == other.is_lowest)
    }

    /// The least margin that covers both, if they have the same pixels in them.
    pub(crate) fn union(&self, other: &Self) -> Option<Self> {
        if !self.is_empty() && !other.is_empty() && self.is_lowest != other.is_lowest {
            return None;
        }
        Some(Self {
            top: self.top.max(other.top),
            left: self.left.max(other.left),
            bottom: self.bottom.max(other.bottom),
            right: self.right.max(other.right),
            is_lowest: [self, other].into_iter().any(|margin| margin.is_lowest && !margin.is_empty()),
        })
    }
}

/// How a value of shape `[batch, channels, height, width]` lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) batch: i64,
    pub(crate) channels: i64,
    pub(crate) height: i64,
    pub(crate) width: i64,
    pub(crate) margin: Margin,
    pub(crate) lanes: i64,
}

impl Blocked {
    /// The layout of a shape; `None` if it is no image.
    pub(crate) fn of(shape: &[i64], lanes: usize, margin: Margin) -> Option<Self> {
        let &[batch, channels, height, width] = shape else { return None };
        (batch > 0 && channels > 0 && height > 0 && width > 0).then_some(Self {
            batch,
            channels,
            height,
            width,
            margin,
            lanes: lanes as i64,
        })
    }

    pub(crate) fn blocks(&self) -> i64 {
        (self.channels + self.lanes - 1) / self.lanes
    }

    /// Elements of a row.
    pub(crate) fn row(&self) -> i64 {
        (self.width + self.margin.left + self.margin.right) * self.lanes
    }

    /// Elements of a block of channels of one image.
    pub(crate) fn plane(&self) -> i64 {
        (self.height + self.margin.top + self.margin.bottom) * self.row()
    }

    /// Elements of one image.
    pub(crate) fn image(&self) -> i64 {
        self.blocks() * self.plane()
    }

    /// Where the first pixel of a plane is.
    pub(crate) fn origin(&self) -> i64 {
        self.margin.top * self.row() + self.margin.left * self.lanes
    }

    pub(crate) fn elements(&self) -> i64 {
        self.batch * self.image()
    }

    /// Whether it is of use to hand an image on like this: lanes are filled, and there are pixels to put in order.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.channels >= self.lanes && self.height * self.width > 1
    }

    /// What it is as a dense tensor: `[batch, blocks, rows, columns, lanes]`, with the margin.
    pub(crate) fn shape(&self) -> Vec<i64> {
        let Margin { top, left, bottom, right, .. } = self.margin;
        vec![self.batch, self.blocks(), self.height + top + bottom, self.width + left + right, self.lanes]
    }

    /// The element at a pixel of plane number `plane`, counted over all images.
    pub(crate) fn at(&self, b: &Builder, plane: V, y: V, x: V) -> V {
        let rows = b.add(b.times(plane, self.plane()), b.times(y, self.row()));
        b.plus(b.add(rows, b.times(x, self.lanes)), self.origin())
    }
}

/// Fills the margin of a value.
pub(crate) fn fill_margin(cx: &mut Lowering<'_>, id: Id, layout: &Blocked) {
    let (margin, layout) = (layout.margin, *layout);
    if margin.is_empty() {
        return;
    }
    let value = margin.value();
    cx.call(layout.batch * layout.blocks(), 8, &[], &[id], |b, kernel| {
        let (out, ty) = (kernel.buffers[0], b.vector());
        let fill = b.float(value, ty);
        let run = |start: V, pixels: i64| {
            b.repeat(pixels, |x| b.store_aligned(fill, out, b.add(start, b.times(x, layout.lanes))));
        };
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            let base = b.times(plane, layout.plane());
            let columns = layout.row() / layout.lanes;
            run(base, margin.top * columns);
            run(b.plus(base, (margin.top + layout.height) * layout.row()), margin.bottom * columns);
            b.repeat(layout.height, |y| {
                let row = b.plus(b.add(base, b.times(y, layout.row())), margin.top * layout.row());
                run(row, margin.left);
                run(b.plus(row, (margin.left + layout.width) * layout.lanes), margin.right);
            });
        });
    });
}

/// Puts a dense value into blocks.
pub(crate) fn to_blocks(cx: &mut Lowering<'_>, dense: Id, blocked: Id, layout: &Blocked) {
    fill_margin(cx, blocked, layout);
    squares(cx, dense, blocked, *layout, |b, buffers, square| {
        let [source, target] = [buffers[0], buffers[1]];
        let Some(start) = square.start else {
            square.one_by_one(b, |dense, blocked| {
                b.store(b.load(source, DType::F32, dense), target, DType::F32, blocked);
            });
            return;
        };
        let channel = |channel| b.load_vector(source, square.dense(b, channel, start), b.vector());
        let mut channels: Vec<V> = (0..square.channels).map(channel).collect();
        // Nothing reads what is in the other lanes.
        channels.resize(square.layout.lanes as usize, channels[0]);
        for (i, pixel) in (0..).zip(b.turned(channels)) {
            b.store_aligned(pixel, target, square.blocked(b, b.plus(start, i)));
        }
    });
}

/// Makes a blocked value dense again.
pub(crate) fn to_dense(cx: &mut Lowering<'_>, blocked: Id, dense: Id, layout: &Blocked) {
    squares(cx, blocked, dense, *layout, |b, buffers, square| {
        let [source, target] = [buffers[0], buffers[1]];
        let Some(start) = square.start else {
            square.one_by_one(b, |dense, blocked| {
                b.store(b.load(source, DType::F32, blocked), target, DType::F32, dense);
            });
            return;
        };
        let pixel = |i| b.load_vector(source, square.blocked(b, b.plus(start, i)), b.vector());
        let channels = b.turned((0..square.layout.lanes).map(pixel).collect());
        for (channel, values) in (0..square.channels).zip(channels) {
            b.store_vector(values, target, square.dense(b, channel, start));
        }
    });
}

/// As many pixels of a block of channels as it has channels: what can be turned in registers.
struct Square {
    layout: Blocked,
    /// Of the block, counted over all images, and of its first channel, likewise.
    plane: V,
    first_channel: V,
    /// How many of the block's channels there are.
    channels: i64,
    /// The first pixel, counted row by row; `None` if the image has too few for a square.
    start: Option<V>,
}

impl Square {
    /// Where a pixel of one of the channels is in the dense value.
    fn dense(&self, b: &Builder, channel: i64, pixel: V) -> V {
        b.add(b.times(b.plus(self.first_channel, channel), self.layout.height * self.layout.width), pixel)
    }

    /// Where the channels of a pixel begin in blocks.
    fn blocked(&self, b: &Builder, pixel: V) -> V {
        let Margin { left: 0, right: 0, .. } = self.layout.margin else {
            let (y, x) = b.div_rem(pixel, self.layout.width);
            return self.layout.at(b, self.plane, y, x);
        };
        self.layout.at(b, self.plane, b.index(0), pixel)
    }

    /// For all pixels of the image and all channels of the block: where they are in the dense value, and in blocks.
    fn one_by_one(&self, b: &Builder, body: impl Fn(V, V)) {
        for channel in 0..self.channels {
            b.repeat(self.layout.height * self.layout.width, |pixel| {
                body(self.dense(b, channel, pixel), b.plus(self.blocked(b, pixel), channel));
            });
        }
    }
}

/// Squares that one iteration copies, and the bytes that are worth a thread.
const SQUARES: i64 = 8;
const GRAIN: i64 = 32 * 1024;

/// Copies between a dense value and one in blocks, square by square.
fn squares(cx: &mut Lowering<'_>, from: Id, to: Id, layout: Blocked, copy: impl Fn(&Builder, &[V], &Square)) {
    let (blocks, lanes, pixels) = (layout.blocks(), layout.lanes, layout.height * layout.width);
    let count = (pixels + lanes - 1) / lanes;
    // The last one takes the rest.
    let pieces = (count / SQUARES).max(1);
    let grain = GRAIN / (lanes * lanes * 4 * count.min(SQUARES));
    cx.call(layout.batch * blocks * pieces, grain, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, piece) = b.div_rem(number, pieces);
            let (image, block) = b.div_rem(plane, blocks);
            let first_channel = b.add(b.times(image, layout.channels), b.times(block, lanes));
            let of_block = |channels: i64| {
                let square = |start| Square { layout, plane, first_channel, channels, start };
                if pixels < lanes {
                    copy(b, kernel.buffers, &square(None));
                    return vec![];
                }
                let is_last = b.equal(piece, b.index(pieces - 1));
                let first = b.times(piece, SQUARES);
                let end = b.select(is_last, b.index(count), b.plus(first, SQUARES));
                b.for_each(first, end, 1, |number| {
                    // The last square has pixels of the one before where there are not enough.
                    let start = b.min(b.times(number, lanes), b.index(pixels - lanes), false);
                    copy(b, kernel.buffers, &square(Some(start)));
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

/// Gives a blocked value another margin.
pub(crate) fn with_margin(cx: &mut Lowering<'_>, from: Id, to: Id, source: &Blocked, target: &Blocked) {
    fill_margin(cx, to, target);
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

/// Puts planes of channels into others with a margin of zeros.
pub(crate) fn pad_planes(cx: &mut Lowering<'_>, from: Id, to: Id, layout: &Blocked) {
    let layout = *layout;
    let Margin { top, left, bottom, right, .. } = layout.margin;
    let rows = layout.height + top + bottom;
    cx.call(layout.batch * layout.channels * rows, 64, &[from], &[to], |b, kernel| {
        let zero = b.float(0.0, b.f32());
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, row) = b.div_rem(number, rows);
            let to = b.times(number, layout.row());
            let y = b.plus(row, -top);
            let fill = |from: i64, count: i64| {
                b.repeat(count, |x| b.store(zero, kernel.buffers[1], DType::F32, b.plus(b.add(to, x), from)));
            };
            // Above and below the image, an unsigned comparison sees both.
            let is_inside = b.compare(crate::emit::Compare::Less, y, b.index(layout.height), true);
            b.if_else(
                is_inside,
                || {
                    fill(0, left);
                    let from = b.times(b.add(b.times(plane, layout.height), y), layout.width);
                    b.repeat(layout.width, |x| {
                        let value = b.load(kernel.buffers[0], DType::F32, b.add(from, x));
                        b.store(value, kernel.buffers[1], DType::F32, b.plus(b.add(to, x), left));
                    });
                    fill(left + layout.width, right);
                    vec![]
                },
                || {
                    fill(0, layout.row());
                    vec![]
                },
            );
        });
    });
}
