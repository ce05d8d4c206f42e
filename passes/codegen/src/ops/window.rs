//! Sliding windows of convolutions and pooling, and their loop nests.

use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Positions of a row that are computed together, with intermediate results on the stack.
const CHUNK: i64 = 1024;

/// Window along one spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// Size of the image.
    pub(crate) image: i64,
    /// Number of positions of the window.
    pub(crate) positions: i64,
    /// Elements of the window.
    pub(crate) kernel: i64,
    pub(crate) stride: i64,
    pub(crate) dilation: i64,
    /// Padding at the start of the image.
    pub(crate) before: i64,
    /// Padding at the end of the image.
    pub(super) after: i64,
}

impl Axis {
    /// Returns the distance from the first to the last element of the window, inclusive.
    fn extent(&self) -> i64 {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Emits the coordinate in the image of an element of the window at a position.
    pub(crate) fn place(&self, b: &Builder, position: V, element: V) -> V {
        b.plus(b.add(b.times(position, self.stride), b.times(element, self.dilation)), -self.before)
    }

    /// Returns true if the window is inside the image at all positions.
    pub(crate) fn is_inside(&self) -> bool {
        self.before <= 0 && (self.positions - 1) * self.stride - self.before + self.extent() <= self.image
    }

    /// Emits the range of elements of the window at a position whose coordinates in the image are in `from..end`.
    pub(super) fn elements(&self, b: &Builder, position: V, from: i64, end: i64) -> (V, V) {
        let start = b.plus(b.times(position, self.stride), -self.before);
        let limit = |place: i64| {
            let kernel = b.index(self.kernel);
            b.min(divide_up(b, b.sub(b.index(place), start), self.dilation), kernel, false)
        };
        (limit(from), limit(end))
    }
}

/// Emits `a / by`, rounded up; 0 for negative `a`.
pub(super) fn divide_up(b: &Builder, a: V, by: i64) -> V {
    let a = b.max(a, b.index(0), false);
    if by == 1 { a } else { b.div(b.plus(a, by - 1), b.index(by), true) }
}

/// Distribution of padding between start and end of an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Explicit,
    SameUpper,
    SameLower,
}

fn padding(node: &Node) -> Result<Padding> {
    Ok(match node.attributes().str_or("auto_pad", "NOTSET")? {
        "SAME_UPPER" => Padding::SameUpper,
        "SAME_LOWER" => Padding::SameLower,
        _ => Padding::Explicit,
    })
}

/// Returns the axes of a window that slides over an image.
pub(crate) fn sliding(node: &Node, image: &[i64], positions: &[i64], kernel: &[i64]) -> Result<Vec<Axis>> {
    let mut axes = explicit(node, image, positions, kernel)?;
    let padding = padding(node)?;
    if padding != Padding::Explicit {
        for axis in &mut axes {
            let total = ((axis.positions - 1) * axis.stride + axis.extent() - axis.image).max(0);
            axis.before = if padding == Padding::SameUpper { total / 2 } else { total - total / 2 };
            axis.after = total - axis.before;
        }
    }
    Ok(axes)
}

/// Returns the axes of the window of a transposed convolution, which distributes the element at each position over an image. If the node
/// specifies the size of the image, the padding follows from it.
pub(super) fn transposed(node: &Node, image: &[i64], positions: &[i64], kernel: &[i64]) -> Result<Vec<Axis>> {
    let mut axes = explicit(node, image, positions, kernel)?;
    let padding = padding(node)?;
    if padding != Padding::Explicit || node.attributes().ints("output_shape")?.is_some() {
        let extra = numbers(node, "output_padding", axes.len(), 0)?;
        for (axis, extra) in axes.iter_mut().zip(extra) {
            let total = ((axis.positions - 1) * axis.stride + extra + axis.extent() - axis.image).max(0);
            axis.before = if padding == Padding::SameUpper { total / 2 } else { total - total / 2 };
            axis.after = total - axis.before;
        }
    }
    Ok(axes)
}

