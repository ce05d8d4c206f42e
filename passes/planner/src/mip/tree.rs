//! Branch and bound that verifies a solver's bound of an integer program.
//!
//! HiGHS does not expose its search tree, so its bound is only a claim. Here each leaf is pruned by rows alone
//! ([`super::propagate`]) or by dual values of its linear program with directed rounding ([`safe`]): the proof is valid
//! whatever HiGHS returns for a leaf.

use super::ffi::Relaxation;
use super::propagate::Propagator;
use super::safe::{self, Bounds};
use super::{Limits, Program, Verified};
use crate::model::error::Error;
use std::time::Instant;

/// Minimum distance from an integer of a value that is branched on.
const FRACTIONAL: f64 = 1e-6;
/// Relative slack above the target for the linear programs' objective bound, so that rounding does not keep leaves open.
const BEYOND: f64 = 1e-7;
/// Relative distance from the target within which a solution counts as being at it.
const NEAR: f64 = 1e-8;
/// Maximum number of columns: each linear program of a larger program takes too long.
const MOST_COLUMNS: usize = 60_000;

/// Open search node: decisions from the root on, and the bound of its parent.
struct Open {
    decisions: Vec<(usize, f64, f64)>,
    bound: f64,
}

struct Tree<'a> {
    program: &'a Program,
    target: f64,
    /// The only variable with a cost, if its cost is one.
    objective: Option<usize>,
    root: Bounds,
    /// Bounds of the linear program's columns.
    current: Bounds,
    relaxation: Relaxation,
    propagator: Propagator<'a>,
    /// Pseudocosts: by column, gains of branching down and up, as sum and count.
    gains: Vec<[(f64, u32); 2]>,
    iterations: u64,
}

/// Outcome of a search node.
enum Leaf {
    /// No solution below the target is in it.
    Refuted,
    /// Bound of its relaxation, and the branching column with its value, if there is any.
    Open(f64, Option<(usize, f64)>),
}

/// Verifies that no solution costs less than `target` (infinite: that there is no solution). If that `is_likely`, the
/// search is depth-first, which reuses bases best; else best-first, which raises the global bound.
pub(super) fn verify(program: &Program, target: f64, is_likely: bool, limits: &Limits) -> Result<Verified, Error> {
    let since = Instant::now();
    let nothing = Verified { bound: f64::NEG_INFINITY, iterations: 0 };
    let is_spent = |iterations: u64| {
        iterations >= limits.iterations
            || limits.seconds.is_some_and(|seconds| since.elapsed().as_secs_f64() >= seconds)
    };
    if target == f64::NEG_INFINITY || target.is_nan() || program.columns() > MOST_COLUMNS || is_spent(0) {
        return Ok(nothing);
    }
    let Some(mut tree) = Tree::new(program, target, limits)? else {
        return Ok(Verified { bound: target, ..nothing });
    };
    let mut open = vec![Open { decisions: Vec::new(), bound: f64::NEG_INFINITY }];
    // Bound of all search nodes that were neither refuted nor expanded.
    let mut least = f64::INFINITY;
    while let Some(next) = if is_likely { open.pop() } else { take_least(&mut open) } {
        match tree.look(&next)? {
            Leaf::Refuted => {}
            Leaf::Open(bound, None) => {
                let bound = bound.max(next.bound);
                least = least.min(bound);
                // A solution below the target by more than rounding refutes the claim.
                if bound < target - NEAR * target.abs() || target.is_infinite() {
                    break;
                }
            }
            Leaf::Open(bound, Some((column, value))) => {
                let bound = bound.max(next.bound);
                let (lower, upper) = (tree.current.lower[column], tree.current.upper[column]);
                let [down, up] = [(column, lower, value.floor()), (column, value.ceil(), upper)];
                // The nearer side last, so that it is next.
                let sides = if value.fract() > 0.5 { [down, up] } else { [up, down] };
                for side in sides {
                    let decisions = next.decisions.iter().copied().chain([side]).collect();
                    open.push(Open { decisions, bound });
                }
            }
        }
        if is_spent(tree.iterations) {
            break;
        }
    }
    let least = open.iter().map(|open| open.bound).fold(least, f64::min);
    Ok(Verified { bound: least.min(target), iterations: tree.iterations })
}

/// Removes the search node with the least bound, of equals the last.
fn take_least(open: &mut Vec<Open>) -> Option<Open> {
    let least = (0..open.len()).rev().min_by(|a, b| open[*a].bound.total_cmp(&open[*b].bound))?;
    Some(open.swap_remove(least))
}

