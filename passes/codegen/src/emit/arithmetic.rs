//! Arithmetic on scalars and vectors. The type of the operands selects the integer or the floating-point operation.

use super::{Builder, Type, V};

/// Comparison predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Allows contraction of multiplications and additions to FMA.
pub(super) const CONTRACT: (&str, &str) = ("fastmath", "#arith.fastmath<contract>");
/// Allows reassociation of sums.
const REASSOCIATE: (&str, &str) = ("fastmath", "#arith.fastmath<reassoc,contract>");
/// Assumes no NaN and ignores the sign of zero, so that the order of operands does not matter.
const ORDERLESS: (&str, &str) = ("fastmath", "#arith.fastmath<nnan,nsz>");

impl Builder {
    /// Appends a floating-point operation that is never contracted, or the integer one.
    ///
    /// Each node of a model rounds its result, as in other runtimes: contraction of an addition with the multiplication of
    /// the previous node would change the result by an ulp, which quantization may amplify to one quantization step.
    fn rounded(&self, a: V, b: V, float: &str, integer: &str) -> V {
        self.op(if self.is_float(self.type_of(a)) { float } else { integer }, &[a, b], self.type_of(a), &[])
    }

    /// Adds without contraction.
    pub(crate) fn add_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.addf", "arith.addi")
    }

    /// Subtracts without contraction.
    pub(crate) fn sub_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.subf", "arith.subi")
    }

    /// Multiplies without contraction.
    pub(crate) fn mul_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.mulf", "arith.muli")
    }

    /// Appends a floating-point operation that may be contracted, or the integer one.
    fn either(&self, a: V, b: V, float: &str, integer: &str) -> V {
        let ty = self.type_of(a);
        if self.is_float(ty) { self.op(float, &[a, b], ty, &[CONTRACT]) } else { self.op(integer, &[a, b], ty, &[]) }
    }

    pub(crate) fn add(&self, a: V, b: V) -> V {
        self.either(a, b, "arith.addf", "arith.addi")
    }

    pub(crate) fn sub(&self, a: V, b: V) -> V {
        self.either(a, b, "arith.subf", "arith.subi")
    }

    pub(crate) fn mul(&self, a: V, b: V) -> V {
        self.either(a, b, "arith.mulf", "arith.muli")
    }

    /// Adds a term to a sum that may be reassociated, for example for vectorization.
    pub(crate) fn accumulate(&self, sum: V, term: V) -> V {
        let ty = self.type_of(sum);
        if self.is_float(ty) { self.op("arith.addf", &[sum, term], ty, &[REASSOCIATE]) } else { self.add(sum, term) }
    }

    /// Divides; integers truncate toward zero. Integer division by zero and `INT_MIN / -1` are undefined: callers must guard both.
    pub(crate) fn div(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.divf", if is_unsigned { "arith.divui" } else { "arith.divsi" })
    }

    /// Returns the remainder of a division that truncates toward zero.
    pub(crate) fn rem(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.remf", if is_unsigned { "arith.remui" } else { "arith.remsi" })
    }

    /// Returns the maximum; NaN if either operand is NaN.
    pub(crate) fn max(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.maximumf", if is_unsigned { "arith.maxui" } else { "arith.maxsi" })
    }

    /// Returns the minimum; NaN if either operand is NaN.
    pub(crate) fn min(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.minimumf", if is_unsigned { "arith.minui" } else { "arith.minsi" })
    }

    /// Returns the maximum of two numbers that are not NaN, in one instruction.
    pub(crate) fn max_number(&self, a: V, b: V) -> V {
        self.op("arith.maximumf", &[a, b], self.type_of(a), &[ORDERLESS])
    }

    /// Returns the minimum of two numbers that are not NaN, in one instruction.
    pub(crate) fn min_number(&self, a: V, b: V) -> V {
        self.op("arith.minimumf", &[a, b], self.type_of(a), &[ORDERLESS])
    }

    /// Returns `max(x, 0)`; NaN stays NaN.
    pub(crate) fn relu(&self, x: V) -> V {
        self.clamp(x, Some(0.0), None)
    }

    /// Clamps a number, in one instruction per bound; NaN stays NaN.
    pub(crate) fn clamp(&self, x: V, low: Option<f64>, high: Option<f64>) -> V {
        let ty = self.type_of(x);
        let bounded = |x, bound: Option<f64>, how| match bound {
            Some(bound) => {
                let bound = self.float(bound, ty);
                self.select(self.compare(how, bound, x, false), bound, x)
            }
            None => x,
        };
        bounded(bounded(x, low, Compare::Greater), high, Compare::Less)
    }

    pub(crate) fn neg(&self, a: V) -> V {
        let ty = self.type_of(a);
        if self.is_float(ty) { self.op("arith.negf", &[a], ty, &[]) } else { self.sub(self.zero(ty), a) }
    }

    pub(crate) fn and(&self, a: V, b: V) -> V {
        self.op("arith.andi", &[a, b], self.type_of(a), &[])
    }

    pub(crate) fn or(&self, a: V, b: V) -> V {
        self.op("arith.ori", &[a, b], self.type_of(a), &[])
    }

    pub(crate) fn xor(&self, a: V, b: V) -> V {
        self.op("arith.xori", &[a, b], self.type_of(a), &[])
    }

    /// Inverts all bits.
    pub(crate) fn not(&self, a: V) -> V {
        self.xor(a, self.integer(-1, self.type_of(a)))
    }

    pub(crate) fn shift_left(&self, a: V, by: V) -> V {
        self.op("arith.shli", &[a, by], self.type_of(a), &[])
    }

    pub(crate) fn shift_right(&self, a: V, by: V, is_unsigned: bool) -> V {
        self.op(if is_unsigned { "arith.shrui" } else { "arith.shrsi" }, &[a, by], self.type_of(a), &[])
    }

    /// Compares; returns an `i1` or a vector of them. With NaN, only [`Compare::NotEqual`] holds.
    pub(crate) fn compare(&self, how: Compare, a: V, b: V, is_unsigned: bool) -> V {
        let ty = self.type_of(a);
        let result = self.with_element(ty, self.i1());
        // Enum values of the predicates in the `arith` dialect.
        let (float, signed, unsigned) = match how {
            Compare::Equal => (1, 0, 0),
            Compare::NotEqual => (13, 1, 1),
            Compare::Less => (4, 2, 6),
            Compare::LessOrEqual => (5, 3, 7),
            Compare::Greater => (2, 4, 8),
            Compare::GreaterOrEqual => (3, 5, 9),
        };
        let (name, code) = match (self.is_float(ty), is_unsigned) {
            (true, _) => ("arith.cmpf", float),
            (false, true) => ("arith.cmpi", unsigned),
            (false, false) => ("arith.cmpi", signed),
        };
        self.op(name, &[a, b], result, &[("predicate", &format!("{code} : i64"))])
    }

    /// Compares floating-point or signed integer numbers.
    pub(crate) fn less(&self, a: V, b: V) -> V {
        self.compare(Compare::Less, a, b, false)
    }

    pub(crate) fn equal(&self, a: V, b: V) -> V {
        self.compare(Compare::Equal, a, b, false)
    }

    /// Returns true for NaN.
    pub(crate) fn is_nan(&self, a: V) -> V {
        let result = self.with_element(self.type_of(a), self.i1());
        self.op("arith.cmpf", &[a, a], result, &[("predicate", "14 : i64")])
    }

    pub(crate) fn select(&self, condition: V, then: V, otherwise: V) -> V {
        self.op("arith.select", &[condition, then, otherwise], self.type_of(then), &[])
    }

    // --- Conversions ------------------------------------------------------------------------------------------------

    /// Reinterprets the bits as another type of the same width.
    pub(crate) fn bitcast(&self, a: V, ty: Type) -> V {
        self.op("arith.bitcast", &[a], ty, &[])
    }

    /// Truncates or extends an integer.
    pub(crate) fn resize(&self, a: V, ty: Type, is_unsigned: bool) -> V {
        match self.bits(self.type_of(a)).cmp(&self.bits(ty)) {
            std::cmp::Ordering::Equal => a,
            std::cmp::Ordering::Greater => self.op("arith.trunci", &[a], ty, &[]),
            std::cmp::Ordering::Less => self.op(if is_unsigned { "arith.extui" } else { "arith.extsi" }, &[a], ty, &[]),
        }
    }

    /// Truncates or extends a floating-point number.
    pub(crate) fn resize_float(&self, a: V, ty: Type) -> V {
        match self.bits(self.type_of(a)).cmp(&self.bits(ty)) {
            std::cmp::Ordering::Equal => a,
            std::cmp::Ordering::Greater => self.op("arith.truncf", &[a], ty, &[]),
            std::cmp::Ordering::Less => self.op("arith.extf", &[a], ty, &[]),
        }
    }

    pub(crate) fn int_to_float(&self, a: V, ty: Type, is_unsigned: bool) -> V {
        self.op(if is_unsigned { "arith.uitofp" } else { "arith.sitofp" }, &[a], ty, &[])
    }

    /// Converts to an integer, truncating toward zero. Results out of range are unspecified.
    pub(crate) fn float_to_int(&self, a: V, ty: Type, is_unsigned: bool) -> V {
        self.op(if is_unsigned { "arith.fptoui" } else { "arith.fptosi" }, &[a], ty, &[])
    }

    // --- Offsets ----------------------------------------------------------------------------------------------------

    /// Returns `a + b` for a constant `b`.
    pub(crate) fn plus(&self, a: V, b: i64) -> V {
        if b == 0 { a } else { self.add(a, self.index(b)) }
    }

    /// Returns `a * b` for a constant `b`.
    pub(crate) fn times(&self, a: V, b: i64) -> V {
        match b {
            0 => self.index(0),
            1 => a,
            _ => self.mul(a, self.index(b)),
        }
    }

    /// Divides a non-negative number by a constant. Returns quotient and remainder.
    pub(crate) fn div_rem(&self, a: V, by: i64) -> (V, V) {
        if by == 1 {
            return (a, self.index(0));
        }
        if self.form.has_32_bit_indices {
            let (narrow, wide) = (self.int(32), self.i64());
            let (a, by) = (self.resize(a, narrow, true), self.integer(by, narrow));
            return (self.resize(self.div(a, by, true), wide, true), self.resize(self.rem(a, by, true), wide, true));
        }
        let by = self.index(by);
        (self.div(a, by, true), self.rem(a, by, true))
    }

    /// Returns the coordinates of an element from its row-major index (delinearization).
    pub(crate) fn coordinates(&self, number: V, shape: &[i64]) -> Vec<V> {
        let mut rest = number;
        let mut coordinates = vec![];
        for &size in shape.iter().skip(1).rev() {
            let (quotient, remainder) = self.div_rem(rest, size);
            coordinates.push(remainder);
            rest = quotient;
        }
        if !shape.is_empty() {
            coordinates.push(rest);
        }
        coordinates.reverse();
        coordinates
    }

    /// Returns `sum(coordinates * strides)`.
    pub(crate) fn offset(&self, coordinates: &[V], strides: &[i64]) -> V {
        let terms = coordinates.iter().zip(strides).filter(|&(_, &stride)| stride != 0);
        let terms = terms.map(|(&coordinate, &stride)| self.times(coordinate, stride));
        terms.reduce(|sum, term| self.add(sum, term)).unwrap_or_else(|| self.index(0))
    }
}
