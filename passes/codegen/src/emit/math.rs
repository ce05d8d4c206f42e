//! Elementary functions. Hot `f32` functions are polynomial approximations, which vectorize. All others call the C library, or use the
//! `f64` implementations in `double` where there is none.

mod double;

use super::{Builder, V};

/// Functions of one operand. Each has an implementation in `double`, for targets without the C library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Math {
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Erf,
    Exp,
    Log,
    Log1p,
    Round,
    Sin,
    Sinh,
    Tan,
    Tanh,
}

impl Math {
    /// Returns the name of the operation in the `math` dialect.
    fn name(self) -> &'static str {
        match self {
            Self::Acos => "acos",
            Self::Acosh => "acosh",
            Self::Asin => "asin",
            Self::Asinh => "asinh",
            Self::Atan => "atan",
            Self::Atanh => "atanh",
            Self::Cos => "cos",
            Self::Cosh => "cosh",
            Self::Erf => "erf",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Log1p => "log1p",
            Self::Round => "round",
            Self::Sin => "sin",
            Self::Sinh => "sinh",
            Self::Tan => "tan",
            Self::Tanh => "tanh",
        }
    }
}

impl Builder {
    /// Emits a function of one operand.
    pub(crate) fn math(&self, function: Math, x: V) -> V {
        match function {
            _ if self.form.has_library => self.math_op(function.name(), &[x]),
            Math::Log if self.is_single(x) => self.log(x),
            _ => self.double_math(function, x),
        }
    }

    /// Returns `x` to the power of `y`.
    pub(crate) fn powf(&self, x: V, y: V) -> V {
        if self.form.has_library { self.math_op("powf", &[x, y]) } else { self.power(x, y) }
    }

    /// Appends an operation of the `math` dialect by name, whose operands have the type of the result.
    fn math_op(&self, name: &str, operands: &[V]) -> V {
        self.op(&format!("math.{name}"), operands, self.type_of(operands[0]), &[])
    }

    pub(crate) fn sqrt(&self, x: V) -> V {
        self.math_op("sqrt", &[x])
    }

    pub(crate) fn abs(&self, x: V) -> V {
        self.math_op(if self.is_float(self.type_of(x)) { "absf" } else { "absi" }, &[x])
    }

    pub(crate) fn ceil(&self, x: V) -> V {
        self.math_op("ceil", &[x])
    }

    pub(crate) fn floor(&self, x: V) -> V {
        self.math_op("floor", &[x])
    }

    /// Rounds to the nearest integer, ties to even.
    pub(crate) fn round_even(&self, x: V) -> V {
        self.math_op("roundeven", &[x])
    }

    fn trunc(&self, x: V) -> V {
        self.math_op("trunc", &[x])
    }

    /// Returns the magnitude of `size` with the sign of `x`.
    fn copysign(&self, size: V, x: V) -> V {
        self.math_op("copysign", &[size, x])
    }

    fn is_single(&self, x: V) -> bool {
        self.bits(self.type_of(x)) == 32
    }

    /// Evaluates a polynomial by Horner's scheme; the coefficient of the highest power comes first.
    fn polynomial(&self, x: V, coefficients: &[f64]) -> V {
        let ty = self.type_of(x);
        let (first, rest) = coefficients.split_first().expect("polynomials have coefficients");
        rest.iter().fold(self.float(*first, ty), |sum, &c| self.fma(sum, x, self.float(c, ty)))
    }

    pub(crate) fn exp(&self, x: V) -> V {
        if !self.is_single(x) {
            return self.math(Math::Exp, x);
        }
        let ty = self.type_of(x);
        let float = |value| self.float(value, ty);
        // Beyond these bounds, the result is zero or infinite.
        let clamped = self.max_number(self.min_number(x, float(89.0)), float(-104.0));
        let n = self.round_even(self.mul(clamped, float(std::f64::consts::LOG2_E)));
        // ln 2 in two parts (Cody-Waite reduction), so that the remainder keeps full precision.
        let rest = self.fma(n, float(-0.693_359_375), clamped);
        let rest = self.fma(n, float(2.121_944_4e-4), rest);
        let p = self.polynomial(
            rest,
            &[1.987_569_15e-4, 1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1, 0.5],
        );
        let y = self.add(self.fma(p, self.mul(rest, rest), rest), float(1.0));
        // 2^n as two factors, since 2^n itself may overflow, or be subnormal.
        let int = self.with_element(ty, self.int(32));
        let n = self.float_to_int(n, int, false);
        let half = self.shift_right(n, self.integer(1, int), false);
        let power = |n| {
            let exponent = self.add(n, self.integer(127, int));
            self.bitcast(self.shift_left(exponent, self.integer(23, int)), ty)
        };
        let result = self.mul(self.mul(y, power(half)), power(self.sub(n, half)));
        self.select(self.is_nan(x), x, result)
    }

