//! Sliding window of convolutions and pooling.

use crate::{Dim, Error, Node, Shape, shape::checked_size};

/// Window over the spatial axes: kernel, strides, dilations and padding.
pub(in crate::infer) struct Window {
    kernel: Shape,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// Padding before each axis, then after each axis.
    pads: Vec<i64>,
    padding: Padding,
}

#[derive(PartialEq)]
enum Padding {
    Explicit,
    Valid,
    Same,
}

impl Window {
    /// Returns the window of a node's attributes; `kernel` comes from its attribute or from its weights.
    pub(in crate::infer) fn new(node: &Node<'_>, kernel: Shape) -> Result<Self, Error> {
        if let Some(size) = kernel.iter().filter_map(|size| size.known()).find(|&size| size < 1) {
            return Err(Error::new(format!("the kernel's sizes must be positive, one is {size}")));
        }
        let padding = match node.str_or("auto_pad", "NOTSET")? {
            "NOTSET" | "" => Padding::Explicit,
            "VALID" => Padding::Valid,
            "SAME_UPPER" | "SAME_LOWER" => Padding::Same,
            other => {
                return Err(Error::new(format!(
                    "attribute 'auto_pad' must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, is {other}"
                )));
            }
        };
        let axes = kernel.len();
        let pads = numbers(node, "pads", 2 * axes, 0)?;
        if padding != Padding::Explicit && pads.iter().any(|&pad| pad != 0) {
            return Err(Error::new("attributes 'auto_pad' and 'pads' exclude each other: remove one"));
        }
        let strides = numbers(node, "strides", axes, 1)?;
        let dilations = numbers(node, "dilations", axes, 1)?;
        Ok(Self { kernel, strides, dilations, pads, padding })
    }

    pub(in crate::infer) fn kernel(&self) -> &[Dim] {
        &self.kernel
    }

    /// Returns the number of positions of the window on each axis of an image. With `ceil`, the last one may extend beyond the
    /// padding if it starts before the padding at the end.
    pub(in crate::infer) fn slide(&self, image: &[Dim], ceil: bool) -> Result<Shape, Error> {
        image.iter().enumerate().map(|(axis, &size)| self.slide_axis(axis, size, ceil)).collect()
    }

    fn slide_axis(&self, axis: usize, image: Dim, ceil: bool) -> Result<Dim, Error> {
        let stride = self.strides[axis];
        let (extent, before, after) = (self.extent(axis)?, self.before(axis), self.after(axis));
        let padded_to_same = extent.is_some_and(|extent| Some(extent - 1) == sum(before, after));
        if stride == 1 && (self.padding == Padding::Same || padded_to_same) {
            return Ok(image);
        }
        let Some(size) = image.known() else { return Ok(Dim::Unknown) };
        if self.padding == Padding::Same {
            return checked_size(Some(div_ceil(size, stride)), || format!("{size} / {stride}"));
        }
        let Some(extent) = extent else { return Ok(Dim::Unknown) };
        let positions = || {
            let room = sum(size, before)?.checked_add(after)?.checked_sub(extent)?;
            let steps = if ceil { div_ceil(room, stride) } else { room.div_euclid(stride) };
            let starts_in_padding = ceil && steps.checked_mul(stride)? >= sum(size, before)?;
            steps.checked_add(i64::from(!starts_in_padding))
        };
        match positions() {
            Some(0) if size == 0 => Ok(Dim::Known(0)),
            Some(positions) if positions < 1 => Err(Error::new(format!(
                "a kernel that extends over {extent} does not fit into spatial axis {axis} of size {size} with padding \
                 {before} and {after}: pad more or shrink the kernel"
            ))),
            positions => checked_size(positions, || format!("{size} + {before} + {after} on spatial axis {axis}")),
        }
    }

    /// Returns the size of the image that windows at `positions` positions cover: the inverse of `slide`.
    pub(in crate::infer) fn spread(&self, positions: &[Dim], output_padding: &[i64]) -> Result<Shape, Error> {
        let sizes = positions.iter().zip(output_padding).enumerate();
        sizes.map(|(axis, (&size, &extra))| self.spread_axis(axis, size, extra)).collect()
    }

    fn spread_axis(&self, axis: usize, positions: Dim, extra: i64) -> Result<Dim, Error> {
        let stride = self.strides[axis];
        if self.padding == Padding::Same {
            return positions.times(Dim::Known(stride));
        }
        let Some(extent) = self.extent(axis)? else { return Ok(Dim::Unknown) };
        let (before, after) = (self.before(axis), self.after(axis));
        // Difference between the size of the axis and one stride per position.
        let rest = || sum(extent, extra)?.checked_sub(stride)?.checked_sub(before)?.checked_sub(after);
        match positions.known() {
            None if stride == 1 && rest() == Some(0) => Ok(positions),
            None => Ok(Dim::Unknown),
            Some(count) => checked_size(count.checked_mul(stride).and_then(|size| size.checked_add(rest()?)), || {
                format!(
                    "{stride} * ({count} - 1) + {extra} + {extent} - {before} - {after} (stride, input, \
                     output_padding, kernel, pads) on spatial axis {axis}"
                )
            }),
        }
    }

    /// Returns the attribute 'output_padding' of a transposed convolution.
    pub(in crate::infer) fn output_padding(&self, node: &Node<'_>) -> Result<Vec<i64>, Error> {
        let extra = numbers(node, "output_padding", self.kernel.len(), 0)?;
        let limits = self.strides.iter().zip(&self.dilations).map(|(stride, dilation)| stride.max(dilation));
        match extra.iter().zip(limits).find(|(extra, limit)| extra >= limit) {
            Some((extra, limit)) => Err(Error::new(format!(
                "output_padding must be less than stride or dilation: {extra} is not less than {limit}"
            ))),
            None => Ok(extra),
        }
    }

    /// Returns the size of the dilated kernel.
    fn extent(&self, axis: usize) -> Result<Option<i64>, Error> {
        let (Some(kernel), dilation) = (self.kernel[axis].known(), self.dilations[axis]) else { return Ok(None) };
        let extent = kernel.checked_sub(1).and_then(|gaps| gaps.checked_mul(dilation)?.checked_add(1));
        Ok(checked_size(extent, || format!("({kernel} - 1) * {dilation} + 1 (kernel, dilation)"))?.known())
    }

    fn before(&self, axis: usize) -> i64 {
        self.pads[axis]
    }

    fn after(&self, axis: usize) -> i64 {
        self.pads[axis + self.kernel.len()]
    }
}

fn sum(a: i64, b: i64) -> Option<i64> {
    a.checked_add(b)
}

/// Divides and rounds up; `b` must be positive, so there is no overflow.
fn div_ceil(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}

/// Returns a list attribute of `count` numbers, each of which must be at least `default`.
fn numbers(node: &Node<'_>, name: &str, count: usize, default: i64) -> Result<Vec<i64>, Error> {
    let Some(values) = node.ints(name)? else { return Ok(vec![default; count]) };
    if values.len() != count {
        return Err(Error::new(format!("attribute '{name}' must have {count} numbers, has {}", values.len())));
    }
    match values.iter().find(|&&value| value < default) {
        Some(value) => Err(Error::new(format!("attribute '{name}' has {value}; its numbers are at least {default}"))),
        None => Ok(values.to_vec()),
    }
}
