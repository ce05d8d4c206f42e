//! Operands of epilogues in kernels on blocked images.

use crate::{
    emit::{Builder, V},
    epilogue::FusedEpilogue,
    graph::Id,
    layout::{Blocked, Halo},
    lowering::Lowering,
};
use divi_onnx::DType;
use divi_runtime::prepare::{Expression, Loop, Pack};

/// Operand that is broadcast to an image.
pub(super) enum OperandAccess {
    /// Image; if `is_pixel`, of one pixel, which is broadcast.
    Image { id: Id, layout: Blocked, is_pixel: bool },
    /// Vector with one element per channel.
    Channels { id: Id },
}

impl OperandAccess {
    /// Returns true if a kernel that writes an image of a shape can read an operand.
    pub(super) fn is_possible(cx: &Lowering<'_>, id: Id, shape: &[i64]) -> bool {
        if !cx.is_computed_in_f32(id) {
            return false;
        }
        let own = cx.shape(id);
        own == shape || is_per_channel(own, shape) && (own.len() == 4 || cx.expression(id).is_some())
    }

    pub(super) fn of(cx: &mut Lowering<'_>, id: Id, shape: &[i64]) -> Self {
        let own = cx.shape(id).to_vec();
        let channels = shape[1];
        let is_single = own.iter().product::<i64>() == channels;
        if own != shape
            && is_single
            && let Some(expression) = cx.f32_expression(id)
        {
            let lanes = cx.lanes() as i64;
            let count = (channels + lanes - 1) / lanes * lanes;
            return Self::Channels { id: cx.constant(DType::F32, &[count], padded(expression, channels, count)) };
        }
        let (id, layout) = cx.blocked(id, Halo::NONE);
        Self::Image { id, layout, is_pixel: (layout.height, layout.width) == (1, 1) }
    }

    pub(super) fn buffer(&self) -> Id {
        match self {
            Self::Image { id, .. } | Self::Channels { id } => *id,
        }
    }

    /// Returns true if lanes beyond the last channel are finite.
    fn has_finite_lanes(&self, cx: &Lowering<'_>) -> bool {
        match self {
            Self::Image { id, layout, .. } => cx.has_finite_lanes(*id, layout),
            Self::Channels { .. } => true,
        }
    }

    /// Returns true if rows are contiguous.
    pub(super) fn is_flat(&self) -> bool {
        match self {
            Self::Image { layout, is_pixel, .. } => *is_pixel || layout.halo.is_empty(),
            Self::Channels { .. } => true,
        }
    }

    /// Prefetches the elements that [`Self::load`] reads, unless they are the same for all pixels.
    pub(super) fn prefetch(&self, b: &Builder, pointer: V, image: V, block: V, y: V, x: V) {
        if let Self::Image { is_pixel: false, .. } = self {
            b.prefetch(pointer, self.at(b, image, block, y, x));
        }
    }

    /// Loads the lanes of a channel block at a pixel.
    pub(super) fn load(&self, b: &Builder, pointer: V, image: V, block: V, y: V, x: V) -> V {
        b.load_vector(pointer, self.at(b, image, block, y, x), b.vector())
    }

    fn at(&self, b: &Builder, image: V, block: V, y: V, x: V) -> V {
        match self {
            Self::Channels { .. } => b.times(block, b.lanes() as i64),
            Self::Image { layout, is_pixel, .. } => {
                let plane = if layout.batch == 1 { block } else { b.add(b.times(image, layout.blocks()), block) };
                let zero = b.index(0);
                let (y, x) = if *is_pixel { (zero, zero) } else { (y, x) };
                layout.at(b, plane, y, x)
            }
        }
    }
}

/// Records that the lanes of a result beyond its last channel are finite, if those of all operands of the epilogue are.
pub(super) fn keep_finite_lanes(cx: &mut Lowering<'_>, fused: &FusedEpilogue, accesses: &[OperandAccess], result: Id) {
    if fused.is_finite() && accesses.iter().all(|access| access.has_finite_lanes(cx)) {
        cx.set_finite_lanes(result);
    }
}

/// Returns true if a shape has one element per channel: `[channels, 1, 1]`, with or without a batch.
fn is_per_channel(own: &[i64], shape: &[i64]) -> bool {
    match (own, shape) {
        (&[c, 1, 1], &[_, channels, ..]) => c == channels,
        (&[n, c, 1, 1], &[batch, channels, ..]) => c == channels && (n == 1 || n == batch),
        _ => false,
    }
}

/// Returns an expression that appends zeros to a vector of `count` elements.
pub(super) fn padded(numbers: Expression, count: i64, padded: i64) -> Expression {
    if count == padded {
        return numbers;
    }
    let shape = vec![count as u64];
    let loops = vec![Loop { axis: 0, count: padded as u64, step: 1 }];
    Expression::Pack(Pack { source: Box::new(numbers), shape: shape.clone(), start: vec![0], end: shape, loops })
}
