//! Expressions that compute the packed and folded constants of kernels from weights: evaluated at build time or, for weights
//! generated from a seed, at load.

use crate::{
    random_weights::{Element, RandomConstant},
    weights,
};
use bytes::Bytes;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Expression for the bytes of a constant. Arithmetic operands and results are `f32`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expression {
    /// Range of bytes of a file.
    File {
        /// Path relative to the bundle's folder.
        path: String,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Literal bytes, two hexadecimal digits each.
    Bytes(String),
    /// Weights generated from a seed ([`RandomConstant`]).
    Random {
        /// Seed of the bundle.
        seed: u64,
        /// Key of the constant.
        key: String,
        /// Element type.
        element: Element,
        /// Number of elements.
        count: u64,
        /// Lower end of the range.
        low: f64,
        /// Upper end of the range.
        high: f64,
    },
    /// This many zero elements.
    Zeros(u64),
    /// Half-precision elements converted to `f32`.
    Widen {
        /// Half-precision operand.
        source: Box<Expression>,
        /// Element type of the operand: `F16` or `BF16`.
        element: Element,
    },
    /// `f32` elements rounded to half precision (nearest, ties to even).
    Narrow {
        /// Operand.
        source: Box<Expression>,
        /// Element type of the result: `F16` or `BF16`.
        element: Element,
    },
    /// Concatenation.
    Concat(Vec<Expression>),
    /// Elements permuted by a loop nest, with zero padding.
    Pack(Pack),
    /// Row-wise product: row `i` of `inner` elements is multiplied by `by[i % len(by)]`.
    Scale {
        /// Operand.
        source: Box<Expression>,
        /// Factors.
        by: Box<Expression>,
        /// Elements per row.
        inner: u64,
    },
    /// Weights of 3×3 windows for Winograd's algorithm F(2×2, 3×3): each window `g` becomes the 4×4 matrix `G g Gᵀ`.
    Winograd {
        /// Windows, row by row.
        source: Box<Expression>,
    },
    /// `scale / sqrt(variance + epsilon)`: factor of a folded BatchNormalization, per channel.
    NormalizedScale {
        /// Scale of the BatchNormalization.
        scale: Box<Expression>,
        /// Variance of the BatchNormalization.
        variance: Box<Expression>,
        /// Epsilon of the BatchNormalization.
        epsilon: f32,
    },
    /// `shift + (bias - mean) * factor`: bias of a layer with a folded BatchNormalization, per channel.
    NormalizedShift {
        /// Bias of the BatchNormalization.
        shift: Box<Expression>,
        /// Mean of the BatchNormalization.
        mean: Box<Expression>,
        /// [`Expression::NormalizedScale`].
        factor: Box<Expression>,
        /// Bias of the layer; zero if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<Box<Expression>>,
    },
}

/// Loop nest over the result, outermost loop first. Each loop advances along an axis of a row-major source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pack {
    /// Operand.
    pub source: Box<Expression>,
    /// Shape of the source.
    pub shape: Vec<u64>,
    /// First coordinates of the loops, by axis.
    pub start: Vec<u64>,
    /// Elements at and beyond these coordinates are zero.
    pub end: Vec<u64>,
    /// Loops, outermost first.
    pub loops: Vec<Loop>,
}

/// Loop of a [`Pack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// Axis of the source.
    pub axis: usize,
    /// Number of iterations.
    pub count: u64,
    /// Increment of the coordinate per iteration.
    pub step: u64,
}

impl Expression {
    /// Builds a literal.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Builds weights generated from a seed.
    pub fn random(recipe: &RandomConstant, seed: u64) -> Self {
        let RandomConstant { key, element, count, low, high } = recipe.clone();
        Self::Random { seed, key, element, count, low, high }
    }

