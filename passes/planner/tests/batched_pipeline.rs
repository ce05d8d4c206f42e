//! Pipelines of batches and of devices that take turns, against enumeration of all of them.

#[path = "small/batches.rs"]
mod batches;
#[path = "small/enumeration.rs"]
mod enumeration;
#[path = "small/random_problem.rs"]
mod random_problem;

use batches::small;
use divi_planner::api::bounds;
use divi_planner::plan::Limit;
use divi_planner::random::Random;
use divi_planner::units::Micros;
use divi_planner::{Error, Objective, Options, PipelineCost, Plan, Problem, Terms, solve, verify_under};
use enumeration::Enumeration;

const SLACK: f64 = 1e-6;
/// Number of problems, and of all of them if `DIVI_ALL` is set.
const SOME: usize = 60;
const ALL: usize = 600;

fn rounds() -> usize {
    if std::env::var_os("DIVI_ALL").is_some() { ALL } else { SOME }
}

fn options(random: &mut Random, round: usize) -> Options {
    Options {
        limit: Some(Limit::Iterations(2000)),
        stages: Some(1 + random.below(3) as u32),
        pipeline_cost: Some(PipelineCost::ALL[round % 2]),
        max_batch: [None, Some(2), Some(4), Some(64)][random.below(4)],
        max_replicas: [None, Some(2), Some(3)][random.below(3)],
        ..Options::default()
    }
}

/// Returns the plan, or the error of a problem without one.
fn planned(problem: &Problem, options: &Options) -> Result<Plan, Error> {
    let plan = solve(problem, Objective::Pipeline, "auto", options)?;
    let read = Plan::read(&plan.write()).expect("a plan");
    let value = verify_under(problem, &read, &Terms::stated_by(&read)).map_err(|error| error.to_string());
    assert!(value.is_ok_and(|value| (value - plan.value).abs() <= SLACK * value), "{}", problem.write());
    assert!(plan.warnings().is_empty(), "{:?}\n{}", plan.warnings(), problem.write());
    Ok(plan)
}

#[test]
fn small_pipelines_of_batches_are_mostly_the_best() {
    let mut random = Random::new(21);
    let (mut count, mut found, mut refused) = (0, 0, 0);
    for round in 0..rounds() {
        let problem = small(&mut random, 1 + round % 5);
        let asked = options(&mut random, round);
        let least = problem.default_batch();
        let asked = Options { max_batch: asked.max_batch.map(|most| most.max(least)), ..asked };
        let describe = || format!("round {round}, {asked:?}\n{}", problem.write());
        match (planned(&problem, &asked), Enumeration::optimum(&problem, &asked)) {
            (Ok(plan), Some(best)) => {
                assert!(
                    plan.value >= best * (1.0 - SLACK),
                    "{} is below {best}: {}\n{}",
                    plan.value,
                    describe(),
                    plan.write()
                );
                assert!(plan.bound <= best * (1.0 + SLACK), "{} is above {best}: {}", plan.bound, describe());
                for bound in bounds(&problem, Objective::Pipeline, &asked).unwrap_or_default() {
                    assert!(bound.value <= best * (1.0 + SLACK), "{bound:?} is above {best}: {}", describe());
                }
                count += 1;
                let is_best = plan.value <= best * (1.0 + SLACK);
                if !is_best && std::env::var_os("DIVI_ALL").is_some() {
                    eprintln!(
                        "{} instead of {best}: round {round}, {:?} {:?} {:?}",
                        plan.value, asked.max_batch, asked.max_replicas, asked.stages
                    );
                }
                found += usize::from(is_best);
            }
            (Ok(plan), None) => panic!("{} though there is no plan: {}", plan.value, describe()),
            (Err(Error::Problem(_) | Error::Infeasible(_)), Some(best)) => {
                panic!("refused, but {best}: {}", describe())
            }
            (Err(Error::NotFound(_)), Some(_)) => count += 1,
            (Err(Error::Problem(_) | Error::Infeasible(_) | Error::NotFound(_)), None) => refused += 1,
            (Err(error), _) => panic!("{error}: {}", describe()),
        }
    }
    eprintln!("{found} of {count} optimal, {refused} refused");
    assert!(found * 100 >= count * 95 && count * 2 > rounds(), "{found} of {count}");
}

/// More batch sizes and more devices of a stage are never worse, and the same request gives the same plan.
#[test]
fn wider_requests_are_never_worse() {
    let mut random = Random::new(22);
    let mut compared = 0;
    for round in 0..rounds() / 2 {
        let problem = small(&mut random, 5);
        let asked = Options { max_batch: None, max_replicas: None, ..options(&mut random, round) };
        let batched = Options { max_batch: Some(4), ..asked.clone() };
        let replicated = Options { max_replicas: Some(2), ..batched.clone() };
        let plans = [&asked, &batched, &replicated].map(|options| planned(&problem, options).ok());
        let values: Vec<Micros> = plans.iter().flatten().map(|plan| plan.value).collect();
        assert!(values.windows(2).all(|two| two[1] <= two[0] * (1.0 + SLACK)), "{values:?}\n{}", problem.write());
        compared += usize::from(values.len() == 3);
        let again = planned(&problem, &replicated).ok();
        assert_eq!(plans[2].as_ref().map(Plan::write), again.as_ref().map(Plan::write));
    }
    assert!(compared * 2 > rounds() / 2, "{compared}");
}
