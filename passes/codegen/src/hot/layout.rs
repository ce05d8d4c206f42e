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
    let value = if margin.is_lowest { f64::NEG_INFINITY } else { 0.0 };
    cx.call(layout.batch * layout.blocks(), 8, &[], &[id], |b, kernel| {
        let (out, ty) = (kernel.buffers[0], b.vector());
        let fill = b.float(value, ty);
        let run = |start: V, pixels: i64| {
            b.repeat(pixels, |x| b.store_vector(fill, out, b.add(start, b.times(x, layout.lanes))));
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
    let layout = *layout;
    let (blocks, lanes) = (layout.blocks(), layout.lanes);
    cx.call(layout.batch * blocks, 1, &[dense], &[blocked], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            let (image, block) = b.div_rem(plane, blocks);
            let first = b.times(block, lanes);
            let left = b.sub(b.index(layout.channels), first);
            let count = b.min(left, b.index(lanes), false);
            b.repeat(layout.height, |y| {
                b.for_each(b.index(0), count, 1, |lane| {
                    let channel = b.add(b.add(b.times(image, layout.channels), first), lane);
                    let row = b.times(b.add(b.times(channel, layout.height), y), layout.width);
                    let to = b.add(layout.at(b, plane, y, b.index(0)), lane);
                    b.repeat(layout.width, |x| {
                        let value = b.load(kernel.buffers[0], DType::F32, b.add(row, x));
                        b.store(value, kernel.buffers[1], DType::F32, b.add(to, b.times(x, lanes)));
                    });
                });
            });
        });
    });
}

/// Makes a blocked value dense again.
pub(crate) fn to_dense(cx: &mut Lowering<'_>, blocked: Id, dense: Id, layout: &Blocked) {
    let layout = *layout;
    let (blocks, lanes) = (layout.blocks(), layout.lanes);
    cx.call(layout.batch * layout.channels, lanes, &[blocked], &[dense], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (image, channel) = b.div_rem(number, layout.channels);
            let (block, lane) = b.div_rem(channel, lanes);
            let plane = b.add(b.times(image, blocks), block);
            b.repeat(layout.height, |y| {
                let from = b.add(layout.at(b, plane, y, b.index(0)), lane);
                let row = b.times(b.add(b.times(number, layout.height), y), layout.width);
                b.repeat(layout.width, |x| {
                    let value = b.load(kernel.buffers[0], DType::F32, b.add(from, b.times(x, lanes)));
                    b.store(value, kernel.buffers[1], DType::F32, b.add(row, x));
                });
            });
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
                    b.store_vector(value, kernel.buffers[1], b.add(write, pixel));
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