    /// Returns the operands.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::File { .. } | Self::Bytes(_) | Self::Random { .. } | Self::Zeros(_) => vec![],
            Self::Concat(parts) => parts.iter().collect(),
            Self::Pack(pack) => vec![&pack.source],
            Self::Widen { source, .. } | Self::Narrow { source, .. } | Self::Winograd { source } => vec![source],
            Self::Scale { source, by, .. } => vec![source, by],
            Self::NormalizedScale { scale, variance, .. } => vec![scale, variance],
            Self::NormalizedShift { shift, mean, factor, bias } => {
                [Some(shift), Some(mean), Some(factor), bias.as_ref()].into_iter().flatten().map(Box::as_ref).collect()
            }
        }
    }

    /// Returns the operands, mutable.
    pub fn parts_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::File { .. } | Self::Bytes(_) | Self::Random { .. } | Self::Zeros(_) => vec![],
            Self::Concat(parts) => parts.iter_mut().collect(),
            Self::Pack(pack) => vec![&mut pack.source],
            Self::Widen { source, .. } | Self::Narrow { source, .. } | Self::Winograd { source } => vec![source],
            Self::Scale { source, by, .. } => vec![source, by],
            Self::NormalizedScale { scale, variance, .. } => vec![scale, variance],
            Self::NormalizedShift { shift, mean, factor, bias } => {
                [Some(shift), Some(mean), Some(factor), bias.as_mut()].into_iter().flatten().map(Box::as_mut).collect()
            }
        }
    }

    /// Returns true if a predicate holds for the expression or one of its subexpressions.
    pub fn any(&self, holds: &dyn Fn(&Self) -> bool) -> bool {
        holds(self) || self.parts().into_iter().any(|part| part.any(holds))
    }

    /// Evaluates the expression; paths are relative to `folder`.
    pub fn evaluate(&self, folder: &Path) -> Result<Bytes, String> {
        match self {
            Self::File { path, offset, length } => {
                weights::read(&folder.join(path), *offset, *length).map_err(|error| error.to_string())
            }
            Self::Bytes(digits) => parse_digits(digits).map(Bytes::from),
            Self::Random { seed, key, element, count, low, high } => {
                let recipe =
                    RandomConstant { key: key.clone(), element: *element, count: *count, low: *low, high: *high };
                let mut bytes = zeros(self.length().ok_or(UNCOUNTABLE)?)?;
                recipe.fill(*seed, 0, &mut bytes);
                Ok(bytes.into())
            }
            Self::Zeros(_) => Ok(zeros(self.length().ok_or(UNCOUNTABLE)?)?.into()),
            Self::Widen { source, element } => {
                let source = source.evaluate(folder)?;
                let (halves, _) = source.as_chunks();
                match element {
                    Element::F16 => Ok(bytes_of(halves.iter().map(|&half| f16::from_le_bytes(half).to_f32()))),
                    Element::BF16 => Ok(bytes_of(halves.iter().map(|&half| bf16::from_le_bytes(half).to_f32()))),
                    other => Err(format!("weights of {} bits are widened as half precision", other.bits())),
                }
            }
            Self::Narrow { source, element } => {
                let numbers = source.numbers(folder)?;
                match element {
                    Element::F16 => {
                        Ok(numbers.iter().flat_map(|&number| f16::from_f32(number).to_le_bytes()).collect())
                    }
                    Element::BF16 => {
                        Ok(numbers.iter().flat_map(|&number| bf16::from_f32(number).to_le_bytes()).collect())
                    }
                    other => Err(format!("weights are rounded to {} bits as half precision", other.bits())),
                }
            }
            Self::Concat(parts) => {
                let mut all = with_room(self.length().ok_or(UNCOUNTABLE)?)?;
                // A source that is packed in several pieces is evaluated once.
                let mut last: Option<(&Self, Bytes)> = None;
                for part in parts {
                    let Self::Pack(pack) = part else {
                        all.extend_from_slice(&part.evaluate(folder)?);
                        continue;
                    };
                    let source = match last.take() {
                        Some((expression, bytes)) if *expression == *pack.source => bytes,
                        _ => pack.source.evaluate(folder)?,
                    };
                    pack.pack(&source, &mut all)?;
                    last = Some((&pack.source, source));
                }
                Ok(all.into())
            }
            Self::Pack(pack) => {
                let mut packed = with_room(pack.length().unwrap_or(0))?;
                pack.pack(&pack.source.evaluate(folder)?, &mut packed)?;
                Ok(packed.into())
            }
            Self::Scale { source, by, inner } => {
                let by = by.numbers(folder)?;
                if by.is_empty() || *inner == 0 {
                    return Err("weights are scaled by an empty tensor".into());
                }
                // In place: weights may take a large part of the memory.
                let mut scaled = Vec::from(source.evaluate(folder)?);
                let row = usize::try_from(*inner).unwrap_or(usize::MAX).saturating_mul(4);
                for (row, factor) in scaled.chunks_mut(row).zip(by.iter().cycle()) {
                    for number in row.as_chunks_mut().0 {
                        *number = (f32::from_le_bytes(*number) * factor).to_le_bytes();
                    }
                }
                Ok(scaled.into())
            }
            Self::Winograd { source } => {
                let windows = source.numbers(folder)?;
                let mut bytes = with_room(self.length().ok_or(UNCOUNTABLE)?)?;
                for window in windows.as_chunks::<9>().0 {
                    let numbers = winograd(window);
                    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
                }
                Ok(bytes.into())
            }
            Self::NormalizedScale { scale, variance, epsilon } => {
                let (scale, variance) = (scale.numbers(folder)?, variance.numbers(folder)?);
                let factor = |(scale, variance): (&f32, &f32)| {
                    (f64::from(*scale) / (f64::from(*variance) + f64::from(*epsilon)).sqrt()) as f32
                };
                Ok(bytes_of(scale.iter().zip(&variance).map(factor)))
            }
            Self::NormalizedShift { shift, mean, factor, bias } => {
                let (shift, mean, factor) = (shift.numbers(folder)?, mean.numbers(folder)?, factor.numbers(folder)?);
                let bias = bias.as_ref().map(|bias| bias.numbers(folder)).transpose()?;
                let channels = shift.iter().zip(&mean).zip(&factor).enumerate();
                Ok(bytes_of(channels.map(|(i, ((shift, mean), factor))| {
                    let bias = bias.as_ref().and_then(|bias| bias.get(i)).map_or(0.0, |&bias| f64::from(bias));
                    (f64::from(*shift) + (bias - f64::from(*mean)) * f64::from(*factor)) as f32
                })))
            }
        }
    }

    fn numbers(&self, folder: &Path) -> Result<Vec<f32>, String> {
        Ok(numbers_of(&self.evaluate(folder)?))
    }
}

