//! Interpolation weights of a resized axis, computed at compile time.

use crate::error::{Result, unsupported};
use divi_onnx::Node;

/// Interpolation mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Nearest(Rounding),
    Linear,
    /// Cubic convolution with coefficient `a`.
    Cubic(f64),
}

/// Rounding of coordinates in [`Mode::Nearest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Floor,
    Ceil,
    HalfDown,
    HalfUp,
}

/// Attributes of a Resize that apply to all axes.
#[derive(Clone, Debug)]
pub(super) struct Interpolation {
    pub(super) mode: Mode,
    /// True if downsampling widens the filter (antialiasing).
    is_smooth: bool,
    excludes_outside: bool,
    transformation: String,
    pub(super) extrapolation_value: f64,
}

/// Sizes and scale of an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) scale: f64,
    /// Region of interest: start and end relative to the size.
    pub(super) part: (f64, f64),
}

/// Weighted sum of elements of the operand for each element of a resized axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taps {
    /// Taps per element.
    pub(super) count: usize,
    /// Indices into the axis of the operand, `count` per element.
    pub(super) places: Vec<i64>,
    /// Weights, `count` per element.
    pub(super) weights: Vec<f64>,
    /// For each element, true if it gets the extrapolation value.
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
                    return unsupported(format!(
                        "attribute 'nearest_mode' is '{other}', must be one of the ONNX specification"
                    ));
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

    /// Returns the attributes of Upsample, the predecessor of Resize.
    pub(super) fn upsample(mode: Mode) -> Self {
        let transformation = "asymmetric".into();
        Self { mode, is_smooth: false, excludes_outside: false, transformation, extrapolation_value: 0.0 }
    }

    pub(super) fn crops(&self) -> bool {
        self.transformation == "tf_crop_and_resize"
    }

    /// Returns the coordinate in the operand of an element of the result.
    fn coordinate(&self, axis: &Axis, at: f64) -> Result<f64> {
        let Axis { scale, part: (start, end), .. } = *axis;
        let last = (axis.from - 1) as f64;
        // The scale need not be the ratio of the sizes.
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
                    "attribute 'coordinate_transformation_mode' is '{other}', must be one of the ONNX specification"
                ));
            }
        })
    }

    /// Returns the taps of each element of an axis.
    pub(super) fn taps(&self, axis: &Axis) -> Result<Taps> {
        let mut taps = Taps { count: 0, places: vec![], weights: vec![], is_outside: vec![] };
        for at in 0..axis.to {
            let x = self.coordinate(axis, at as f64)?;
            taps.is_outside.push(self.crops() && !(0.0..=(axis.from - 1) as f64).contains(&x));
            // For integral coordinates, the previous element is the base, so that ratios are in (0, 1].
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

    /// Returns the index of the first tap relative to the base, and the weights, for a point at distance `ratio` after the base.
    fn weights(&self, ratio: f64, scale: f64) -> (i64, Vec<f64>) {
        // Antialiasing affects downsampling only.
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

/// Returns the cubic convolution kernel of Keys (1981).
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    match x {
        ..=1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        ..2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        _ => 0.0,
    }
}

/// Scales weights so that their sum is 1.
fn normalized(mut weights: Vec<f64>) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    if sum != 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
    weights
}
