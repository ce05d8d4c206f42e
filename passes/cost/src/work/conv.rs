//! Work of convolutions: plain, transposed, quantized, deformable and causal, and `Col2Im`.

use super::elementwise::{REQUANTIZE, SIGMOID};
use super::operator::{Count, Operator, bytes, plus, times};
use super::{Class, Geometry};
use divi_onnx::Error;

/// Loop sizes of a convolution of any rank.
struct Loops {
    images: u64,
    groups: u64,
    /// Input channels per group.
    in_channels: u64,
    /// Output channels per group.
    out_channels: u64,
    pixels_in: u64,
    pixels_out: u64,
    width: u64,
    taps: u64,
    stride: u64,
}

impl Loops {
    /// Returns the loop sizes. The first dimension of the weights is output channels, or input channels if `transposed`.
    fn new(op: &Operator<'_>, weights: usize, transposed: bool) -> Result<Self, Error> {
        let (x, w, y) = (op.dims(0)?, op.dims(weights)?, op.result_dims(0)?);
        let ([images, _, image @ ..], [major, minor, kernel @ ..]) = (&x[..], &w[..]) else {
            return Err(op.wrong(if x.len() < 2 { 0 } else { weights }, "data or weights with channels"));
        };
        let [_, _, pixels_out @ ..] = &y[..] else {
            return Err(Error::new("result 0 must have channels"));
        };
        let groups = match op.node.int_or("group", 1)? {
            group @ 1.. => group.unsigned_abs(),
            group => return Err(Error::new(format!("attribute 'group' must be positive, is {group}"))),
        };
        let (in_channels, out_channels) = if transposed { (major / groups, *minor) } else { (*minor, major / groups) };
        let strides = op.node.ints("strides")?.unwrap_or_default();
        Ok(Self {
            images: *images,
            groups,
            in_channels,
            out_channels,
            pixels_in: times(image),
            pixels_out: times(pixels_out),
            width: pixels_out.last().copied().unwrap_or(1),
            taps: times(kernel),
            stride: times(&strides.iter().map(|stride| stride.unsigned_abs()).collect::<Vec<_>>()),
        })
    }

    fn is_depthwise(&self) -> bool {
        self.in_channels == 1 && self.groups > 1
    }

    /// Returns the number of elements of the result.
    fn results(&self) -> u64 {
        times(&[self.images, self.groups, self.out_channels, self.pixels_out])
    }

    /// Counts a multiplication and an addition for each tap, pair of channels and pixel, and `extra` operations.
    fn count(&self, op: &Operator<'_>, pixels: u64, extra: u64) -> Count {
        let Self { images, groups, in_channels, out_channels, width, taps, stride, .. } = *self;
        let flops = times(&[2, images, groups, in_channels, out_channels, pixels, taps]);
        let geometry = Geometry::Conv { images, groups, in_channels, out_channels, pixels, width, taps, stride };
        let class = if self.is_depthwise() { Class::DepthwiseConv } else { Class::Conv };
        op.does(plus(&[flops, extra]), geometry).class(class)
    }

    /// Returns the operations of the bias: an addition per element of the result.
    fn bias(&self, op: &Operator<'_>, operand: usize) -> u64 {
        if op.has(operand) { self.results() } else { 0 }
    }
}

pub(super) fn convolution(op: &Operator<'_>, weights: usize, bias: Option<usize>) -> Result<Count, Error> {
    let loops = Loops::new(op, weights, false)?;
    let bias = bias.map_or(0, |bias| loops.bias(op, bias));
    Ok(loops.count(op, loops.pixels_out, bias))
}

/// Counts `QLinearConv`. Zero points only add terms of lower order, which are not counted.
pub(super) fn qlinear_conv(op: &Operator<'_>) -> Result<Count, Error> {
    let loops = Loops::new(op, 3, false)?;
    let requantize = times(&[REQUANTIZE, loops.results()]);
    Ok(loops.count(op, loops.pixels_out, plus(&[loops.bias(op, 8), requantize])))
}

/// Counts `ConvTranspose`: each element of the data is multiplied by every tap once.
pub(super) fn conv_transpose(op: &Operator<'_>) -> Result<Count, Error> {
    let loops = Loops::new(op, 1, true)?;
    Ok(loops.count(op, loops.pixels_in, loops.bias(op, 2)))
}

/// Counts `DeformConv`: each tap of each channel is interpolated between the corners of a cell (a multiplication and an addition
/// per corner), masked if there is a mask, and stored for the convolution, one image at a time.
pub(super) fn deform_conv(op: &Operator<'_>) -> Result<Count, Error> {
    let loops = Loops::new(op, 1, false)?;
    let axes = op.dims(1)?.len().saturating_sub(2);
    let corners = 1u64.checked_shl(axes as u32).unwrap_or(u64::MAX);
    let samples = times(&[loops.groups, loops.in_channels, loops.taps, loops.pixels_out]);
    let sampling = plus(&[times(&[2, corners]), u64::from(op.has(4))]);
    let extra = plus(&[loops.bias(op, 3), times(&[loops.images, samples, sampling])]);
    let count = loops.count(op, loops.pixels_out, extra);
    Ok(count.scratch(bytes(op.node.dtype(0)?, samples)))
}

pub(super) fn causal_conv_with_state(op: &Operator<'_>) -> Result<Count, Error> {
    let (x, w) = (op.dims(0)?, op.dims(1)?);
    let (&[images, channels, length], &[_, _, taps]) = (&x[..], &w[..]) else {
        return Err(op.wrong(if x.len() == 3 { 1 } else { 0 }, "of rank 3"));
    };
    let results = times(&x);
    let activation = match op.node.str_or("activation", "none")? {
        "silu" | "swish" => SIGMOID + 1,
        _ => 0,
    };
    let flops = times(&[results, plus(&[times(&[2, taps]), u64::from(op.has(2)), activation])]);
    let geometry = Geometry::Conv {
        images,
        groups: channels,
        in_channels: 1,
        out_channels: 1,
        pixels: length,
        width: length,
        taps,
        stride: 1,
    };
    Ok(op.does(flops, geometry))
}

/// Counts `Col2Im`: one addition per element of the blocks.
pub(super) fn col2im(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.count(0)?;
    Ok(op.does(count, Geometry::Elements { count }))
}