/// Returns `G g Gᵀ` of a 3×3 window, rounded once.
fn winograd(window: &[f32; 9]) -> [f32; 16] {
    let column = |[a, b, c]: [f64; 3]| [a, (a + b + c) / 2.0, (a - b + c) / 2.0, c];
    let of_columns: [[f64; 4]; 3] =
        std::array::from_fn(|x| column(std::array::from_fn(|y| f64::from(window[y * 3 + x]))));
    std::array::from_fn(|i| column(std::array::from_fn(|x| of_columns[x][i / 4]))[i % 4] as f32)
}

/// Maximum depth of a loop nest; code generation stays below it.
const MOST_LOOPS: usize = 64;
/// Error for an expression without a [`Expression::length`].
const UNCOUNTABLE: &str = "its size overflows";

impl Pack {
    /// Returns the size of the result in bytes; `None` if it overflows or the fields are inconsistent. If it is `Some`, no
    /// coordinate or offset that the loops reach overflows.
    pub(crate) fn length(&self) -> Option<u64> {
        let axes = self.shape.len();
        let elements = self.shape.iter().try_fold(1_u64, |count, &size| count.checked_mul(size.max(1)))?;
        let elements = if self.shape.contains(&0) { 0 } else { elements };
        let is_valid = self.start.len() == axes
            && self.end.len() == axes
            && self.end.iter().zip(&self.shape).all(|(end, size)| end <= size)
            && self.loops.len() <= MOST_LOOPS
            && self.loops.iter().all(|l| l.axis < axes)
            && self.source.length()? == elements.checked_mul(4)?;
        if !is_valid {
            return None;
        }
        let mut last = self.start.clone();
        for Loop { axis, count, step } in &self.loops {
            last[*axis] = last[*axis].checked_add(count.saturating_sub(1).checked_mul(*step)?)?;
        }
        let mut offsets = last.iter().zip(strides(&self.shape)).map(|(last, stride)| last.checked_mul(stride));
        offsets.try_fold(0_u64, |sum, offset| sum.checked_add(offset?).filter(|&sum| sum < 1 << 60))?;
        self.loops.iter().try_fold(4_u64, |bytes, l| bytes.checked_mul(l.count))
    }

