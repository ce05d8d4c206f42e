//! Random weights for models without weight files: numbers generated from a seed and scaled by their role, so that activations
//! neither explode nor vanish in a deep model.
//!
//! Every element depends only on the seed, the constant's key, its range and the element's index. A constant therefore has the
//! same bytes whether it is generated as a whole or in pieces.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// Element type of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Little-endian integer. Elements below 8 bits are packed, the first in the lowest bits.
    Int {
        /// Width in bits.
        bits: u32,
        /// True for two's complement.
        signed: bool,
    },
}

impl Element {
    /// Returns the width of an element in bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::F16 | Self::BF16 => 16,
            Self::F32 => 32,
            Self::F64 => 64,
            Self::Int { bits, .. } => bits,
        }
    }
}

/// Role of a constant. Of several roles, the greatest one (in declaration order) applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Unknown.
    Unknown,
    /// Addend: a bias, a mean.
    Addend,
    /// Slope of an activation for negative operands.
    Slope,
    /// Table of embeddings.
    Embedding,
    /// Weights of a layer.
    Weight {
        /// Number of products per sum.
        fan_in: u64,
    },
    /// Quantized weights.
    Quantized,
    /// Zero point of a quantization.
    ZeroPoint,
    /// Scale of a normalization, or a divisor.
    Scale,
    /// Scale of a quantization.
    QuantizationScale {
        /// Number of products per sum, for weights.
        fan_in: Option<u64>,
    },
    /// Variance.
    Variance,
}

/// Gain of the variance of activations in a layer: between 1, which preserves it without an activation function, and 2, which
/// preserves it with ReLU (Kaiming initialization). With 1.5, fifty layers of either kind stay within the range of `f16`, and
/// the role of a constant depends only on the operator that reads it.
const GAIN: f64 = 1.5;

impl Role {
    /// Returns the range of the elements, which are distributed uniformly over it.
    pub fn range(self, element: Element) -> (f64, f64) {
        // The variance of a uniform distribution over [-b, b] is b² / 3.
        let bound = |fan_in: u64| (3.0 * GAIN / fan_in.max(1) as f64).sqrt();
        let around = |middle: f64, share: f64| (middle * (1.0 - share), middle * (1.0 + share));
        match (self, element) {
            (Self::ZeroPoint, Element::Int { bits, signed: false }) => {
                let middle = 2f64.powi(bits as i32 - 1);
                (middle, middle)
            }
            (Self::ZeroPoint, _) | (Self::Addend, Element::Int { .. }) => (0.0, 0.0),
            (_, Element::Int { bits, signed: true }) => {
                let largest = 2f64.powi(bits as i32 - 1) - 1.0;
                (-largest, largest)
            }
            (_, Element::Int { bits, signed: false }) => (0.0, 2f64.powi(bits as i32) - 1.0),
            (Self::Unknown, _) => (-0.5, 0.5),
            (Self::Addend, _) => (-0.1, 0.1),
            (Self::Slope, _) => (0.1, 0.3),
            (Self::Embedding | Self::Quantized, _) => (-1.0, 1.0),
            (Self::Weight { fan_in }, _) => (-bound(fan_in), bound(fan_in)),
            (Self::Scale, _) => around(1.0, 0.1),
            (Self::QuantizationScale { fan_in: Some(fan_in) }, _) => around(bound(fan_in) / 127.0, 0.1),
            (Self::QuantizationScale { fan_in: None }, _) => around(0.04, 0.1),
            (Self::Variance, _) => (0.5, 1.5),
        }
    }
}

/// Parameters of a generated constant.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomConstant {
    /// Unique key of the constant in its model.
    pub key: String,
    /// Element type.
    pub element: Element,
    /// Number of elements.
    pub count: u64,
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

impl RandomConstant {
    /// Builds a recipe with the range of a role.
    pub fn new(key: String, element: Element, count: u64, role: Role) -> Self {
        let (low, high) = role.range(element);
        Self { key, element, count, low, high }
    }

    /// Returns the size of the constant in bytes.
    pub fn byte_length(&self) -> u64 {
        (self.count * u64::from(self.element.bits())).div_ceil(8)
    }

    /// Generates the bytes at `offset`. Offset and buffer are multiples of the element size if it is at least a byte.
    pub fn fill(&self, seed: u64, offset: u64, bytes: &mut [u8]) {
        let stream = Stream::new(seed, &self.key);
        let (low, width) = (self.low, self.high - self.low);
        let real = |index| low + width * stream.unit(index);
        match self.element {
            Element::F16 => fill(bytes, offset, |index| f16::from_f64(real(index)).to_le_bytes()),
            Element::BF16 => fill(bytes, offset, |index| bf16::from_f64(real(index)).to_le_bytes()),
            Element::F32 => fill(bytes, offset, |index| (real(index) as f32).to_le_bytes()),
            Element::F64 => fill(bytes, offset, |index| real(index).to_le_bytes()),
            Element::Int { bits, .. } => {
                let integer = |index| (low + ((width + 1.0) * stream.unit(index)).floor()) as i64;
                match bits {
                    64 => fill(bytes, offset, |index| integer(index).to_le_bytes()),
                    32 => fill(bytes, offset, |index| (integer(index) as i32).to_le_bytes()),
                    16 => fill(bytes, offset, |index| (integer(index) as i16).to_le_bytes()),
                    8 => fill(bytes, offset, |index| [integer(index) as u8]),
                    bits => fill(bytes, offset, |index| [self.packed(index, bits, integer)]),
                }
            }
        }
    }

