//! Lower bounds and their proofs.

use crate::model::named::named;
use crate::model::units::Micros;

/// Kind of proof of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Own search or arithmetic, without a linear or integer programming solver.
    Exact,
    /// Dual values of linear programs, checked with directed rounding, at every leaf of the search tree if there is one.
    SafeDual,
    /// Claim of an integer programming solver, whose search tree cannot be checked from outside.
    Solver,
}

named!(Proof, "proof", Exact = "exact", SafeDual = "safe-dual", Solver = "solver");

impl Proof {
    /// Returns true if the bound was checked by own arithmetic.
    pub fn is_verified(self) -> bool {
        self != Self::Solver
    }

    /// Returns a short description for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Exact => "own search or arithmetic",
            Self::SafeDual => "verified dual values",
            Self::Solver => "claimed by the solver, not verified",
        }
    }
}

/// Lower bound on the value of every plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Value of the bound.
    pub value: Micros,
    /// Method that found it.
    pub by: String,
    /// Kind of its proof.
    pub proof: Proof,
    /// Best verified bound, if this one is not verified.
    pub verified: Option<Box<Bound>>,
}

impl Bound {
    /// Creates a bound from own search or arithmetic.
    pub fn new(value: Micros, by: impl Into<String>) -> Self {
        Self::by(value, by, Proof::Exact)
    }

    /// Creates a bound with the given kind of proof.
    pub fn by(value: Micros, by: impl Into<String>, proof: Proof) -> Self {
        Self { value, by: by.into(), proof, verified: None }
    }

    /// Returns the trivial bound.
    pub fn none() -> Self {
        Self::new(Micros::ZERO, "nothing")
    }

    /// Returns the larger of two bounds; of equals up to rounding, a verified one, then the first. A larger claim of a
    /// solver keeps the best verified bound beside it.
    pub fn or(self, other: Self) -> Self {
        match (self.proof.is_verified(), other.proof.is_verified()) {
            (true, true) => {
                if other.value > self.value {
                    other
                } else {
                    self
                }
            }
            (false, true) => self.or_verified(other),
            (true, false) => other.or_verified(self),
            (false, false) => {
                let (larger, smaller) = if other.value > self.value { (other, self) } else { (self, other) };
                match smaller.verified {
                    Some(verified) => larger.or_verified(*verified),
                    None => larger,
                }
            }
        }
    }

    /// Adds a verified bound; returns that one instead if this is no larger.
    pub(super) fn or_verified(self, other: Self) -> Self {
        let verified = match self.verified {
            Some(verified) => verified.or(other),
            None => other,
        };
        if closes(verified.value, self.value) {
            return verified;
        }
        Self { verified: Some(Box::new(verified)), ..self }
    }

    /// Returns the largest verified value.
    pub fn verified_value(&self) -> Micros {
        match &self.verified {
            Some(verified) => verified.value,
            None if self.proof.is_verified() => self.value,
            None => Micros::ZERO,
        }
    }

    /// Returns true if the bound excludes a plan of this value.
    pub fn contradicts(&self, value: Micros) -> bool {
        self.value.0.is_nan() || self.value > value * (1.0 + ROUNDING)
    }
}

/// Relative error of sums of times in another order.
const ROUNDING: f64 = 1e-9;

/// Returns true if the bound proves that a plan of this value is optimal.
pub fn closes(bound: Micros, value: Micros) -> bool {
    bound >= value * (1.0 - ROUNDING)
}

#[cfg(test)]
mod test {
    use super::*;

    fn solver(value: f64) -> Bound {
        Bound::by(Micros(value), "milp", Proof::Solver)
    }

    #[test]
    fn the_best_verified_bound_is_kept_beside_the_solvers_claim() {
        let [weak, strong] = [Bound::new(Micros(5.0), "load"), Bound::by(Micros(8.0), "cuts", Proof::SafeDual)];
        let claim = solver(10.0);
        for all in [
            [weak.clone(), strong.clone(), claim.clone()],
            [claim.clone(), weak.clone(), strong.clone()],
            [weak.clone(), claim.clone(), strong.clone()],
        ] {
            let best = all.into_iter().fold(Bound::none(), Bound::or);
            assert_eq!((best.value, best.proof, best.verified_value()), (Micros(10.0), Proof::Solver, Micros(8.0)));
            assert_eq!(best.or(solver(11.0)).verified.as_deref(), Some(&strong));
        }
        // A claim that is no larger is dropped.
        assert_eq!(solver(8.0).or(strong.clone()), strong);
        assert_eq!(strong.clone().or(solver(8.0 * (1.0 + 1e-12))), strong);
        assert_eq!(solver(3.0).or(solver(4.0)), solver(4.0));
    }

    #[test]
    fn names() {
        for proof in Proof::ALL {
            assert_eq!(proof.name().parse::<Proof>().unwrap(), proof);
        }
        let error = "proven".parse::<Proof>().unwrap_err().to_string();
        assert_eq!(error, "unknown proof 'proven'; expected one of exact, safe-dual, solver");
    }
}