    /// Returns the natural logarithm of an `f32`.
    fn log(&self, x: V) -> V {
        let ty = self.type_of(x);
        let int = self.with_element(ty, self.int(32));
        let (float, integer) = (|value| self.float(value, ty), |value| self.integer(value, int));
        // Scale subnormal numbers into the normal range.
        let is_small = self.less(x, float(f64::from(f32::MIN_POSITIVE)));
        let scaled = self.select(is_small, self.mul(x, float(8_388_608.0)), x);
        let bits = self.bitcast(scaled, int);
        let exponent = self.sub(self.shift_right(bits, integer(23), true), integer(126));
        let fraction = self.bitcast(self.or(self.and(bits, integer(0x7f_ffff)), integer(0x3f00_0000)), ty);
        // Reduce the fraction to [sqrt(1/2), sqrt(2)).
        let is_low = self.less(fraction, float(std::f64::consts::FRAC_1_SQRT_2));
        let fraction = self.select(is_low, self.add(fraction, fraction), fraction);
        let exponent = self.select(is_low, self.sub(exponent, integer(1)), exponent);
        let exponent = self.select(is_small, self.sub(exponent, integer(23)), exponent);
        let (e, r) = (self.int_to_float(exponent, ty, false), self.sub(fraction, float(1.0)));
        let square = self.mul(r, r);
        let p = self.polynomial(
            r,
            &[
                7.037_683_629_2e-2,
                -1.151_461_031_0e-1,
                1.167_699_874_0e-1,
                -1.242_014_084_6e-1,
                1.424_932_278_7e-1,
                -1.666_805_766_5e-1,
                2.000_071_476_5e-1,
                -2.499_999_399_3e-1,
                3.333_333_117_4e-1,
            ],
        );
        let y = self.mul(self.mul(r, square), p);
        let y = self.fma(e, float(-2.121_944_4e-4), y);
        let y = self.fma(square, float(-0.5), y);
        let result = self.fma(e, float(0.693_359_375), self.add(r, y));
        let is_finite = self.less(x, float(f64::INFINITY));
        let result = self.select(is_finite, result, x);
        let is_zero = self.equal(x, float(0.0));
        let result = self.select(is_zero, float(f64::NEG_INFINITY), result);
        self.select(self.less(x, float(0.0)), float(f64::NAN), result)
    }

    /// Returns `x^y` as `exp(y * log|x|)`, with the sign and special cases of C's `pow`.
    fn power(&self, x: V, y: V) -> V {
        let ty = self.type_of(x);
        let float = |value| self.float(value, ty);
        let size = self.exp(self.mul(y, self.math(Math::Log, self.abs(x))));
        let is_whole = self.equal(self.floor(y), y);
        let half = self.mul(y, float(0.5));
        let is_odd = self.and(is_whole, self.not(self.equal(self.floor(half), half)));
        let signed = self.select(is_odd, self.neg(size), size);
        let negative = self.select(is_whole, signed, float(f64::NAN));
        let result = self.select(self.less(x, float(0.0)), negative, size);
        let result = self.select(self.equal(x, float(1.0)), x, result);
        self.select(self.equal(y, float(0.0)), float(1.0), result)
    }

    pub(crate) fn sigmoid(&self, x: V) -> V {
        let one = self.float(1.0, self.type_of(x));
        self.div(one, self.add(one, self.exp(self.neg(x))), false)
    }

    pub(crate) fn tanh(&self, x: V) -> V {
        if !self.is_single(x) {
            return self.math(Math::Tanh, x);
        }
        let ty = self.type_of(x);
        let clamp = |x, limit: f64| self.max_number(self.min_number(x, self.float(limit, ty)), self.float(-limit, ty));
        // Beyond these bounds, the result rounds to 1 or -1.
        let clamped = clamp(x, 9.0);
        let square = self.mul(clamped, clamped);
        let numerator = self.polynomial(
            square,
            &[
                -2.760_768_477_423_55e-16,
                2.000_187_904_824_77e-13,
                -8.604_671_522_137_35e-11,
                5.122_297_090_371_14e-8,
                1.485_722_357_179_79e-5,
                6.372_619_288_754_36e-4,
                4.893_524_558_917_86e-3,
            ],
        );
        let denominator = self.polynomial(
            square,
            &[1.198_258_394_667_02e-6, 1.185_347_056_866_54e-4, 2.268_434_632_439e-3, 4.893_525_185_543_85e-3],
        );
        // From 8 on, the quotient may exceed 1 by two ulps.
        let ratio = clamp(self.div(self.mul(clamped, numerator), denominator, false), 1.0);
        // The quotient is inexact near 0, where tanh(x) rounds to x.
        let is_small = self.less(self.abs(x), self.float(4e-4, ty));
        let result = self.select(is_small, x, ratio);
        self.select(self.is_nan(x), x, result)
    }

