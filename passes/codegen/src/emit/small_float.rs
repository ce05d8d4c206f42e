//! Conversions of 8-bit and 4-bit floating-point numbers, which are loaded and stored as integers.

use super::{Builder, Compare, V};
use divi_onnx::DType;

/// Format of a type with sign, exponent and mantissa.
struct Format {
    /// Bits of the mantissa.
    mantissa: u32,
    /// Bias of the exponent.
    bias: i32,
    /// Mask of the sign bit.
    sign: i64,
    /// Encoding of the largest finite number.
    largest: i64,
    /// Encoding of infinity, if the type has one.
    infinity: Option<i64>,
    /// Encoding of NaN, if the type has one. In types without negative zero, it has the encoding of negative zero.
    nan: Option<i64>,
}

impl Format {
    fn of(dtype: DType) -> Option<Self> {
        let format = |mantissa, bias, largest, infinity, nan| {
            Some(Self { mantissa, bias, sign: 0x80, largest, infinity, nan: Some(nan) })
        };
        match dtype {
            DType::F8E4M3FN => format(3, 7, 0x7e, None, 0x7f),
            DType::F8E4M3FNUZ => format(3, 8, 0x7f, None, 0x80),
            DType::F8E5M2 => format(2, 15, 0x7b, Some(0x7c), 0x7e),
            DType::F8E5M2FNUZ => format(2, 16, 0x7f, None, 0x80),
            DType::F4E2M1 => Some(Self { mantissa: 1, bias: 1, sign: 0x8, largest: 0x7, infinity: None, nan: None }),
            _ => None,
        }
    }

    /// Returns true if the type has no negative zero, whose encoding is NaN instead (FNUZ types).
    fn is_unsigned_zero(&self) -> bool {
        self.nan == Some(self.sign)
    }
}

impl Builder {
    /// Returns true if a type is a floating-point type of 8 or 4 bits.
    pub(crate) fn is_small_float(dtype: DType) -> bool {
        dtype == DType::F8E8M0 || Format::of(dtype).is_some()
    }

    /// Converts the bits of a small floating-point number to `f32`.
    pub(crate) fn decode_small_float(&self, bits: V, dtype: DType) -> V {
        let (int, float) = (self.int(32), self.f32());
        let number = |value| self.integer(value, int);
        let bits = self.resize(bits, int, true);
        let nan = self.float(f64::NAN, float);
        let Some(format) = Format::of(dtype) else {
            // E8M0 has an exponent only. Its smallest number is subnormal in `f32`.
            let bits = self.and(bits, number(0xff));
            let power = self.bitcast(self.shift_left(bits, number(23)), float);
            let lowest = self.float(2f64.powi(-127), float);
            let power = self.select(self.equal(bits, number(0)), lowest, power);
            return self.select(self.equal(bits, number(0xff)), nan, power);
        };
        let magnitude = self.and(bits, number(format.sign - 1));
        // As the top bits of an `f32`, the exponent is off by the difference of the biases.
        let moved = self.bitcast(self.shift_left(magnitude, number(23 - i64::from(format.mantissa))), float);
        let mut value = self.mul(moved, self.float(2f64.powi(127 - format.bias), float));
        if let Some(infinity) = format.infinity {
            value = self.select(self.equal(magnitude, number(infinity)), self.float(f64::INFINITY, float), value);
        }
        if !format.is_unsigned_zero() && format.nan.is_some() {
            let beyond = format.infinity.unwrap_or(format.largest);
            value = self.select(self.less(number(beyond), magnitude), nan, value);
        }
        let is_negative = self.compare(Compare::NotEqual, self.and(bits, number(format.sign)), number(0), false);
        let value = self.select(is_negative, self.neg(value), value);
        if format.is_unsigned_zero() {
            let bits = self.and(bits, number(0xff));
            return self.select(self.equal(bits, number(format.sign)), nan, value);
        }
        value
    }