    /// Returns a byte of packed elements, zero-padded after the last one.
    fn packed(&self, byte: u64, bits: u32, integer: impl Fn(u64) -> i64) -> u8 {
        let elements = u64::from(8 / bits);
        let mask = (1u8 << bits) - 1;
        (0..elements).filter(|i| byte * elements + i < self.count).fold(0, |packed, i| {
            let element = integer(byte * elements + i) as u8 & mask;
            packed | element << (i as u32 * bits)
        })
    }
}

/// Fills a buffer with the elements at byte `offset` of a constant.
fn fill<const WIDTH: usize>(bytes: &mut [u8], offset: u64, element: impl Fn(u64) -> [u8; WIDTH]) {
    let first = offset / WIDTH as u64;
    for (index, chunk) in (first..).zip(bytes.chunks_exact_mut(WIDTH)) {
        chunk.copy_from_slice(&element(index));
    }
}

/// Random-access stream of the random numbers of a constant.
struct Stream(u64);

impl Stream {
    fn new(seed: u64, key: &str) -> Self {
        let start = mix(seed.wrapping_add(STEP));
        Self(key.bytes().fold(start, |hash, byte| mix((hash ^ u64::from(byte)).wrapping_add(STEP))))
    }

    /// Returns a number distributed uniformly over [0, 1).
    fn unit(&self, index: u64) -> f64 {
        let state = self.0.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP));
        (mix(state) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Output function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(recipe: &RandomConstant, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; recipe.byte_length() as usize];
        recipe.fill(seed, 0, &mut bytes);
        bytes
    }

    fn floats(role: Role, seed: u64) -> Vec<f32> {
        let bytes = make(&RandomConstant::new("w".into(), Element::F32, 4096, role), seed);
        bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    #[test]
    fn pieces_equal_the_whole() {
        for element in [Element::F16, Element::BF16, Element::F32, Element::F64, Element::Int { bits: 4, signed: true }]
        {
            let recipe = RandomConstant::new("w".into(), element, 64, Role::Unknown);
            let whole = make(&recipe, 7);
            let mut second = vec![0; whole.len() / 2];
            recipe.fill(7, second.len() as u64, &mut second);
            assert_eq!(whole[second.len()..], second);
        }
    }

    #[test]
    fn numbers_depend_on_seed_and_key() {
        let first = floats(Role::Embedding, 1);
        assert_eq!(first, floats(Role::Embedding, 1));
        assert_ne!(first, floats(Role::Embedding, 2));
        let recipe = |key: &str| RandomConstant::new(key.into(), Element::F32, 8, Role::Embedding);
        assert_ne!(make(&recipe("a"), 1), make(&recipe("b"), 1));
        // Bundles store seeds, so generated numbers must never change.
        assert_eq!(make(&recipe("a"), 1)[..8], [167, 168, 12, 63, 19, 137, 157, 62]);
    }

    #[test]
    fn numbers_are_scaled_by_role() {
        let mean = |values: &[f32]| values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64;
        let square = |values: &[f32]| values.iter().map(|&v| f64::from(v * v)).sum::<f64>() / values.len() as f64;
        // A sum of 100 products has the variance of the activations times the gain.
        let weights = floats(Role::Weight { fan_in: 100 }, 3);
        assert!(mean(&weights).abs() < 0.01 && (square(&weights) * 100.0 - GAIN).abs() < 0.1);
        let variances = floats(Role::Variance, 3);
        assert!(variances.iter().all(|v| (0.5..=1.5).contains(v)) && (mean(&variances) - 1.0).abs() < 0.05);
        assert!(floats(Role::Scale, 3).iter().all(|v| (0.9..=1.1).contains(v)));
        assert!(floats(Role::QuantizationScale { fan_in: None }, 3).iter().all(|&v| v > 0.0));
    }

    #[test]
    fn integers_cover_their_type() {
        let bytes = |role, bits, signed, count| {
            make(&RandomConstant::new("q".into(), Element::Int { bits, signed }, count, role), 5)
        };
        let quantized = bytes(Role::Quantized, 8, true, 4096);
        let signed: Vec<_> = quantized.iter().map(|&byte| byte as i8).collect();
        assert_eq!((signed.iter().min(), signed.iter().max()), (Some(&-127), Some(&127)));
        let nibbles = bytes(Role::Quantized, 4, false, 4095);
        assert_eq!((nibbles.len(), nibbles[2047] >> 4), (2048, 0));
        assert!((0..16).all(|value| nibbles.iter().any(|byte| byte & 15 == value)));
        assert_eq!(bytes(Role::ZeroPoint, 8, false, 3), [128; 3]);
        assert_eq!(bytes(Role::ZeroPoint, 32, true, 1), [0; 4]);
        assert_eq!(bytes(Role::Addend, 32, true, 1), [0; 4]);
    }
}