impl<'a> Tree<'a> {
    /// Creates the tree; `None` if rows alone show that there is no solution below the target.
    fn new(program: &'a Program, target: f64, limits: &Limits) -> Result<Option<Self>, Error> {
        let mut priced = (0..program.columns()).filter(|column| program.cost[*column] != 0.0);
        let objective = priced.next().filter(|column| program.cost[*column] == 1.0 && priced.next().is_none());
        let (mut root, mut propagator) = (Bounds::of(program), Propagator::new(program));
        if let Some(column) = objective {
            root.upper[column] = root.upper[column].min(target);
        }
        if !propagator.all(&mut root) {
            return Ok(None);
        }
        let mut relaxation = program.relaxation(limits)?;
        let most = objective.map_or(target, |column| root.upper[column]);
        relaxation.until(if most.is_finite() { most + BEYOND * most.abs() } else { f64::INFINITY })?;
        let mut tree = Self {
            program,
            target,
            objective,
            current: Bounds::of(program),
            root,
            relaxation,
            propagator,
            gains: vec![[(0.0, 0); 2]; program.columns()],
            iterations: 0,
        };
        let root = tree.root.clone();
        tree.narrow(root)?;
        Ok(Some(tree))
    }

    /// Changes the bounds of the linear program. The objective variable gets slack beyond its own bound, so that its
    /// excess is measured.
    fn narrow(&mut self, bounds: Bounds) -> Result<(), Error> {
        let mut bounds = bounds;
        if let Some(column) = self.objective {
            bounds.upper[column] = bounds.upper[column].abs() * 2.0 + 1.0;
        }
        let is_other = |column: &usize| {
            bounds.lower[*column] != self.current.lower[*column] || bounds.upper[*column] != self.current.upper[*column]
        };
        let changed: Vec<usize> = (0..self.program.columns()).filter(is_other).collect();
        self.relaxation.narrow(&changed, &bounds)?;
        self.current = bounds;
        Ok(())
    }

    fn look(&mut self, open: &Open) -> Result<Leaf, Error> {
        let mut bounds = self.root.clone();
        for &(column, lower, upper) in &open.decisions {
            bounds.lower[column] = bounds.lower[column].max(lower);
            bounds.upper[column] = bounds.upper[column].min(upper);
            if bounds.lower[column] > bounds.upper[column] || !self.propagator.after(&[column], &mut bounds) {
                return Ok(Leaf::Refuted);
            }
        }
        let most = self.objective.map_or(self.target, |column| bounds.upper[column]);
        self.narrow(bounds)?;
        let outcome = self.relaxation.solve()?;
        self.iterations += outcome.iterations + 1;
        let is_shown = outcome.ray.as_ref().is_some_and(|ray| safe::is_infeasible(self.program, &self.current, ray));
        let bound = safe::bound(self.program, &self.current, &outcome.duals);
        // Above the objective's upper bound there is no solution; at a target, none below it.
        let is_above = bound > most || (bound >= self.target && self.target.is_finite());
        self.learn(open, bound);
        if is_shown || is_above {
            return Ok(Leaf::Refuted);
        }
        let branch = match outcome.values.filter(|_| outcome.finished) {
            Some(values) => self.branch(&values),
            None => self.halve(),
        };
        Ok(Leaf::Open(bound, branch))
    }

    /// Returns a branching variable without a relaxation's solution: any integer variable that is not fixed.
    fn halve(&self) -> Option<(usize, f64)> {
        let Bounds { lower, upper } = &self.current;
        let is_open = |column: &usize| self.program.is_integer[*column] && lower[*column] < upper[*column];
        (0..self.program.columns()).find(is_open).map(|column| (column, lower[column].floor() + 0.5))
    }

    /// Updates the pseudocosts by the last decision.
    fn learn(&mut self, open: &Open, bound: f64) {
        if let Some((column, lower, _)) = open.decisions.last()
            && open.bound.is_finite()
            && bound.is_finite()
        {
            let (sum, count) = &mut self.gains[*column][usize::from(*lower > self.root.lower[*column])];
            *sum += (bound - open.bound).max(0.0);
            *count += 1;
        }
    }

