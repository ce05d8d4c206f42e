//! Lower bounds, and what they rest on.

use crate::model::named::named;
use crate::model::units::Micros;

/// Kind of proof of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Own search or own arithmetic; nothing of it was computed by a linear or integer programming solver.
    Exact,
    /// Dual values of linear programs, each checked with directed rounding, at every leaf of the search
    /// tree where there is one.
    SafeDual,
    /// The word of an integer programming solver, whose search tree cannot be checked from outside.
    Solver,
}

named!(Proof, "proof", Exact = "exact", SafeDual = "safe-dual", Solver = "solver");

impl Proof {
    /// True if the bound was checked by own arithmetic.
    pub fn is_verified(self) -> bool {
        self != Self::Solver
    }

    /// A few words for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Exact => "own search or arithmetic",
            Self::SafeDual => "verified dual values",
            Self::Solver => "solver's word, not verified",
        }
    }
}

/// A lower bound on the value of every plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    pub value: Micros,
    /// The method that has found it.
    pub by: String,
    pub proof: Proof,
    /// The best verified bound, where this one is not.
    pub verified: Option<Box<Bound>>,
}

impl Bound {
    /// A bound from own search or arithmetic.
    pub fn new(value: Micros, by: impl Into<String>) -> Self {
        Self::by(value, by, Proof::Exact)
    }

    pub fn by(value: Micros, by: impl Into<String>, proof: Proof) -> Self {
        Self { value, by: by.into(), proof, verified: None }
    }

    /// The bound that says nothing.
    pub fn none() -> Self {
        Self::new(0.0, "nothing")
    }

    /// The better of two: the larger one; of equals, but for rounding, a verified one, then the first. A solver's word that is
    /// stronger than what is verified keeps that beside it.
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

    /// The same beside a verified bound, or that one where this is no stronger.
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

    /// The largest value that is verified.
    pub fn verified_value(&self) -> Micros {
        match &self.verified {
            Some(verified) => verified.value,
            None if self.proof.is_verified() => self.value,
            None => 0.0,
        }
    }

    /// True if no plan can have this value if the bound is right.
    pub fn contradicts(&self, value: Micros) -> bool {
        self.value.is_nan() || self.value > value * (1.0 + ROUNDING)
    }
}

/// Relative error of sums of times that are added up in another order.
const ROUNDING: f64 = 1e-9;

/// True if a bound proves that nothing is better than what has this value.
pub fn closes(bound: Micros, value: Micros) -> bool {
    bound >= value * (1.0 - ROUNDING)
}

#[cfg(test)]
mod test {
    use super::*;

    fn solver(value: Micros) -> Bound {
        Bound::by(value, "milp", Proof::Solver)
    }

    #[test]
    fn the_best_verified_bound_is_kept_beside_the_solvers_word() {
        let [weak, strong] = [Bound::new(5.0, "load"), Bound::by(8.0, "cuts", Proof::SafeDual)];
        let claim = solver(10.0);
        for all in [
            [weak.clone(), strong.clone(), claim.clone()],
            [claim.clone(), weak.clone(), strong.clone()],
            [weak.clone(), claim.clone(), strong.clone()],
        ] {
            let best = all.into_iter().fold(Bound::none(), Bound::or);
            assert_eq!((best.value, best.proof, best.verified_value()), (10.0, Proof::Solver, 8.0));
            assert_eq!(best.or(solver(11.0)).verified.as_deref(), Some(&strong));
        }
        // A claim that is no stronger is not needed.
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
