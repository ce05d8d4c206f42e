//! Geometry of 2D convolutions.

use super::winograd;
use crate::{error::Result, graph::Node, layout::Halo, lowering::Lowering};
use divi_onnx::{DType, Op};

/// Sizes of a 2D convolution. Pairs are (rows, columns).
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) batch: i64,
    /// Input channels per group.
    pub(crate) channels: i64,
    pub(crate) filters: i64,
    pub(crate) groups: i64,
    /// True if each channel has exactly one filter.
    pub(crate) is_depthwise: bool,
    /// True if a channel block consists of several groups, each with as many filters as channels.
    pub(crate) has_narrow_groups: bool,
    /// True if it is computed by Winograd's algorithm.
    pub(crate) is_winograd: bool,
    pub(crate) image: (i64, i64),
    pub(crate) output: (i64, i64),
    pub(crate) kernel: (i64, i64),
    pub(crate) strides: (i64, i64),
    pub(crate) dilations: (i64, i64),
    /// Padding at the top and at the left.
    pub(crate) padding: (i64, i64),
}

impl Geometry {
    /// Returns the geometry of a convolution; `None` if there is no fast kernel.
    pub(crate) fn of(cx: &Lowering<'_>, node: &Node) -> Result<Option<Self>> {
        if node.op != Op::Conv {
            return Ok(None);
        }
        let (input, weights, output) = (node.input(0)?, node.input(1)?, node.output()?);
        let (&[batch, all, height, width], &[filters, channels, rows, columns], &[_, _, out_height, out_width]) =
            (cx.shape(input), cx.shape(weights), cx.shape(output))
        else {
            return Ok(None);
        };
        let is_empty = [batch, all, height, width, filters, rows, columns, out_height, out_width].contains(&0);
        // Weights stay in `bf16` only if the kernel on tile registers reads them.
        if is_empty || !matches!(cx.dtype(weights), DType::F32 | DType::BF16) {
            return Ok(None);
        }
        let attributes = node.attributes();
        let groups = attributes.int_or("group", 1)?;
        let lanes = cx.lanes() as i64;
        let is_depthwise = groups > 1 && channels == 1 && filters == groups;
        let is_whole = |size: i64| size % lanes == 0;
        let has_whole_blocks = is_whole(channels) && is_whole(filters / groups);
        let is_tiled = cx.dtype(weights) == DType::BF16;
        let has_narrow_groups = !is_tiled
            && (groups > 1 && !is_depthwise)
            && (channels < lanes && lanes % channels == 0 && filters == groups * channels);
        let is_fast = groups == 1 || is_depthwise || has_whole_blocks || has_narrow_groups || is_tiled;
        if !is_fast {
            return Ok(None);
        }
        let pair = |name: &str| {
            let values = attributes.ints(name)?;
            Ok(values.and_then(|values| Some((*values.first()?, *values.get(1)?))).unwrap_or((1, 1)))
        };
        let (strides, dilations) = (pair("strides")?, pair("dilations")?);
        let (kernel, output) = ((rows, columns), (out_height, out_width));
        let extent = (dilations.0 * (rows - 1) + 1, dilations.1 * (columns - 1) + 1);
        // Total padding for the given output size, which 'auto_pad' distributes.
        let same = |size: i64, output: i64, stride: i64, extent: i64| ((output - 1) * stride + extent - size).max(0);
        let total = (same(height, out_height, strides.0, extent.0), same(width, out_width, strides.1, extent.1));
        let padding = match attributes.str_or("auto_pad", "NOTSET")? {
            "SAME_UPPER" => (total.0 / 2, total.1 / 2),
            "SAME_LOWER" => ((total.0 + 1) / 2, (total.1 + 1) / 2),
            "VALID" => (0, 0),
            _ => attributes.ints("pads")?.and_then(|pads| Some((*pads.first()?, *pads.get(1)?))).unwrap_or((0, 0)),
        };
        let image = (height, width);
        let geometry = Self {
            batch,
            channels,
            filters,
            groups,
            is_depthwise,
            has_narrow_groups,
            is_winograd: false,
            image,
            output,
            kernel,
            strides,
            dilations,
            padding,
        };
        let is_winograd = cx.dtype(weights) == DType::F32
            && cx.expression(weights).is_some()
            && cx.has_spare_memory()
            && winograd::applies(&geometry, lanes);
        Ok(Some(Self { is_winograd, ..geometry }))
    }

    /// Returns the halo that the windows read.
    pub(crate) fn halo(&self) -> Halo {
        let beyond = |output: i64, stride: i64, kernel: i64, dilation: i64, padding: i64, size: i64| {
            ((output - 1) * stride + dilation * (kernel - 1) + 1 - padding - size).max(0)
        };
        let Self { strides, kernel, dilations, padding, image, .. } = *self;
        let output = if self.is_winograd { winograd::padded(self.output) } else { self.output };
        Halo {
            top: padding.0,
            left: padding.1,
            bottom: beyond(output.0, strides.0, kernel.0, dilations.0, padding.0, image.0),
            right: beyond(output.1, strides.1, kernel.1, dilations.1, padding.1, image.1),
            is_negative_infinity: false,
        }
    }

    /// Returns the number of whole channel blocks, and the number of remaining channels.
    pub(crate) fn split(&self, lanes: i64) -> (i64, i64) {
        (self.channels / lanes, self.channels % lanes)
    }

    /// Returns the size of the weights in bytes.
    pub(crate) fn weight_bytes(&self) -> i64 {
        self.filters * self.channels * self.kernel.0 * self.kernel.1 * 4
    }
}