    pub(crate) fn erf(&self, x: V) -> V {
        if !self.is_single(x) {
            return self.math(Math::Erf, x);
        }
        let ty = self.type_of(x);
        let a = self.min_number(self.abs(x), self.float(10.0, ty));
        let tail = self.polynomial(
            a,
            &[
                -1.728_534_7e-5,
                3.831_971_26e-4,
                -3.883_964_38e-3,
                2.425_462_19e-2,
                -1.067_778_77e-1,
                -6.348_466_87e-1,
                -1.287_175_12e-1,
            ],
        );
        let exponent = self.fma(tail, a, self.neg(a));
        let large = self.copysign(self.sub(self.float(1.0, ty), self.exp(exponent)), x);
        let square = self.mul(x, x);
        let middle = self.polynomial(
            square,
            &[-5.967_617_03e-4, 4.991_194_23e-3, -2.676_813_49e-2, 1.128_199_25e-1, -3.761_253_36e-1, 1.283_791_66e-1],
        );
        let small = self.fma(middle, x, x);
        let is_large = self.less(self.float(0.921_875, ty), a);
        let result = self.select(is_large, large, small);
        self.select(self.is_nan(x), x, result)
    }

    // --- Functions whose results are rounded to half precision ------------------------------------------------------

    /// Returns erf of an `f32` with an absolute error of 1e-6 (Abramowitz and Stegun 7.1.28), and a relative one of 1e-4.
    pub(crate) fn rough_erf(&self, x: V) -> V {
        let ty = self.type_of(x);
        let one = self.float(1.0, ty);
        let a = self.min_number(self.abs(x), self.float(10.0, ty));
        let coefficients =
            [4.306_38e-5, 2.765_672e-4, 1.520_143e-4, 9.270_527_2e-3, 4.228_201_23e-2, 7.052_307_84e-2, 1.0];
        let mut power = self.polynomial(a, &coefficients);
        for _ in 0..4 {
            power = self.mul(power, power);
        }
        let result = self.copysign(self.sub(one, self.rough_reciprocal(power)), x);
        // The difference is inexact near 0, where erf is nearly linear. NaN is handled last.
        let is_large = self.less(self.float(0.01, ty), a);
        let result = self.select(is_large, result, self.mul(x, self.float(std::f64::consts::FRAC_2_SQRT_PI, ty)));
        self.select(self.is_nan(x), x, result)
    }

    /// Returns the logistic function of an `f32` with a relative error of 1e-5.
    pub(crate) fn rough_sigmoid(&self, x: V) -> V {
        let ty = self.type_of(x);
        let result = self.rough_reciprocal(self.add(self.float(1.0, ty), self.rough_exp(self.neg(x))));
        let result = self.select(self.less(x, self.float(-85.0, ty)), self.float(0.0, ty), result);
        self.select(self.is_nan(x), x, result)
    }

    /// Returns `e^x` with a relative error of 1e-5: 0 below 1e-37, at most 1e37, and NaN for NaN.
    pub(crate) fn rough_exp(&self, x: V) -> V {
        let ty = self.type_of(x);
        let float = |value| self.float(value, ty);
        let clamped = self.max_number(self.min_number(x, float(85.0)), float(-85.0));
        let result = self.select(self.less(x, float(-85.0)), float(0.0), self.rough_exp_within(clamped));
        self.select(self.is_nan(x), x, result)
    }

    /// As [`Self::rough_exp`], for numbers from -85 to 85 and NaN.
    pub(crate) fn rough_exp_within(&self, x: V) -> V {
        let ty = self.type_of(x);
        let power = self.mul(x, self.float(std::f64::consts::LOG2_E, ty));
        let n = self.round_even(power);
        // Taylor's polynomial of 2^t for t from -1/2 to 1/2.
        let fraction = self.polynomial(
            self.sub(power, n),
            &[1.333_355_8e-3, 9.618_129e-3, 5.550_410_9e-2, 2.402_265_07e-1, 6.931_471_81e-1, 1.0],
        );
        let int = self.with_element(ty, self.int(32));
        let exponent = self.shift_left(self.float_to_int(n, int, false), self.integer(23, int));
        let result = self.bitcast(self.add(self.bitcast(fraction, int), exponent), ty);
        self.select(self.is_nan(x), x, result)
    }

    /// Returns the reciprocal of a number from 1 to 1e37 with a relative error of 1e-6: three Newton steps from an estimate by its bits.
    fn rough_reciprocal(&self, x: V) -> V {
        let ty = self.type_of(x);
        let int = self.with_element(ty, self.int(32));
        let mut y = self.bitcast(self.sub(self.integer(0x7ef3_11c7, int), self.bitcast(x, int)), ty);
        for _ in 0..3 {
            let rest = self.fma(self.neg(x), y, self.float(1.0, ty));
            y = self.fma(y, rest, y);
        }
        y
    }
}
