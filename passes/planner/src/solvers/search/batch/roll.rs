//! A network that is one task wide in places, stretch after stretch (DiviML IV-B, for a queue).
//!
//! Each stretch is searched when all before it is in place: which inputs have ended where and when is what it starts from,
//! and its last tasks end as early as can be. A stretch that looks like one before it takes over what was found there. In
//! the end windows slide over everything, borders included, since batches of one stretch may well run beside those of the
//! next.

use super::model::Model;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;
use crate::solvers::search::anneal::{Annealer, Leg};
use crate::solvers::search::memory::Limits;
use crate::solvers::search::method::Method;
use crate::solvers::search::model::Model as _;
use crate::solvers::search::schedule::Choice;

/// The share of the budget for one stretch after the other; the rest is for the whole.
const STRETCHES: f64 = 0.4;
/// So many tasks before a stretch may change with it.
const OVERLAP: usize = 6;
/// More stretches times tasks than this take too long: each stretch looks at all that is in place before it.
const MOST_APPENDED: usize = 4_000_000;
/// The share of the temperature that is left for the whole.
const COOLER: f64 = 0.6;

/// One chain: the best value, and the choice that has it.
pub(super) fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice<u64>,
    stretches: &[Vec<usize>],
    random: Random,
    allowance: &Allowance,
) -> (Micros, Choice<u64>) {
    let mut annealer = Annealer::new(instance, model, start, random);
    let whole = (annealer.best_value, start.clone());
    let hot = model.heat(Method::Anneal);
    // Where memory binds, what one stretch takes the others lack: only the whole can tell.
    let is_small = stretches.len() * model.graph.tasks <= MOST_APPENDED;
    let apart = stretches.len() > 1 && is_small && Limits::of(instance) == Limits::None && whole.0.is_finite();
    if apart {
        let is_complete = put_together(&mut annealer, model, start, stretches, allowance);
        if !is_complete || annealer.best_value > whole.0 {
            annealer.restart(whole.1);
        }
    }
    let (begin, hot) = if apart { (STRETCHES, hot * COOLER) } else { (0.0, hot) };
    annealer.run(allowance, &Leg { begin, hot, ..Leg::new(Method::Anneal) });
    (annealer.best_value, annealer.best)
}

/// Searches stretch after stretch; whether there was time for all.
fn put_together(
    annealer: &mut Annealer<'_, Model>,
    model: &Model,
    start: &Choice<u64>,
    stretches: &[Vec<usize>],
    allowance: &Allowance,
) -> bool {
    let devices = model.graph.devices;
    let hot = model.heat(Method::Anneal);
    annealer.restart(Choice { places: vec![0; model.graph.tasks * devices], order: Vec::new() });
    // Stretches like one before need no search of their own.
    let like: Vec<Option<usize>> =
        (0..stretches.len()).map(|at| (0..at).find(|other| model.alike(&stretches[*other], &stretches[at]))).collect();
    let searched = like.iter().filter(|like| like.is_none()).count();
    let mut done = 0;
    for (stretch, like) in stretches.iter().zip(like) {
        if allowance.spent(annealer.trials) >= 1.0 {
            return false;
        }
        let first = annealer.best.order.len().saturating_sub(OVERLAP);
        let model_of = |task: usize| match like {
            Some(other) => stretches[other][stretch.iter().position(|own| *own == task).unwrap_or(0)],
            None => task,
        };
        let known = if like.is_some() { &annealer.best } else { start };
        let mut found = vec![0; model.graph.tasks];
        known.order.iter().enumerate().for_each(|(place, task)| found[*task as usize] = place);
        let mut tasks: Vec<u32> = stretch.iter().map(|task| *task as u32).collect();
        tasks.sort_by_key(|task| found[model_of(*task as usize)]);
        let mut longer = annealer.current().clone();
        for task in tasks {
            longer.order.push(task);
            longer.set(&[task as usize], &known.places[model_of(task as usize) * devices..][..devices]);
        }
        annealer.restart(longer);
        if like.is_none() {
            let share = |count: usize| STRETCHES * count as f64 / searched as f64;
            let (begin, end) = (share(done), share(done + 1));
            annealer.run(allowance, &Leg { method: Method::Anneal, first, begin, end, hot });
            done += 1;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::options::Options;
    use crate::model::plan::{Limit, Objective};
    use crate::model::problem::Problem;
    use crate::solvers::cuts::stretches;
    use crate::solvers::search::schedule::Schedule;
    use crate::testing::{Rwnn, rwnn};

    /// The same module, so many times in a row.
    fn repeated(times: usize) -> Problem {
        let module = rwnn(&Rwnn { modules: 1, inputs: 16, seed: 3, ..Rwnn::default() }).unwrap();
        let (count, edges) = (module.nodes.len(), module.edges.clone().unwrap());
        let end = |from: fn(&(usize, usize)) -> usize| {
            let ends = |node: &usize| !edges.iter().any(|edge| from(edge) == *node);
            (0..count).filter(ends).collect::<Vec<_>>()
        };
        let (first, last) = (end(|edge| edge.1), end(|edge| edge.0));
        assert_eq!((first.len(), last.len()), (1, 1));
        let mut problem = Problem { nodes: Vec::new(), edges: Some(Vec::new()), modules: None, ..module.clone() };
        for copy in 0..times {
            let shift = copy * count;
            problem.nodes.extend(module.nodes.iter().cloned().map(|mut node| {
                node.id += shift;
                node
            }));
            let list = problem.edges.as_mut().unwrap();
            list.extend(edges.iter().map(|(from, to)| (from + shift, to + shift)));
            if copy > 0 {
                list.push((last[0] + shift - count, first[0] + shift));
            }
        }
        problem
    }

    #[test]
    fn stretches_become_a_schedule() {
        let instance = Instance::new(&repeated(3), Objective::Batch).unwrap();
        let model = Model::new(&instance).unwrap();
        let own = |places: std::ops::Range<usize>, entered: bool| places.start + usize::from(entered)..places.end;
        let stretches: Vec<Vec<usize>> = stretches(&instance)
            .into_iter()
            .map(|stretch| instance.order()[own(stretch.places, stretch.entered)].to_vec())
            .collect();
        let alike = |at: usize| (0..at).any(|other| model.alike(&stretches[other], &stretches[at]));
        assert!((0..stretches.len()).any(alike) && !alike(0), "{stretches:?}");

        let order = instance.order().iter().map(|task| *task as u32).collect();
        let start = Choice { places: model.all_on(1), order };
        let before = Schedule::new(&model, start.clone()).forward(&model);
        let options = Options { limit: Some(Limit::Iterations(1200)), ..Options::default() };
        let allowance = Allowance::new(&options, 0);
        let best = allowance.best_of(|random| {
            let (value, choice) = run(&instance, &model, &start, &stretches, random, &allowance);
            (value, (value, choice))
        });
        let (value, choice) = best.unwrap();
        let mut tasks = choice.order.clone();
        tasks.sort_unstable();
        assert!(tasks.into_iter().eq(0..model.graph.tasks as u32));
        let after = Schedule::new(&model, choice).forward(&model);
        assert!((value - after).abs() < 1e-6 && after < before * 0.7, "{value} is {after}, was {before}");
    }
}
