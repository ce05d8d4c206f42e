//! Arithmetic that looks at the type of its operands: scalars and vectors, integers and floating-point numbers.

use super::{Builder, Type, V};

/// How numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Products and sums may become one operation.
pub(super) const CONTRACT: (&str, &str) = ("fastmath", "#arith.fastmath<contract>");
/// Sums may be computed in any order.
const REASSOCIATE: (&str, &str) = ("fastmath", "#arith.fastmath<reassoc,contract>");
/// The order of operands does not matter, as it would for not-a-number and zeros.
const ORDERLESS: (&str, &str) = ("fastmath", "#arith.fastmath<nnan,nsz>");

impl Builder {
    /// Applies a float operation that is never contracted with a neighbour, or the integer one.
    ///
    /// Nodes of a model round their results one by one, as they do in other runtimes: a sum that swallowed the product of
    /// the node before it would be off by a unit in the last place, which quantization amplifies to a step of its own.
    fn rounded(&self, a: V, b: V, float: &str, integer: &str) -> V {
        self.op(if self.is_float(self.type_of(a)) { float } else { integer }, &[a, b], self.type_of(a), &[])
    }

    /// Adds as a node of its own: the result is rounded by itself.
    pub(crate) fn add_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.addf", "arith.addi")
    }

    /// Subtracts as a node of its own: the result is rounded by itself.
    pub(crate) fn sub_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.subf", "arith.subi")
    }

    /// Multiplies as a node of its own: the result is rounded by itself.
    pub(crate) fn mul_rounded(&self, a: V, b: V) -> V {
        self.rounded(a, b, "arith.mulf", "arith.muli")
    }

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

    /// A term of a sum whose order does not matter, so that several can be computed at once.
    pub(crate) fn accumulate(&self, sum: V, term: V) -> V {
        let ty = self.type_of(sum);
        if self.is_float(ty) { self.op("arith.addf", &[sum, term], ty, &[REASSOCIATE]) } else { self.add(sum, term) }
    }

    /// Division; of integers towards zero, and of zero by `INT_MIN / -1` as machines do it not: guard for both.
    pub(crate) fn div(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.divf", if is_unsigned { "arith.divui" } else { "arith.divsi" })
    }

    /// The remainder of a division towards zero.
    pub(crate) fn rem(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.remf", if is_unsigned { "arith.remui" } else { "arith.remsi" })
    }

    /// The larger one; not-a-number if one is.
    pub(crate) fn max(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.maximumf", if is_unsigned { "arith.maxui" } else { "arith.maxsi" })
    }

    /// The smaller one; not-a-number if one is.
    pub(crate) fn min(&self, a: V, b: V, is_unsigned: bool) -> V {
        self.either(a, b, "arith.minimumf", if is_unsigned { "arith.minui" } else { "arith.minsi" })
    }

    /// The larger of two numbers, of which neither is not-a-number: one instruction.
    pub(crate) fn max_number(&self, a: V, b: V) -> V {
        self.op("arith.maximumf", &[a, b], self.type_of(a), &[ORDERLESS])
    }

    /// The smaller of two numbers, of which neither is not-a-number: one instruction.
    pub(crate) fn min_number(&self, a: V, b: V) -> V {
        self.op("arith.minimumf", &[a, b], self.type_of(a), &[ORDERLESS])
    }

    /// Zero where a number is negative.
    pub(crate) fn relu(&self, x: V) -> V {
        self.clamp(x, Some(0.0), None)
    }

    /// A number within bounds, each one instruction; what is no number stays none.
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

    /// Every bit the other way.
    pub(crate) fn not(&self, a: V) -> V {
        self.xor(a, self.integer(-1, self.type_of(a)))
    }

    pub(crate) fn shift_left(&self, a: V, by: V) -> V {
        self.op("arith.shli", &[a, by], self.type_of(a), &[])
    }

    pub(crate) fn shift_right(&self, a: V, by: V, is_unsigned: bool) -> V {
        self.op(if is_unsigned { "arith.shrui" } else { "arith.shrsi" }, &[a, by], self.type_of(a), &[])
    }

    /// An `i1`, or a vector of them. Of floating-point numbers, not-a-number is unequal to all and compares to none.
    pub(crate) fn compare(&self, how: Compare, a: V, b: V, is_unsigned: bool) -> V {
        let ty = self.type_of(a);
        let result = self.with_element(ty, self.i1());
        // Codes of the predicates in `arith`.
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

    /// Signed comparisons.
    pub(crate) fn less(&self, a: V, b: V) -> V {
        self.compare(Compare::Less, a, b, false)
    }

    pub(crate) fn equal(&self, a: V, b: V) -> V {
        self.compare(Compare::Equal, a, b, false)
    }

    /// Whether a floating-point number is none.
    pub(crate) fn is_nan(&self, a: V) -> V {
        let result = self.with_element(self.type_of(a), self.i1());
        self.op("arith.cmpf", &[a, a], result, &[("predicate", "14 : i64")])
    }

    pub(crate) fn select(&self, condition: V, then: V, otherwise: V) -> V {
        self.op("arith.select", &[condition, then, otherwise], self.type_of(then), &[])
    }

    // --- Conversions ------------------------------------------------------------------------------------------------

    /// The same bits as another type of the same width.
    pub(crate) fn bitcast(&self, a: V, ty: Type) -> V {
        self.op("arith.bitcast", &[a], ty, &[])
    }

    /// Another width of integer.
    pub(crate) fn resize(&self, a: V, ty: Type, is_unsigned: bool) -> V {
        match self.bits(self.type_of(a)).cmp(&self.bits(ty)) {
            std::cmp::Ordering::Equal => a,
            std::cmp::Ordering::Greater => self.op("arith.trunci", &[a], ty, &[]),
            std::cmp::Ordering::Less => self.op(if is_unsigned { "arith.extui" } else { "arith.extsi" }, &[a], ty, &[]),
        }
    }

    /// Another width of floating-point number, `f32` or `f64`.
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

    /// Towards zero. What does not fit is whatever the machine makes of it.
    pub(crate) fn float_to_int(&self, a: V, ty: Type, is_unsigned: bool) -> V {
        self.op(if is_unsigned { "arith.fptoui" } else { "arith.fptosi" }, &[a], ty, &[])
    }

    // --- Offsets ----------------------------------------------------------------------------------------------------

    /// `a + b` for a constant.
    pub(crate) fn plus(&self, a: V, b: i64) -> V {
        if b == 0 { a } else { self.add(a, self.index(b)) }
    }

    /// `a * b` for a constant.
    pub(crate) fn times(&self, a: V, b: i64) -> V {
        match b {
            0 => self.index(0),
            1 => a,
            _ => self.mul(a, self.index(b)),
        }
    }

    /// Quotient and remainder of a number that is not negative by a constant.
    pub(crate) fn div_rem(&self, a: V, by: i64) -> (V, V) {
        if by == 1 {
            return (a, self.index(0));
        }
        if self.form.is_narrow {
            let (narrow, wide) = (self.int(32), self.i64());
            let (a, by) = (self.resize(a, narrow, true), self.integer(by, narrow));
            return (self.resize(self.div(a, by, true), wide, true), self.resize(self.rem(a, by, true), wide, true));
        }
        let by = self.index(by);
        (self.div(a, by, true), self.rem(a, by, true))
    }

    /// The coordinates of an element by its number in row-major order.
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

    /// `sum(coordinates * strides)`
    pub(crate) fn offset(&self, coordinates: &[V], strides: &[i64]) -> V {
        let terms = coordinates.iter().zip(strides).filter(|&(_, &stride)| stride != 0);
        let terms = terms.map(|(&coordinate, &stride)| self.times(coordinate, stride));
        terms.reduce(|sum, term| self.add(sum, term)).unwrap_or_else(|| self.index(0))
    }
}
