//! Bounds from dual values with directed rounding (Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer
//! linear programming", 2004).
//!
//! For any multipliers `y` of the rows, `cost · x = y · (rows · x) + (cost − y · rows) · x`, and each of the two sums is
//! at least the sum of its terms' minima within the bounds. This holds for any `y`: a solver's dual values make the bound
//! tight, and wrong ones only make it weak. Every operation is rounded to the safe side, so the bound holds in exact
//! arithmetic.

use super::Program;

/// Bounds of variables, which a search tree tightens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

impl Bounds {
    pub(super) fn of(program: &Program) -> Self {
        Self { lower: program.lower.clone(), upper: program.upper.clone() }
    }
}

/// Returns a lower bound on the cost of every solution within the bounds; minus infinity if the multipliers prove
/// nothing.
pub(super) fn bound(program: &Program, bounds: &Bounds, multipliers: &[f64]) -> f64 {
    lagrangian(program, &program.cost, bounds, multipliers)
}

/// Returns true if the multipliers (a Farkas ray) prove that there is no solution within the bounds: with zero costs, the
/// lower bound is positive.
pub(super) fn is_infeasible(program: &Program, bounds: &Bounds, multipliers: &[f64]) -> bool {
    let no_cost = vec![0.0; program.columns()];
    lagrangian(program, &no_cost, bounds, multipliers) > 0.0
}

fn lagrangian(program: &Program, cost: &[f64], bounds: &Bounds, multipliers: &[f64]) -> f64 {
    if multipliers.len() != program.rows() {
        return f64::NEG_INFINITY;
    }
    let (mut low, mut high) = (cost.to_vec(), cost.to_vec());
    let mut sum = 0.0;
    for (row, &multiplier) in multipliers.iter().enumerate() {
        let limit = if multiplier > 0.0 { program.row_lower[row] } else { program.row_upper[row] };
        // A multiplier that is not finite, or whose row has no bound on that side, is replaced by zero.
        if !multiplier.is_finite() || multiplier == 0.0 || limit.is_infinite() {
            continue;
        }
        sum = down(sum + down(multiplier * limit));
        for (column, value) in program.entries(row) {
            let product = multiplier * value;
            low[column] = down(low[column] - up(product));
            high[column] = up(high[column] - down(product));
        }
    }
    for column in 0..program.columns() {
        let ends = [bounds.lower[column], bounds.upper[column]];
        let least = ends.into_iter().flat_map(|end| [product(low[column], end), product(high[column], end)]);
        sum = down(sum + least.fold(f64::INFINITY, f64::min));
    }
    if sum.is_nan() { f64::NEG_INFINITY } else { sum }
}

/// Returns a product, rounded down; zero times infinity is zero. A reduced cost that overflowed proves nothing.
fn product(cost: f64, value: f64) -> f64 {
    let product = if cost == 0.0 || value == 0.0 { 0.0 } else { down(cost * value) };
    if product.is_nan() { f64::NEG_INFINITY } else { product }
}

pub(super) fn down(value: f64) -> f64 {
    value.next_down()
}

pub(super) fn up(value: f64) -> f64 {
    value.next_up()
}

#[cfg(test)]
pub(super) mod test {
    use std::ops::ControlFlow;

    use super::*;
    use crate::mip::{Column, Limits};
    use crate::random::Random;

    const UNLIMITED: Limits = Limits { seed: 1, iterations: u64::MAX, seconds: None };

    /// Generates a small program, maybe infeasible, with large and small coefficients.
    pub(in crate::mip) fn random_program(random: &mut Random) -> Program {
        let mut program = Program::default();
        let number = |random: &mut Random| (random.below(41) as f64 - 20.0) / [1.0, 3.0, 7.0, 1e5][random.below(4)];
        let columns: Vec<Column> = (0..2 + random.below(5)).map(|_| program.binary()).collect();
        for column in &columns {
            program.cost[column.0] = number(random);
        }
        for _ in 0..1 + random.below(5) {
            let terms: Vec<(Column, f64)> = columns.iter().map(|column| (*column, number(random))).collect();
            let limit = number(random);
            if random.below(2) == 0 { program.at_least(limit, terms) } else { program.at_most(limit, terms) }
        }
        program
    }

    /// Returns the optimum by enumeration; infinite if infeasible.
    pub(in crate::mip) fn optimum(program: &Program) -> f64 {
        let values =
            |set: u32| (0..program.columns()).map(move |column| f64::from(set >> column & 1)).collect::<Vec<_>>();
        let holds = |values: &Vec<f64>| {
            (0..program.rows()).all(|row| {
                let sum: f64 = program.entries(row).map(|(column, value)| values[column] * value).sum();
                program.row_lower[row] <= sum + 1e-12 && sum - 1e-12 <= program.row_upper[row]
            })
        };
        let cost = |values: Vec<f64>| values.iter().zip(&program.cost).map(|(value, cost)| value * cost).sum::<f64>();
        (0..1_u32 << program.columns()).map(values).filter(holds).map(cost).fold(f64::INFINITY, f64::min)
    }