    /// Appends the packed elements of a source.
    fn pack(&self, source: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let fits = self.source.length() == Some(source.len() as u64);
        if !fits || self.length().is_none() {
            return Err(format!("weights of {} bytes are packed as a tensor of {:?}", source.len(), self.shape));
        }
        let mut place = self.start.clone();
        self.walk(0, &mut place, &strides(&self.shape), source, out);
        Ok(())
    }

    fn walk(&self, depth: usize, place: &mut [u64], strides: &[u64], source: &[u8], out: &mut Vec<u8>) {
        let Some(&Loop { axis, count, step }) = self.loops.get(depth) else {
            let is_inside = place.iter().zip(&self.end).all(|(place, end)| place < end);
            let index = place.iter().zip(strides).map(|(place, stride)| place * stride).sum::<u64>() as usize * 4;
            out.extend_from_slice(if is_inside { &source[index..index + 4] } else { &[0; 4] });
            return;
        };
        if depth + 1 < self.loops.len() {
            for i in 0..count {
                place[axis] += i * step;
                self.walk(depth + 1, place, strides, source, out);
                place[axis] -= i * step;
            }
            return;
        }
        // Innermost loop: the elements within bounds form one run.
        let others_inside = (0..place.len()).all(|other| other == axis || place[other] < self.end[other]);
        let left = self.end[axis].saturating_sub(place[axis]);
        let inside = match left {
            _ if !others_inside => 0,
            0 => 0,
            _ if step == 0 => count,
            left => left.div_ceil(step).min(count),
        };
        let first = place.iter().zip(strides).map(|(place, stride)| place * stride).sum::<u64>();
        let stride = strides[axis] * step;
        // An empty run may start beyond the end of the source.
        if stride == 1 && inside > 0 {
            out.extend_from_slice(&source[first as usize * 4..(first + inside) as usize * 4]);
        } else {
            for i in 0..inside {
                let index = (first + i * stride) as usize * 4;
                out.extend_from_slice(&source[index..index + 4]);
            }
        }
        out.resize(out.len() + (count - inside) as usize * 4, 0);
    }
}

/// Returns an empty vector with the given capacity, or an error if the allocation fails.
fn with_room(bytes: u64) -> Result<Vec<u8>, String> {
    let mut room = vec![];
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    room.try_reserve_exact(length).map_err(|_| format!("there is not enough memory for {bytes} bytes"))?;
    Ok(room)
}

fn zeros(bytes: u64) -> Result<Vec<u8>, String> {
    let mut zeros = with_room(bytes)?;
    zeros.resize(bytes as usize, 0);
    Ok(zeros)
}

/// Returns the row-major strides of a shape, in elements.
fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

fn parse_digits(digits: &str) -> Result<Vec<u8>, String> {
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or_else(|| "a constant is not written in hexadecimal digits".into())
}