    /// Returns the fractional column with the best product of pseudocost gains.
    fn branch(&self, values: &[f64]) -> Option<(usize, f64)> {
        let mean = |side: usize| {
            let known = self.gains.iter().map(|gains| gains[side]).filter(|(_, count)| *count > 0);
            let (sum, count) = known.fold((0.0, 0), |all, one| (all.0 + one.0 / f64::from(one.1), all.1 + 1));
            if count > 0 { sum / f64::from(count) } else { 1.0 }
        };
        let means = [mean(0), mean(1)];
        let score = |column: usize, value: f64| {
            let gain = |side: usize, distance: f64| {
                let (sum, count) = self.gains[column][side];
                let gain = if count > 0 { sum / f64::from(count) } else { means[side] };
                (gain * distance).max(1e-9)
            };
            gain(0, value.fract()) * gain(1, 1.0 - value.fract())
        };
        let fractional = |column: &usize| {
            let value = values[*column];
            self.program.is_integer[*column] && (value - value.round()).abs() > FRACTIONAL
        };
        let candidates = (0..self.program.columns()).filter(fractional).map(|column| (column, values[column]));
        candidates.max_by(|a, b| score(a.0, a.1).total_cmp(&score(b.0, b.1)))
    }
}

#[cfg(test)]
mod test {
    use super::super::safe::test::{optimum, random_program};
    use super::*;
    use crate::mip::Column;
    use crate::random::Random;

    const UNLIMITED: Limits = Limits { seed: 1, iterations: u64::MAX, seconds: None };

    /// Verifies right and wrong claims about small programs, with enough effort and with too little, against enumeration.
    #[test]
    fn claims_are_confirmed_where_they_are_right() {
        let mut random = Random::new(2);
        let (mut confirmed, mut without) = (0, 0);
        for _ in 0..200 {
            let program = random_program(&mut random);
            let best = optimum(&program);
            without += usize::from(best.is_infinite());
            let claims = [best, best - 0.5, best + 1e-6, best + 0.5, 1e6, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
            for (claim, is_likely) in claims.into_iter().flat_map(|claim| [(claim, true), (claim, false)]) {
                for iterations in [u64::MAX, 3, 0] {
                    let limits = Limits { iterations, ..UNLIMITED };
                    let verified = verify(&program, claim, is_likely, &limits).unwrap();
                    assert!(verified.bound <= best + 1e-9, "{claim}: {} {best} {program:?}", verified.bound);
                    assert!(claim.is_nan() || verified.bound <= claim, "{claim}: {} {program:?}", verified.bound);
                }
                if claim <= best - 1e-9 || best.is_infinite() && !claim.is_nan() {
                    let verified = verify(&program, claim, is_likely, &UNLIMITED).unwrap();
                    assert_eq!(verified.bound, claim, "{best} {program:?}");
                    confirmed += 1;
                }
            }
        }
        assert!(confirmed > 400 && without > 10, "{confirmed} {without}");
    }

    /// Checks that an objective of one variable (a bottleneck) tightens all others.
    #[test]
    fn a_bottleneck() {
        let mut random = Random::new(3);
        for _ in 0..20 {
            // Tasks on two machines.
            let times: Vec<f64> = (0..8).map(|_| 1.0 + random.below(30) as f64).collect();
            let all: f64 = times.iter().sum();
            let split = |set: u32| {
                let one: f64 =
                    times.iter().enumerate().filter(|(task, _)| set >> task & 1 == 1).map(|(_, time)| time).sum();
                one.max(all - one)
            };
            let best = (0..1 << 8).map(split).fold(f64::INFINITY, f64::min);
            let program_below = |most: f64| {
                let mut program = Program::default();
                let bottleneck = program.column(0.0, most, 1.0);
                let columns: Vec<Column> = times.iter().map(|_| program.binary()).collect();
                let terms = || columns.iter().zip(&times).map(|(column, time)| (*column, *time));
                program.at_most(0.0, terms().chain([(bottleneck, -1.0)]));
                program.at_least(all, terms().chain([(bottleneck, 1.0)]));
                program
            };
            let bound = |most: f64, claim: f64| verify(&program_below(most), claim, true, &UNLIMITED).unwrap().bound;
            assert!(bound(all, best) >= best * (1.0 - 1e-12));
            assert_eq!(bound(all, best - 1e-6), best - 1e-6);
            assert!(bound(all, best + 1.0) <= best);
            assert_eq!(bound(best - 0.5, f64::INFINITY), f64::INFINITY);
            assert!(bound(best, f64::INFINITY) <= best);
        }
    }
}
