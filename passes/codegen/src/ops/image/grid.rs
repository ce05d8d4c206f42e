//! GridSample and AffineGrid.

use crate::{
    emit::{Builder, Compare, V},
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
    ops::elementwise::{check_numbers, convert},
};
use divi_onnx::DType;

/// Minimal number of elements per thread.
const GRAIN: i64 = 4 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// Offset of an element and its weight.
type Tap = (V, V);

/// Emitter of interpolated samples.
struct Sampler<'a> {
    b: &'a Builder,
    mode: Mode,
    padding: Padding,
    aligns_corners: bool,
    /// Type of coordinates and weights.
    wide: DType,
}

impl Sampler<'_> {
    fn float(&self, value: f64) -> V {
        self.b.float(value, self.b.computed(self.wide))
    }

    /// Clamps a number; NaN becomes the lower bound.
    fn clamp(&self, x: V, low: f64, high: f64) -> V {
        let (b, low, high) = (self.b, self.float(low), self.float(high));
        let x = b.select(b.less(low, x), x, low);
        b.select(b.less(x, high), x, high)
    }

    /// Returns the bounds of an axis of this size, at which coordinates are reflected.
    fn borders(&self, size: i64) -> (f64, f64) {
        if self.aligns_corners { (0.0, size as f64 - 1.0) } else { (-0.5, size as f64 - 0.5) }
    }

    /// Reflects a coordinate at the bounds until it is between them.
    fn reflect(&self, x: V, size: i64) -> V {
        let b = self.b;
        let (low, high) = self.borders(size);
        let range = high - low;
        if range <= 0.0 {
            return self.float(low);
        }
        let is_below = b.less(x, self.float(low));
        let beyond = b.select(is_below, b.sub(self.float(low), x), b.sub(x, self.float(high)));
        let times = b.floor(b.div(beyond, self.float(range), false));
        let rest = b.sub(beyond, b.mul(times, self.float(range)));
        let half = b.mul(times, self.float(0.5));
        let is_even = b.equal(b.floor(half), half);
        let is_from_low = b.equal(is_below, is_even);
        let folded = b.select(is_from_low, b.add(self.float(low), rest), b.sub(self.float(high), rest));
        b.select(b.less(beyond, self.float(0.0)), x, folded)
    }

    /// Returns the taps of a normalized coordinate (-1 to 1) on an axis. Offsets are multiplied by the stride.
    fn taps(&self, coordinate: V, size: i64, stride: i64) -> Vec<Tap> {
        let b = self.b;
        let one_based = b.add(coordinate, self.float(1.0));
        let half = self.float(0.5);
        let mut x = if self.aligns_corners {
            b.mul(b.mul(one_based, half), self.float(size as f64 - 1.0))
        } else {
            b.mul(b.sub(b.mul(one_based, self.float(size as f64)), self.float(1.0)), half)
        };
        if self.mode == Mode::Nearest {
            x = b.round_even(x);
        }
        let (low, high) = self.borders(size);
        let is_outside = b.or(b.less(x, self.float(low)), b.less(self.float(high), x));
        x = match self.padding {
            Padding::Zeros => x,
            Padding::Border => b.select(is_outside, self.clamp(x, 0.0, size as f64 - 1.0), x),
            Padding::Reflection => self.reflect(x, size),
        };
        // Clamp coordinates far outside, so that they fit into an integer and remain outside.
        x = self.clamp(x, -4.0, size as f64 + 4.0);
        let base = b.floor(x);
        let ratio = b.sub(x, base);
        let taps: Vec<(f64, V)> = match self.mode {
            Mode::Nearest => vec![(0.0, self.float(1.0))],
            Mode::Linear => vec![(0.0, b.sub(self.float(1.0), ratio)), (1.0, ratio)],
            Mode::Cubic => [-1.0, 0.0, 1.0, 2.0].map(|at| (at, self.cubic(b.sub(ratio, self.float(at))))).to_vec(),
        };
        taps.into_iter().map(|(at, weight)| self.tap(b.add(base, self.float(at)), weight, size, stride)).collect()
    }

    /// Returns the tap at an integral coordinate, which may be outside.
    fn tap(&self, at: V, weight: V, size: i64, stride: i64) -> Tap {
        let b = self.b;
        let at = if self.padding == Padding::Reflection { self.reflect(at, size) } else { at };
        // Reflected coordinates at the bounds (such as -0.5) truncate to the element next to the bound.
        let place = b.float_to_int(at, b.i64(), false);
        let (first, last) = (b.index(0), b.index(size - 1));
        let inside = b.max(b.min(place, last, false), first, false);
        let weight = if self.padding == Padding::Zeros {
            b.select(b.equal(inside, place), weight, self.float(0.0))
        } else {
            weight
        };
        (b.times(inside, stride), weight)
    }

    /// Returns the cubic convolution kernel of Keys (1981) with coefficient -0.75.
    fn cubic(&self, x: V) -> V {
        let b = self.b;
        let polynomial = |x: V, coefficients: [f64; 4]| {
            let [first, rest @ ..] = coefficients;
            rest.iter().fold(self.float(first), |sum, &c| b.add(b.mul(sum, x), self.float(c)))
        };
        let x = b.abs(x);
        let near = polynomial(x, [1.25, -2.25, 0.0, 1.0]);
        let far = polynomial(x, [-0.75, 3.75, -6.0, 3.0]);
        b.select(b.compare(Compare::LessOrEqual, x, self.float(1.0), false), near, far)
    }
}