/// Returns the axes of a window with the padding of the attribute 'pads'.
fn explicit(node: &Node, image: &[i64], positions: &[i64], kernel: &[i64]) -> Result<Vec<Axis>> {
    let rank = kernel.len();
    if image.len() != rank || positions.len() != rank || rank == 0 {
        return unsupported(format!("the window has {rank} axes, the image has {}", image.len()));
    }
    let pads = numbers(node, "pads", 2 * rank, 0)?;
    let (strides, dilations) = (numbers(node, "strides", rank, 1)?, numbers(node, "dilations", rank, 1)?);
    let axis = |i: usize| Axis {
        image: image[i],
        positions: positions[i],
        kernel: kernel[i],
        stride: strides[i],
        dilation: dilations[i],
        before: pads[i],
        after: pads[i + rank],
    };
    Ok((0..rank).map(axis).collect())
}

fn numbers(node: &Node, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
    match node.attributes().ints(name)? {
        Some(values) if values.len() == count => Ok(values.to_vec()),
        Some(values) => unsupported(format!("attribute '{name}' must have {count} numbers, has {}", values.len())),
        None => Ok(vec![default; count]),
    }
}

/// Function of a row's coordinates, the plane and the element of the window.
type AtElement<'a> = dyn Fn(&[V], V, &[V]) -> V + 'a;

/// Loop nest of a sliding window, for one row of positions at a time. Coordinates of a row are those of `lead` (batch and channels), then
/// those of all spatial axes but the last.
pub(super) struct SlidingWindow<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) lead: &'a [i64],
    /// Planes (input channels) that are reduced for each position.
    pub(super) depth: i64,
    /// Type of intermediate results.
    pub(super) accumulator: DType,
    /// Emits the initial value of a position from its coordinates.
    pub(super) start: &'a dyn Fn(&[V]) -> V,
    /// Emits the offset of a plane from the coordinates of a row and the index of the plane.
    pub(super) plane: &'a dyn Fn(&[V], V) -> V,
    /// Emits the factor of an element of the window, which is the same for all positions of a row.
    pub(super) factor: &'a AtElement<'a>,
    /// Emits the update of an intermediate result by an element of the image, given its offset and factor.
    pub(super) combine: &'a dyn Fn(V, V, V) -> V,
    /// Emits the final store of a result, given its coordinates.
    pub(super) finish: &'a dyn Fn(&[V], V),
}

