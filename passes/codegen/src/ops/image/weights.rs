//! What each element of a resized axis is made of. All of it is known when code is generated.

use crate::error::{Result, unsupported};
use divi_onnx::Node;

/// How elements between those of the operand are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Nearest(Rounding),
    Linear,
    /// With the coefficient of the polynomial.
    Cubic(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Floor,
    Ceil,
    HalfDown,
    HalfUp,
}

/// What a Resize says of all of its axes.
#[derive(Clone, Debug)]
pub(super) struct Interpolation {
    pub(super) mode: Mode,
    is_smooth: bool,
    excludes_outside: bool,
    transformation: String,
    pub(super) extrapolation_value: f64,
}

/// One axis: its sizes, and how they are related.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) scale: f64,
    /// The part of it that is taken, in shares of the whole.
    pub(super) part: (f64, f64),
}

/// Which elements, by how much, make up each element of a resized axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taps {
    /// Elements that make up one.
    pub(super) count: usize,
    pub(super) places: Vec<i64>,
    pub(super) weights: Vec<f64>,
    /// Which elements are outside of the operand, if it matters.
    pub(super) is_outside: Vec<bool>,
}

impl Interpolation {
    pub(super) fn of(node: &Node<'_>) -> Result<Self> {
        let mode = match node.str_or("mode", "nearest")? {
            "nearest" => Mode::Nearest(match node.str_or("nearest_mode", "round_prefer_floor")? {
                "floor" => Rounding::Floor,
                "ceil" => Rounding::Ceil,
                "round_prefer_floor" => Rounding::HalfDown,
                "round_prefer_ceil" => Rounding::HalfUp,
                other => {
                    return unsupported(format!("attribute 'nearest_mode' is '{other}', which ONNX does not have"));
                }
            }),
            "linear" => Mode::Linear,
            "cubic" => Mode::Cubic(node.float("cubic_coeff_a")?.map_or(-0.75, f64::from)),
            other => return unsupported(format!("attribute 'mode' is '{other}', must be nearest, linear or cubic")),
        };
        Ok(Self {
            mode,
            is_smooth: node.flag("antialias", false)?,
            excludes_outside: node.flag("exclude_outside", false)?,
            transformation: node.str_or("coordinate_transformation_mode", "half_pixel")?.into(),
            extrapolation_value: node.float("extrapolation_value")?.map_or(0.0, f64::from),
        })
    }

    /// As models from before Resize have it.
    pub(super) fn upsample(mode: Mode) -> Self {
        let transformation = "asymmetric".into();
        Self { mode, is_smooth: false, excludes_outside: false, transformation, extrapolation_value: 0.0 }
    }

    pub(super) fn crops(&self) -> bool {
        self.transformation == "tf_crop_and_resize"
    }

    /// Where an element of the result lies among those of the operand.
    fn coordinate(&self, axis: &Axis, at: f64) -> Result<f64> {
        let Axis { scale, part: (start, end), .. } = *axis;
        let last = (axis.from - 1) as f64;
        // Scales need not be those of the sizes.
        let width = scale * axis.from as f64;
        let half_pixel = (at + 0.5) / scale - 0.5;
        Ok(match &self.transformation[..] {
            "half_pixel" => half_pixel,
            "half_pixel_symmetric" => axis.from as f64 / 2.0 * (1.0 - axis.to as f64 / width) + half_pixel,
            "pytorch_half_pixel" => {
                if width == 1.0 {
                    -0.5
                } else {
                    half_pixel
                }
            }
            "asymmetric" => at / scale,
            "align_corners" => {
                if width == 1.0 {
                    0.0
                } else {
                    at * last / (width - 1.0)
                }
            }
            "tf_crop_and_resize" if width == 1.0 => (end - start) * last / 2.0 + start * last,
            "tf_crop_and_resize" => at * (end - start) * last / (width - 1.0) + start * last,
            other => {
                return unsupported(format!(
                    "attribute 'coordinate_transformation_mode' is '{other}', which ONNX does not have"
                ));
            }
        })
    }

    /// What makes up each element of an axis.
    pub(super) fn taps(&self, axis: &Axis) -> Result<Taps> {
        let mut taps = Taps { count: 0, places: vec![], weights: vec![], is_outside: vec![] };
        for at in 0..axis.to {
            let x = self.coordinate(axis, at as f64)?;
            taps.is_outside.push(self.crops() && !(0.0..=(axis.from - 1) as f64).contains(&x));
            // Of an element itself, the neighbour before it is the base: so ratios are above 0 and up to 1.
            let base = if x.fract() == 0.0 { x - 1.0 } else { x.floor() };
            let (first, mut weights) = self.weights(x - base, axis.scale);
            let first = base as i64 + first;
            let is_inside = |i: usize| (0..axis.from).contains(&(first + i as i64));
            if self.excludes_outside {
                let inside = weights.iter().enumerate().map(|(i, &weight)| if is_inside(i) { weight } else { 0.0 });
                weights = normalized(inside.collect());
            }
            taps.count = weights.len();
            taps.places.extend((0..weights.len() as i64).map(|i| (first + i).clamp(0, axis.from - 1)));
            taps.weights.extend(weights);
        }
        Ok(taps)
    }

    /// The weights of neighbours for a point `ratio` behind one of them, and which of them is the first.
    fn weights(&self, ratio: f64, scale: f64) -> (i64, Vec<f64>) {
        // Only what becomes smaller is made smooth.
        let scale = if self.is_smooth { scale.min(1.0) } else { 1.0 };
        let around = |reach: f64, weight: &dyn Fn(f64) -> f64| {
            let first = (-reach / scale).floor() as i64 + 1;
            let weights = (first..2 - first).map(|i| weight((i as f64 - ratio) * scale)).collect();
            (first, if self.is_smooth { normalized(weights) } else { weights })
        };
        match self.mode {
            Mode::Nearest(rounding) => {
                let is_next = match rounding {
                    _ if ratio == 1.0 => true,
                    Rounding::Floor => false,
                    Rounding::Ceil => true,
                    Rounding::HalfDown => ratio > 0.5,
                    Rounding::HalfUp => ratio >= 0.5,
                };
                (i64::from(is_next), vec![1.0])
            }
            Mode::Linear => around(1.0, &|x| (1.0 - x.abs()).max(0.0)),
            Mode::Cubic(a) => around(2.0, &|x| cubic(x, a)),
        }
    }
}

/// Keys's kernel.
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    match x {
        ..=1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        ..2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

/// Weights that add up to 1.
fn normalized(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    if sum != 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    weights
}