pub(super) fn grid_sample(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, grid, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let attributes = node.attributes();
    let mode = match attributes.str_or("mode", "linear")? {
        "nearest" => Mode::Nearest,
        "linear" | "bilinear" => Mode::Linear,
        "cubic" | "bicubic" => Mode::Cubic,
        other => return unsupported(format!("attribute 'mode' is '{other}', must be nearest, linear or cubic")),
    };
    let padding = match attributes.str_or("padding_mode", "zeros")? {
        "zeros" => Padding::Zeros,
        "border" => Padding::Border,
        "reflection" => Padding::Reflection,
        other => {
            return unsupported(format!("attribute 'padding_mode' is '{other}', must be zeros, border or reflection"));
        }
    };
    let aligns_corners = attributes.flag("align_corners", false)?;
    let (shape, dtype, grid_dtype) = (cx.shape(input).to_vec(), cx.dtype(input), cx.dtype(grid));
    let (batch, channels, space) = (shape[0], shape[1], &shape[2..]);
    let points: i64 = cx.shape(output)[2..].iter().product();
    if space.contains(&0) && cx.count(output) > 0 {
        return unsupported("sampling of an empty image is not supported");
    }
    let wide = if dtype == DType::F64 || grid_dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let volume: i64 = space.iter().product();
    cx.call(batch * points, GRAIN / channels.max(1), &[input, grid], &[output], |b, kernel| {
        let sampler = Sampler { b, mode, padding, aligns_corners, wide };
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (image, point) = b.div_rem(number, points);
            // Coordinates in the grid are in the reverse order of axes: x first.
            let first = b.times(number, space.len() as i64);
            let axes = space.iter().zip(strides(space)).enumerate().map(|(i, (&size, stride))| {
                let at = b.plus(first, (space.len() - 1 - i) as i64);
                let coordinate = convert(b, b.load(kernel.buffers[1], grid_dtype, at), grid_dtype, wide);
                sampler.taps(coordinate, size, stride)
            });
            let all = axes.fold(vec![None], |all: Vec<Option<Tap>>, taps| {
                let pairs = all.iter().flat_map(|&one| taps.iter().map(move |&other| (one, other)));
                let joined = pairs.map(|(one, other)| match one {
                    Some(one) => Some((b.add(one.0, other.0), b.mul(one.1, other.1))),
                    None => Some(other),
                });
                joined.collect()
            });
            let image = b.times(image, channels);
            b.repeat(channels, |channel| {
                let plane = b.add(image, channel);
                let base = b.times(plane, volume);
                let terms = all.iter().flatten().map(|&(offset, weight)| {
                    let value = b.load(kernel.buffers[0], dtype, b.add(base, offset));
                    b.mul(convert(b, value, dtype, wide), weight)
                });
                let sum = terms.reduce(|sum, term| b.add(sum, term)).unwrap_or_else(|| sampler.float(0.0));
                let at = b.add(b.times(plane, points), point);
                b.store(convert(b, sum, wide, dtype), kernel.buffers[2], dtype, at);
            });
        });
    });
    Ok(())
}

/// Lowers AffineGrid: the normalized coordinates of pixels, multiplied by a matrix per image.
pub(super) fn affine_grid(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (theta, output) = (node.input(0)?, node.output()?);
    let aligns_corners = node.attributes().flag("align_corners", false)?;
    let shape = cx.shape(output).to_vec();
    let (batch, space) = (shape[0], shape[1..shape.len() - 1].to_vec());
    let rank = space.len();
    let (dtype, points) = (cx.dtype(theta), space.iter().product::<i64>());
    cx.call(batch * points, GRAIN, &[theta], &[output], |b, kernel| {
        let ty = b.computed(dtype);
        let float = |value| b.float(value, ty);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (image, point) = b.div_rem(number, points);
            let place = b.coordinates(point, &space);
            // Coordinates are in the reverse order of axes: x first.
            let coordinates: Vec<_> = place
                .iter()
                .zip(&space)
                .rev()
                .map(|(&at, &size)| {
                    let at = b.int_to_float(at, ty, false);
                    let (step, start) = if aligns_corners {
                        (2.0 / (size - 1).max(1) as f64, -1.0)
                    } else {
                        (2.0 / size as f64, 1.0 / size as f64 - 1.0)
                    };
                    b.add(b.mul(at, float(step)), float(start))
                })
                .collect();
            let matrix = b.times(image, (rank * (rank + 1)) as i64);
            for row in 0..rank {
                let entry = |column: usize| {
                    b.load(kernel.buffers[0], dtype, b.plus(matrix, (row * (rank + 1) + column) as i64))
                };
                let sum = coordinates
                    .iter()
                    .enumerate()
                    .fold(entry(rank), |sum, (column, &coordinate)| b.add(sum, b.mul(entry(column), coordinate)));
                b.store(sum, kernel.buffers[1], dtype, b.plus(b.times(number, rank as i64), row as i64));
            }
        });
    });
    Ok(())
}