    /// Converts an `f32` to the bits of a small floating-point number (nearest, ties to even; E8M0 rounds up). Numbers out of range become
    /// the largest number if `saturates`, else infinity or NaN.
    pub(crate) fn encode_small_float(&self, value: V, dtype: DType, saturates: bool) -> V {
        let (int, float) = (self.int(32), self.f32());
        let number = |value| self.integer(value, int);
        let Some(format) = Format::of(dtype) else {
            return self.encode_power(value, saturates, "up");
        };
        let bits = self.bitcast(value, int);
        let magnitude = self.abs(value);
        let shift = 23 - i64::from(format.mantissa);
        let wide = self.bitcast(magnitude, int);
        let odd = self.and(self.shift_right(wide, number(shift), true), number(1));
        let rounded = self.add(self.add(wide, number((1 << (shift - 1)) - 1)), odd);
        let offset = i64::from(127 - format.bias) << format.mantissa;
        let normal = self.sub(self.shift_right(rounded, number(shift), true), number(offset));
        // Adding this power of two rounds to multiples of the type's smallest subnormal number.
        let anchor = self.float(2f64.powi(24 - format.bias - format.mantissa as i32), float);
        let subnormal = self.sub(self.bitcast(self.add(magnitude, anchor), int), self.bitcast(anchor, int));
        let is_subnormal = self.less(magnitude, self.float(2f64.powi(1 - format.bias), float));
        let small = self.select(is_subnormal, subnormal, normal);
        let is_too_large = self.less(number(format.largest), small);
        let beyond = format.infinity.or(format.nan).filter(|_| !saturates).unwrap_or(format.largest);
        let result = self.select(is_too_large, number(beyond), small);
        // Types without NaN encode it as negative zero, as other implementations do.
        let result = self.select(self.is_nan(value), number(format.nan.unwrap_or(format.sign)), result);
        let sign = self.and(self.shift_right(bits, number(31), true), number(1));
        let sign = self.mul(sign, number(format.sign));
        let signed = self.or(result, sign);
        let byte = self.int(8);
        if !format.is_unsigned_zero() {
            return self.resize(signed, byte, true);
        }
        let has_no_sign = self.or(self.equal(result, number(0)), self.equal(result, number(format.sign)));
        self.resize(self.select(has_no_sign, result, signed), byte, true)
    }

    /// Converts the magnitude of an `f32` to the bits of an E8M0 number. `rounding` is `up`, `down` or `nearest`
    /// (ties up).
    pub(crate) fn encode_power(&self, value: V, saturates: bool, rounding: &str) -> V {
        let int = self.int(32);
        let number = |value| self.integer(value, int);
        let bits = self.and(self.bitcast(value, int), number(0x7fff_ffff));
        let exponent = self.shift_right(bits, number(23), true);
        let mantissa = self.and(bits, number(0x7f_ffff));
        // The smallest power, 2^-127, is subnormal in `f32`: its exponent field is 0 and its mantissa 0x400000.
        let is_subnormal = self.equal(exponent, number(0));
        let goes_up = match rounding {
            "down" => self.integer(0, self.i1()),
            "nearest" => {
                let middle = self.select(is_subnormal, number(0x60_0000), number(0x40_0000));
                self.compare(Compare::GreaterOrEqual, mantissa, middle, false)
            }
            _ => {
                let exact = self.select(is_subnormal, number(0x40_0000), number(0));
                self.less(exact, mantissa)
            }
        };
        let result = self.add(exponent, self.resize(goes_up, int, true));
        let is_too_large = self.less(number(0xfe), result);
        let result = self.select(is_too_large, number(if saturates { 0xfe } else { 0xff }), result);
        let is_too_small = self.less(bits, number(0x40_0000));
        let result = if saturates { result } else { self.select(is_too_small, number(0xff), result) };
        self.resize(self.select(self.is_nan(value), number(0xff), result), self.int(8), true)
    }
}