    /// Compares bounds from HiGHS's dual values, perturbed ones and arbitrary numbers with the optimum by enumeration.
    #[test]
    fn no_multipliers_make_a_false_bound() {
        let mut random = Random::new(1);
        let (mut tight, mut refuted) = (0, 0);
        for _ in 0..400 {
            let program = random_program(&mut random);
            let (best, bounds) = (optimum(&program), Bounds::of(&program));
            let relaxed = program.relaxation(&UNLIMITED).unwrap().solve().unwrap();
            let ray = relaxed.ray.clone().unwrap_or_default();
            let mut tried = vec![relaxed.duals.clone(), ray.clone()];
            for kind in 0..12 {
                let mut wrong = if kind % 2 == 0 { relaxed.duals.clone() } else { ray.clone() };
                wrong.resize(program.rows(), 0.0);
                for value in &mut wrong {
                    let noise = random.below(2001) as f64 / 1000.0 - 1.0;
                    match kind / 2 {
                        0 => *value += noise * 1e-9,
                        1 => *value += noise * 1e-3,
                        2 => *value *= 1.0 + noise,
                        3 => *value = 100.0 * noise,
                        4 => *value = -*value,
                        _ => *value = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300][random.below(4)],
                    }
                }
                tried.push(wrong);
            }
            for multipliers in &tried {
                let bound = bound(&program, &bounds, multipliers);
                assert!(bound <= best + 1e-9, "{bound} {best} {multipliers:?} {program:?}");
                if is_infeasible(&program, &bounds, multipliers) {
                    assert!(best.is_infinite(), "{best} {multipliers:?} {program:?}");
                    refuted += 1;
                }
            }
            if relaxed.finished && relaxed.bound.is_finite() {
                let own = bound(&program, &bounds, &relaxed.duals);
                assert!((own - relaxed.bound).abs() < 1e-6, "{own} {} {program:?}", relaxed.bound);
                tight += 1;
            }
            if relaxed.ray.is_some() && relaxed.bound.is_infinite() {
                assert!(is_infeasible(&program, &bounds, &ray), "{ray:?} {program:?}");
            }
        }
        // Right dual values give the solver's bound, and rays prove infeasibility.
        assert!(tight > 100 && refuted > 20, "{tight} {refuted}");
    }

    #[test]
    fn false_rays_are_rejected() {
        let mut program = Program::default();
        let columns = [program.binary(), program.binary()];
        program.at_least(1.5, columns.map(|column| (column, 1.0)));
        program.at_most(1.0, [(columns[0], 1.0)]);
        let bounds = Bounds::of(&program);
        for ray in [[1.0, -1.0], [1.0, 0.0], [1e12, -1e12], [f64::NAN, 1.0], [f64::INFINITY, -1.0]] {
            assert!(!is_infeasible(&program, &bounds, &ray), "{ray:?}");
        }
        program.at_most(1.0, columns.map(|column| (column, 1.0)));
        assert!(is_infeasible(&program, &bounds, &[1.0, 0.0, -1.0]));
        assert!(!is_infeasible(&program, &bounds, &[-1.0, 0.0, 1.0]));
        assert!(!is_infeasible(&program, &bounds, &[1.0, 0.0]));
    }

    /// Reduced costs that overflow on both sides are NaN, and prove nothing.
    #[test]
    fn overflow() {
        let mut program = Program::default();
        let column = program.binary();
        program.at_most(1e10, [(column, 1e200)]);
        program.at_least(-1e10, [(column, 1e200)]);
        let bounds = Bounds::of(&program);
        for multipliers in [[-1e300, 1e300], [1e300, 1e300], [-1e300, 0.0], [f64::MAX, f64::MIN]] {
            assert!(bound(&program, &bounds, &multipliers) <= 0.0);
            assert!(!is_infeasible(&program, &bounds, &multipliers));
        }
    }

    /// Unbounded variables make every bound infinite whose reduced costs are not exact.
    #[test]
    fn variables_without_limits() {
        let mut program = Program::default();
        let column = program.column(0.0, f64::INFINITY, 1.0);
        program.at_least(2.0, [(column, 3.0)]);
        let bounds = Bounds::of(&program);
        assert_eq!(bound(&program, &bounds, &[0.5]), f64::NEG_INFINITY);
        assert!((bound(&program, &bounds, &[0.3]) - 0.6).abs() < 1e-12);
        assert_eq!(
            program.solve(&UNLIMITED, None, &mut |_| ControlFlow::Continue(())).unwrap().values,
            Some(vec![2.0 / 3.0])
        );
    }
}
