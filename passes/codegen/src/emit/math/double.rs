//! Elementary functions in `f64` arithmetic for targets without a C library. Results are almost always correctly rounded for `f32`, and
//! accurate to a few ulps for `f64`.

use super::{
    super::{Builder, V},
    Math,
};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, FRAC_PI_8, LN_2, LOG2_E, PI};

/// π/2 as the sum of three numbers, for argument reduction.
const HALF_PI: [f64; 3] = [FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
/// ln 2 as the sum of two numbers; products of the first with exponents are exact.
const LN_2_PARTS: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// Bound above which `asinh` and `acosh` use `log(2x)`, so that squares do not overflow.
const LARGE: f64 = 1e9;

impl Builder {
    /// Emits a function in `f64` arithmetic.
    pub(super) fn double_math(&self, function: Math, x: V) -> V {
        let ty = self.type_of(x);
        let wide = self.with_element(ty, self.f64());
        self.resize_float(Double(self).function(function, self.resize_float(x, wide)), ty)
    }
}

/// Functions of `f64`.
struct Double<'a>(&'a Builder);

impl Double<'_> {
    fn function(&self, function: Math, x: V) -> V {
        match function {
            Math::Exp => self.exp(x),
            Math::Log => self.log(x),
            Math::Log1p => self.log1p(x),
            Math::Sin => self.sin_cos(x)[0],
            Math::Cos => self.sin_cos(x)[1],
            Math::Tan => {
                let [sin, cos] = self.sin_cos(x);
                self.div(sin, cos)
            }
            Math::Asin => self.atan(self.div(x, self.0.sqrt(self.mul(self.sub(1.0, x), self.add(x, 1.0))))),
            Math::Acos => self.mul(self.atan(self.0.sqrt(self.div(self.sub(1.0, x), self.add(x, 1.0)))), 2.0),
            Math::Atan => self.atan(x),
            Math::Sinh => self.sinh(x),
            Math::Cosh => {
                let [large, small] = self.halves(x);
                self.add(large, small)
            }
            Math::Tanh => self.tanh(x),
            Math::Asinh => self.asinh(x),
            Math::Acosh => self.acosh(x),
            Math::Atanh => {
                let size = self.0.abs(x);
                let ratio = self.div(self.mul(size, 2.0), self.sub(1.0, size));
                self.with_sign(self.mul(self.log1p(ratio), 0.5), x)
            }
            Math::Erf => self.erf(x),
            Math::Round => {
                let whole = self.0.trunc(x);
                let is_far = self.0.less(self.number(0.499_999_999_999_999_94), self.0.abs(self.sub(x, whole)));
                let away = self.add(whole, self.with_sign(self.number(1.0), x));
                self.0.select(is_far, away, whole)
            }
        }
    }

    fn exp(&self, x: V) -> V {
        let b = self.0;
        // Beyond these bounds, the result is zero or infinite.
        let clamped = b.max_number(b.min_number(x, self.number(710.0)), self.number(-750.0));
        let n = b.round_even(self.mul(clamped, LOG2_E));
        let rest = b.fma(n, self.number(-LN_2_PARTS[0]), clamped);
        let rest = b.fma(n, self.number(-LN_2_PARTS[1]), rest);
        let y = self.series(rest, 14, |k| 1.0 / factorial(k));
        // 2^n as two factors, since 2^n itself may overflow, or be subnormal.
        let n = b.float_to_int(n, b.int(64), false);
        let half = b.shift_right(n, b.integer(1, b.int(64)), false);
        let power = |n| b.bitcast(b.shift_left(b.plus(n, 1023), b.integer(52, b.int(64))), b.f64());
        let result = self.mul(self.mul(y, power(half)), power(b.sub(n, half)));
        b.select(b.is_nan(x), x, result)
    }

    fn log(&self, x: V) -> V {
        let b = self.0;
        let integer = |value| b.integer(value, b.int(64));
        // Scale subnormal numbers into the normal range.
        let is_small = b.less(x, self.number(f64::MIN_POSITIVE));
        let bits = b.bitcast(b.select(is_small, self.mul(x, (1_u64 << 54) as f64), x), b.int(64));
        let fraction_bits = b.or(b.and(bits, integer((1 << 52) - 1)), integer(0x3ff0_0000_0000_0000));
        let fraction = b.bitcast(fraction_bits, b.f64());
        let exponent = b.plus(b.shift_right(bits, integer(52), true), -1023);
        let exponent = b.select(is_small, b.plus(exponent, -54), exponent);
        // Reduce the fraction to (sqrt(1/2), sqrt(2)].
        let is_high = b.less(self.number(std::f64::consts::SQRT_2), fraction);
        let fraction = b.select(is_high, self.mul(fraction, 0.5), fraction);
        let exponent = b.select(is_high, b.plus(exponent, 1), exponent);
        let e = b.int_to_float(exponent, b.f64(), false);
        let s = self.div(self.sub(fraction, 1.0), self.add(fraction, 1.0));
        let tail = self.series(self.mul(s, s), 12, |k| 2.0 / (2 * k + 1) as f64);
        let low = b.fma(s, tail, self.mul(e, LN_2_PARTS[1]));
        let result = b.fma(e, self.number(LN_2_PARTS[0]), low);
        let result = b.select(b.less(x, self.number(f64::INFINITY)), result, x);
        let result = b.select(b.equal(x, self.number(0.0)), self.number(f64::NEG_INFINITY), result);
        b.select(b.less(x, self.number(0.0)), self.number(f64::NAN), result)
    }

    /// Returns `log(1 + x)`, with compensation of the rounding error of the sum.
    fn log1p(&self, x: V) -> V {
        let b = self.0;
        let sum = self.add(x, 1.0);
        let lost = self.div(self.sub(self.sub(sum, 1.0), x), sum);
        let result = self.sub(self.log(sum), lost);
        let result = b.select(b.equal(sum, self.number(1.0)), x, result);
        // For infinity and x <= -1, the compensation would yield NaN.
        let is_ordinary = b.and(b.less(x, self.number(f64::INFINITY)), b.less(self.number(-1.0), x));
        b.select(is_ordinary, result, self.log(sum))
    }

    /// Returns sine and cosine. The argument reduction is inaccurate for |x| above 2^52, whose ulp is at least 1.
    fn sin_cos(&self, x: V) -> [V; 2] {
        let b = self.0;
        let n = b.round_even(self.mul(x, FRAC_2_PI));
        let rest = HALF_PI.into_iter().fold(x, |rest, part| b.fma(n, self.number(-part), rest));
        let rest = b.max_number(b.min_number(rest, self.number(FRAC_PI_4 * 1.01)), self.number(-FRAC_PI_4 * 1.01));
        let square = self.mul(rest, rest);
        let sin = self.mul(rest, self.series(square, 9, |k| alternating(k) / factorial(2 * k + 1)));
        let cos = self.series(square, 10, |k| alternating(k) / factorial(2 * k));
        // Quadrant, 0 to 3.
        let quarters = self.sub(n, self.mul(b.floor(self.mul(n, 0.25)), 4.0));
        let is_odd = b.equal(self.sub(quarters, self.mul(b.floor(self.mul(quarters, 0.5)), 2.0)), self.number(1.0));
        let is = |quarter: f64| b.equal(quarters, self.number(quarter));
        let signed = |is_negative, value: V| b.select(is_negative, b.neg(value), value);
        let is_finite = b.less(b.abs(x), self.number(f64::INFINITY));
        let finite = |value| b.select(is_finite, value, self.number(f64::NAN));
        [
            finite(signed(b.or(is(2.0), is(3.0)), b.select(is_odd, cos, sin))),
            finite(signed(b.or(is(1.0), is(2.0)), b.select(is_odd, sin, cos))),
        ]
    }

    fn atan(&self, x: V) -> V {
        let b = self.0;
        let size = b.abs(x);
        let is_large = b.less(self.number(1.0), size);
        let inner = b.select(is_large, self.div(self.number(1.0), size), size);
        // Reduce [0, 1] to [-tan(π/8), tan(π/8)] by atan(x) = π/4 + atan((x - 1) / (x + 1)).
        let is_high = b.less(self.number(FRAC_PI_8.tan()), inner);
        let rotated = self.div(self.sub(inner, 1.0), self.add(inner, 1.0));
        let t = b.select(is_high, rotated, inner);
        let angle = self.mul(t, self.series(self.mul(t, t), 21, |k| alternating(k) / f64::from(2 * k + 1)));
        let angle = b.select(is_high, self.add(angle, FRAC_PI_4), angle);
        let angle = b.select(is_large, self.sub(self.number(FRAC_PI_2), angle), angle);
        b.select(b.is_nan(x), x, self.with_sign(angle, x))
    }

    /// Returns `exp(|x|) / 2` and `exp(-|x|) / 2` without intermediate overflow.
    fn halves(&self, x: V) -> [V; 2] {
        let root = self.exp(self.mul(self.0.abs(x), 0.5));
        let inverse = self.div(self.number(1.0), root);
        [self.mul(self.mul(root, 0.5), root), self.mul(self.mul(inverse, 0.5), inverse)]
    }

    fn sinh(&self, x: V) -> V {
        let b = self.0;
        let [large, small] = self.halves(x);
        let far = self.with_sign(self.sub(large, small), x);
        let near = self.mul(x, self.series(self.mul(x, x), 9, |k| 1.0 / factorial(2 * k + 1)));
        b.select(b.less(b.abs(x), self.number(1.0)), near, far)
    }

    fn tanh(&self, x: V) -> V {
        let b = self.0;
        let limit = 20.0;
        let clamped = b.max_number(b.min_number(x, self.number(limit)), self.number(-limit));
        let [large, small] = self.halves(clamped);
        let result = self.div(self.sinh(clamped), self.add(large, small));
        b.select(b.is_nan(x), x, result)
    }

    fn asinh(&self, x: V) -> V {
        let b = self.0;
        let size = b.abs(x);
        let square = self.mul(size, size);
        let root = b.sqrt(self.add(square, 1.0));
        let near = self.log1p(self.add(size, self.div(square, self.add(root, 1.0))));
        self.with_sign(b.select(b.less(size, self.number(LARGE)), near, self.log_of_double(size)), x)
    }

    fn acosh(&self, x: V) -> V {
        let b = self.0;
        let t = self.sub(x, 1.0);
        let near = self.log1p(self.add(t, b.sqrt(self.add(self.mul(t, 2.0), self.mul(t, t)))));
        let result = b.select(b.less(x, self.number(LARGE)), near, self.log_of_double(x));
        b.select(b.less(x, self.number(1.0)), self.number(f64::NAN), result)
    }

    /// Returns `log(2x)`.
    fn log_of_double(&self, x: V) -> V {
        self.add(self.log(x), LN_2)
    }

    /// Returns erf(x): near 0 by the series of erf(x) exp(x^2), whose terms have the same sign, else by the continued fraction of erfc.
    fn erf(&self, x: V) -> V {
        let b = self.0;
        let (limit, terms, levels) = (3.0, 48, 40);
        let size = b.abs(x);
        // Beyond this bound, the result rounds to 1.
        let size = b.min_number(size, self.number(6.5));
        let square = self.mul(size, size);
        let bell = self.exp(b.neg(square));
        let product = |k: u32| (0..k).fold(1.0, |product, i| product * 2.0 / f64::from(2 * i + 3));
        let near = self.mul(self.mul(size, bell), self.mul(self.series(square, terms, product), 2.0 / PI.sqrt()));
        let far =
            (1..=levels).rev().fold(size, |sum, k| self.add(size, self.div(self.number(f64::from(k) / 2.0), sum)));
        let far = self.sub(1.0, self.div(self.mul(bell, 1.0 / PI.sqrt()), far));
        let result = b.select(b.less(size, self.number(limit)), near, far);
        b.select(b.is_nan(x), x, self.with_sign(result, x))
    }

    /// Evaluates a power series of `x`, truncated to the first `terms` terms.
    fn series(&self, x: V, terms: u32, coefficient: impl Fn(u32) -> f64) -> V {
        let coefficients: Vec<f64> = (0..terms).rev().map(coefficient).collect();
        self.0.polynomial(x, &coefficients)
    }

    fn with_sign(&self, size: V, x: V) -> V {
        self.0.copysign(size, x)
    }

    fn number(&self, value: f64) -> V {
        self.0.float(value, self.0.f64())
    }

    fn add(&self, a: V, b: impl Operand) -> V {
        self.0.add(a, b.of(self))
    }

    fn sub(&self, a: impl Operand, b: impl Operand) -> V {
        self.0.sub(a.of(self), b.of(self))
    }

    fn mul(&self, a: V, b: impl Operand) -> V {
        self.0.mul(a, b.of(self))
    }

    fn div(&self, a: V, b: V) -> V {
        self.0.div(a, b, false)
    }
}

/// An SSA value or a constant.
trait Operand {
    fn of(self, double: &Double<'_>) -> V;
}

impl Operand for V {
    fn of(self, _: &Double<'_>) -> V {
        self
    }
}

impl Operand for f64 {
    fn of(self, double: &Double<'_>) -> V {
        double.number(self)
    }
}

fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}

/// Returns `(-1)^k`.
fn alternating(k: u32) -> f64 {
    if k.is_multiple_of(2) { 1.0 } else { -1.0 }
}
