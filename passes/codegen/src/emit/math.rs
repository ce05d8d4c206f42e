//! Functions of one number. Those of `f32` that are hot are polynomials, which compilers turn into vectors; all others are the
//! C library's, or where there is none those in `double`.

mod double;

use super::{Builder, V};

/// What processors have instructions for.
const INSTRUCTIONS: [&str; 9] = ["absf", "absi", "ceil", "copysign", "floor", "fma", "roundeven", "sqrt", "trunc"];

impl Builder {
    /// An operation of the `math` dialect by name (`sin`), on numbers of one type.
    pub(crate) fn math(&self, name: &str, operands: &[V]) -> V {
        if !self.form.has_library && !INSTRUCTIONS.contains(&name) {
            return match name {
                "log" if self.is_single(operands[0]) => self.log(operands[0]),
                "powf" => self.power(operands[0], operands[1]),
                _ => self.double_math(name, operands),
            };
        }
        self.op(&format!("math.{name}"), operands, self.type_of(operands[0]), &[])
    }

    pub(crate) fn sqrt(&self, x: V) -> V {
        self.math("sqrt", &[x])
    }

    pub(crate) fn abs(&self, x: V) -> V {
        self.math(if self.is_float(self.type_of(x)) { "absf" } else { "absi" }, &[x])
    }

    pub(crate) fn floor(&self, x: V) -> V {
        self.math("floor", &[x])
    }

    /// To the nearest integer, halves to the even one.
    pub(crate) fn round_even(&self, x: V) -> V {
        self.math("roundeven", &[x])
    }

    fn is_single(&self, x: V) -> bool {
        self.bits(self.type_of(x)) == 32
    }

    /// A polynomial, the highest coefficient first.
    fn polynomial(&self, x: V, coefficients: &[f64]) -> V {
        let ty = self.type_of(x);
        let (first, rest) = coefficients.split_first().expect("polynomials have coefficients");
        rest.iter().fold(self.float(*first, ty), |sum, &c| self.fma(sum, x, self.float(c, ty)))
    }

    pub(crate) fn exp(&self, x: V) -> V {
        if !self.is_single(x) {
            return self.math("exp", &[x]);
        }
        let ty = self.type_of(x);
        let float = |value| self.float(value, ty);
        // Beyond these, the result is zero or infinite in any case.
        let clamped = self.max_number(self.min_number(x, float(89.0)), float(-104.0));
        let n = self.round_even(self.mul(clamped, float(std::f64::consts::LOG2_E)));
        // ln 2 in two parts, so that the rest keeps all of its bits.
        let rest = self.fma(n, float(-0.693_359_375), clamped);
        let rest = self.fma(n, float(2.121_944_4e-4), rest);
        let p = self.polynomial(
            rest,
            &[1.987_569_15e-4, 1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1, 0.5],
        );
        let y = self.add(self.fma(p, self.mul(rest, rest), rest), float(1.0));
        // Two factors, since one alone cannot be as large as infinity's neighbours or as small as the smallest numbers.
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

    /// The natural logarithm of an `f32`.
    fn log(&self, x: V) -> V {
        let ty = self.type_of(x);
        let int = self.with_element(ty, self.int(32));
        let (float, integer) = (|value| self.float(value, ty), |value| self.integer(value, int));
        // Numbers below the normal ones are made normal.
        let is_small = self.less(x, float(f64::from(f32::MIN_POSITIVE)));
        let scaled = self.select(is_small, self.mul(x, float(8_388_608.0)), x);
        let bits = self.bitcast(scaled, int);
        let exponent = self.sub(self.shift_right(bits, integer(23), true), integer(126));
        let fraction = self.bitcast(self.or(self.and(bits, integer(0x7f_ffff)), integer(0x3f00_0000)), ty);
        // A fraction around 1.
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

    /// `x ^ y`, by logarithm and exponential.
    fn power(&self, x: V, y: V) -> V {
        let ty = self.type_of(x);
        let float = |value| self.float(value, ty);
        let size = self.exp(self.mul(y, self.math("log", &[self.abs(x)])));
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
            return self.math("tanh", &[x]);
        }
        let ty = self.type_of(x);
        let clamp = |x, limit: f64| self.max_number(self.min_number(x, self.float(limit, ty)), self.float(-limit, ty));
        // Beyond this argument the function rounds to 1 (or -1).
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
        // From 8 on, the quotient may be larger than 1 by two units in the last place.
        let ratio = clamp(self.div(self.mul(clamped, numerator), denominator, false), 1.0);
        // The quotient is not exact for the smallest numbers, where the function is its argument.
        let is_small = self.less(self.abs(x), self.float(4e-4, ty));
        let result = self.select(is_small, x, ratio);
        self.select(self.is_nan(x), x, result)
    }

    pub(crate) fn erf(&self, x: V) -> V {
        if !self.is_single(x) {
            return self.math("erf", &[x]);
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
        let large = self.math("copysign", &[self.sub(self.float(1.0, ty), self.exp(exponent)), x]);
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
}