fn numbers_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn bytes_of(numbers: impl Iterator<Item = f32>) -> Bytes {
    let mut bytes = Vec::with_capacity(numbers.size_hint().0 * 4);
    numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Expression {
        Expression::bytes(&bytes_of(values.iter().copied()))
    }

    fn numbers(expression: &Expression) -> Vec<f32> {
        expression.numbers(Path::new("")).unwrap()
    }

    #[test]
    fn runs_outside_of_the_source_are_zero() {
        let loops = vec![Loop { axis: 0, count: 3, step: 1 }, Loop { axis: 1, count: 2, step: 1 }];
        let pack = |start: Vec<u64>| {
            let source = Box::new(floats(&[1., 2., 3., 4.]));
            Expression::Pack(Pack { source, shape: vec![2, 2], start, end: vec![2, 2], loops: loops.clone() })
        };
        assert_eq!(numbers(&pack(vec![0, 0])), [1., 2., 3., 4., 0., 0.]);
        assert_eq!(numbers(&pack(vec![1, 1])), [4., 0., 0., 0., 0., 0.]);
        assert_eq!(numbers(&pack(vec![100, 0])), [0.; 6]);
        assert_eq!(numbers(&pack(vec![0, 100])), [0.; 6]);
    }

    #[test]
    fn packs_with_zeros_beyond_the_end() {
        // [3, 2] in blocks of two rows, column by column; the fourth row is padding.
        let loops = vec![
            Loop { axis: 0, count: 2, step: 2 },
            Loop { axis: 1, count: 2, step: 1 },
            Loop { axis: 0, count: 2, step: 1 },
        ];
        let source = Box::new(floats(&[1., 2., 3., 4., 5., 6.]));
        let pack = Pack { source, shape: vec![3, 2], start: vec![0, 0], end: vec![3, 2], loops };
        assert_eq!(numbers(&Expression::Pack(pack)), [1., 3., 2., 4., 5., 0., 6., 0.]);
    }

    #[test]
    fn rejects_a_source_of_the_wrong_size() {
        let source = Box::new(floats(&[1., 2.]));
        let loops = vec![Loop { axis: 0, count: 3, step: 1 }];
        let pack = Pack { source, shape: vec![3], start: vec![0], end: vec![3], loops };
        assert!(Expression::Pack(pack).evaluate(Path::new("")).is_err());
    }

    #[test]
    fn folds_a_normalization() {
        let (scale, variance) = (Box::new(floats(&[2., 3.])), Box::new(floats(&[3., 8.])));
        let factor = Expression::NormalizedScale { scale, variance, epsilon: 1.0 };
        assert_eq!(numbers(&factor), [1., 1.]);
        let by = Box::new(floats(&[2., 10.]));
        let scaled = Expression::Scale { source: Box::new(floats(&[1., 2., 3., 4.])), by: by.clone(), inner: 2 };
        assert_eq!(numbers(&scaled), [2., 4., 30., 40.]);
        let (shift, mean) = (Box::new(floats(&[1., 1.])), Box::new(floats(&[0., 1.])));
        let shifted = Expression::NormalizedShift { shift, mean, factor: by, bias: Some(Box::new(floats(&[5., 0.]))) };
        assert_eq!(numbers(&shifted), [11., -9.]);
    }

    #[test]
    fn transforms_windows_for_winograd() {
        let window: Vec<f32> = (1..=9).map(|number| number as f32).collect();
        let transformed = Expression::Winograd { source: Box::new(floats(&window)) };
        assert_eq!(transformed.length(), Some(64));
        // Rows of G g: (1 2 3), (6 7.5 9), (2 2.5 3), (7 8 9).
        let expected = [1., 3., 1., 3., 6., 11.25, 3.75, 9., 2., 3.75, 1.25, 3., 7., 12., 4., 9.];
        assert_eq!(numbers(&transformed), expected);
        assert_eq!(Expression::Winograd { source: Box::new(floats(&window[1..])) }.length(), None);
    }

    #[test]
    fn widens_half_precision() {
        let halves: Vec<u8> = [1.5, -0.25].into_iter().flat_map(|value| f16::from_f32(value).to_le_bytes()).collect();
        let source = Box::new(Expression::bytes(&halves));
        assert_eq!(numbers(&Expression::Widen { source: source.clone(), element: Element::F16 }), [1.5, -0.25]);
        assert!(Expression::Widen { source, element: Element::F64 }.evaluate(Path::new("")).is_err());
    }

    #[test]
    fn rounds_to_half_precision() {
        // Halfway between two numbers of bf16, whose mantissa has seven bits.
        let source = Box::new(floats(&[1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, -0.25]));
        let narrow = Expression::Narrow { source: source.clone(), element: Element::BF16 };
        assert_eq!(narrow.length(), Some(6));
        let wide = Expression::Widen { source: Box::new(narrow), element: Element::BF16 };
        assert_eq!(numbers(&wide), [1.0, 1.0 + 2.0 / 128.0, -0.25]);
        assert!(Expression::Narrow { source, element: Element::F32 }.evaluate(Path::new("")).is_err());
    }

    #[test]
    fn descriptions_round_trip() {
        let expression = Expression::Concat(vec![floats(&[1.5]), Expression::Zeros(2)]);
        let text = serde_json::to_string(&expression).unwrap();
        assert_eq!(serde_json::from_str::<Expression>(&text).unwrap(), expression);
        assert_eq!(numbers(&expression), [1.5, 0., 0.]);
    }
}