impl SlidingWindow<'_> {
    fn row_shape(&self) -> Vec<i64> {
        let outer = &self.axes[..self.axes.len() - 1];
        self.lead.iter().copied().chain(outer.iter().map(|axis| axis.positions)).collect()
    }

    /// Returns the number of iterations: rows on a CPU, single positions on a GPU.
    pub(super) fn extent(cx: &Lowering<'_>, result: &[i64]) -> i64 {
        if cx.is_simt() { result.iter().product() } else { result[..result.len() - 1].iter().product() }
    }

    /// Emits the iterations `begin..end`.
    pub(super) fn emit(&self, b: &Builder, begin: V, end: V) {
        if b.is_simt() {
            return self.by_position(b, begin, end);
        }
        let Some((inner, outer)) = self.axes.split_last() else { return };
        let ty = b.computed(self.accumulator);
        let length = inner.positions;
        let scratch = b.alloca(length.clamp(1, CHUNK), ty);
        b.for_each(begin, end, 1, |row| {
            let place = b.coordinates(row, &self.row_shape());
            b.for_each(b.index(0), b.index(length), CHUNK, |first| {
                let last = b.min(b.plus(first, CHUNK), b.index(length), false);
                let at = |position| b.sub(position, first);
                let whole = |position| [&place[..], &[position]].concat();
                b.for_each(first, last, 1, |i| b.store((self.start)(&whole(i)), scratch, self.accumulator, at(i)));
                b.repeat(self.depth, |plane| {
                    let origin = (self.plane)(&place, plane);
                    self.over_outer(b, outer, &place[self.lead.len()..], origin, |origin, element| {
                        let range = (first, last);
                        self.along_row(b, inner, (&place, plane), origin, (element, range), scratch);
                    });
                });
                b.for_each(first, last, 1, |i| {
                    let value = b.load(scratch, self.accumulator, at(i));
                    (self.finish)(&whole(i), value);
                });
            });
        });
    }

    /// Emits one position per iteration, with the intermediate result in a register.
    fn by_position(&self, b: &Builder, begin: V, end: V) {
        let lead = self.lead.len();
        let shape: Vec<_> = self.lead.iter().copied().chain(self.axes.iter().map(|axis| axis.positions)).collect();
        let image: Vec<_> = self.axes.iter().map(|axis| axis.image).collect();
        let steps = strides(&image);
        let window: Vec<_> = [self.depth].into_iter().chain(self.axes.iter().map(|axis| axis.kernel)).collect();
        b.for_each(begin, end, 1, |number| {
            let place = b.coordinates(number, &shape);
            let row = &place[..place.len() - 1];
            let start = (self.start)(&place);
            let result = b.fold_nest(&window, &[start], |element, state| {
                let (plane, element) = (element[0], &element[1..]);
                let mut offset = (self.plane)(row, plane);
                let mut inside = None;
                for (i, axis) in self.axes.iter().enumerate() {
                    let at = axis.place(b, place[lead + i], element[i]);
                    offset = b.add(offset, b.times(at, steps[i]));
                    if !axis.is_inside() {
                        let is_on = is_in_range(b, at, axis.image);
                        inside = Some(inside.map_or(is_on, |all| b.and(all, is_on)));
                    }
                }
                // Outside the image, element 0 is loaded and ignored, instead of a branch.
                let safe = inside.map_or(offset, |inside| b.select(inside, offset, b.index(0)));
                let combined = (self.combine)(state[0], safe, (self.factor)(row, plane, element));
                vec![inside.map_or(combined, |inside| b.select(inside, combined, state[0]))]
            });
            (self.finish)(&place, result[0]);
        });
    }

    /// Emits loops over the elements of the window along all axes but the last, restricted to the image: `body` gets the offset of the
    /// corresponding row of the image.
    fn over_outer(&self, b: &Builder, outer: &[Axis], positions: &[V], origin: V, body: impl FnOnce(V, &[V])) {
        let kernel: Vec<_> = outer.iter().map(|axis| axis.kernel).collect();
        let image: Vec<_> = self.axes.iter().map(|axis| axis.image).collect();
        let steps = strides(&image);
        b.nest(&kernel, |element| {
            let mut offset = origin;
            let mut inside = None;
            for (i, axis) in outer.iter().enumerate() {
                let place = axis.place(b, positions[i], element[i]);
                offset = b.add(offset, b.times(place, steps[i]));
                if !axis.is_inside() {
                    let is_on = is_in_range(b, place, axis.image);
                    inside = Some(inside.map_or(is_on, |all| b.and(all, is_on)));
                }
            }
            match inside {
                Some(inside) => b.if_then(inside, || body(offset, element)),
                None => body(offset, element),
            }
        });
    }

    /// Emits the loop over the elements of the window along the last axis.
    fn along_row(
        &self,
        b: &Builder,
        axis: &Axis,
        (place, plane): (&[V], V),
        row: V,
        (outer, (first, last)): (&[V], (V, V)),
        scratch: V,
    ) {
        b.repeat(axis.kernel, |element| {
            let mut elements = outer.to_vec();
            elements.push(element);
            let factor = (self.factor)(place, plane, &elements);
            // Coordinate of the element at position 0; positions are a stride apart.
            let shift = b.plus(b.times(element, axis.dilation), -axis.before);
            let (from, to) = if axis.is_inside() {
                (first, last)
            } else {
                let clamp = |position| b.min(b.max(position, first, false), last, false);
                let from = divide_up(b, b.neg(shift), axis.stride);
                let to = divide_up(b, b.sub(b.index(axis.image), shift), axis.stride);
                (clamp(from), clamp(to))
            };
            let row = b.add(row, shift);
            b.for_each(from, to, 1, |position| {
                let slot = b.sub(position, first);
                let before = b.load(scratch, self.accumulator, slot);
                let after = (self.combine)(before, b.add(row, b.times(position, axis.stride)), factor);
                b.store(after, scratch, self.accumulator, slot);
            });
        });
    }
}

/// Emits the condition `0 <= place < size`.
pub(crate) fn is_in_range(b: &Builder, place: V, size: i64) -> V {
    b.compare(crate::emit::Compare::Less, place, b.index(size), true)
}
