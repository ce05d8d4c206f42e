//! Rolling horizon over segments between single-task cuts (DiviML IV-B, for a queue).
//!
//! Each segment is searched after all before it are scheduled: it starts from the ends of their parts, and minimizes
//! the end of its last tasks. A segment that is isomorphic to an earlier one takes over its solution. Finally windows
//! slide over everything, boundaries included, since batches of one segment may overlap with those of the next.

use super::model::Model;
use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;
use crate::solvers::search::anneal::{Annealer, Phase};
use crate::solvers::search::memory::Limits;
use crate::solvers::search::method::Method;
use crate::solvers::search::model::Model as _;
use crate::solvers::search::schedule::Choice;

/// Share of the budget for the segments; the rest is for the whole.
const SEGMENT_SHARE: f64 = 0.4;
/// Number of tasks before a segment that may change with it.
const OVERLAP: usize = 6;
/// Limit on segments times tasks: each segment looks at everything scheduled before it.
const MOST_APPENDED: usize = 4_000_000;
/// Factor of the temperature for the whole.
const COOLER: f64 = 0.6;

/// Runs one chain; returns the best value and choice.
pub(super) fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice<u64>,
    segments: &[Vec<usize>],
    random: Random,
    allowance: &Allowance,
) -> (Micros, Choice<u64>) {
    let mut annealer = Annealer::new(instance, model, start, random);
    let whole = (annealer.best_value, start.clone());
    let hot = model.heat(Method::Anneal);
    // If memory binds, segments compete for it: only a search of the whole is meaningful.
    let is_small = segments.len() * model.graph.tasks <= MOST_APPENDED;
    let by_segment = segments.len() > 1 && is_small && Limits::of(instance) == Limits::None && whole.0.is_finite();
    if by_segment {
        let is_complete = assemble(&mut annealer, model, start, segments, allowance);
        if !is_complete || annealer.best_value > whole.0 {
            annealer.restart(whole.1);
        }
    }
    let (begin, hot) = if by_segment { (SEGMENT_SHARE, hot * COOLER) } else { (0.0, hot) };
    annealer.run(allowance, &Phase { begin, hot, ..Phase::new(Method::Anneal) });
    (annealer.best_value, annealer.best)
}

/// Searches segment by segment; returns false if the budget was exhausted.
fn assemble(
    annealer: &mut Annealer<'_, Model>,
    model: &Model,
    start: &Choice<u64>,
    segments: &[Vec<usize>],
    allowance: &Allowance,
) -> bool {
    let devices = model.graph.devices;
    let hot = model.heat(Method::Anneal);
    annealer.restart(Choice { places: vec![0; model.graph.tasks * devices], order: Vec::new() });
    // Segments that are isomorphic to an earlier one need no search.
    let like: Vec<Option<usize>> =
        (0..segments.len()).map(|at| (0..at).find(|other| model.alike(&segments[*other], &segments[at]))).collect();
    let searched = like.iter().filter(|like| like.is_none()).count();
    let mut done = 0;
    for (segment, like) in segments.iter().zip(like) {
        if allowance.spent(annealer.trials) >= 1.0 {
            return false;
        }
        let first = annealer.best.order.len().saturating_sub(OVERLAP);
        let model_of = |task: usize| match like {
            Some(other) => segments[other][segment.iter().position(|own| *own == task).unwrap_or(0)],
            None => task,
        };
        let source = if like.is_some() { &annealer.best } else { start };
        let mut found = vec![0; model.graph.tasks];
        source.order.iter().enumerate().for_each(|(place, task)| found[*task as usize] = place);
        let mut tasks: Vec<u32> = segment.iter().map(|task| *task as u32).collect();
        tasks.sort_by_key(|task| found[model_of(*task as usize)]);
        let mut longer = annealer.current().clone();
        for task in tasks {
            longer.order.push(task);
            longer.set(&[task as usize], &source.places[model_of(task as usize) * devices..][..devices]);
        }
        annealer.restart(longer);
        if like.is_none() {
            let share = |count: usize| SEGMENT_SHARE * count as f64 / searched as f64;
            let (begin, end) = (share(done), share(done + 1));
            annealer.run(allowance, &Phase { method: Method::Anneal, first, begin, end, hot });
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
    use crate::solvers::cuts::segments;
    use crate::solvers::search::schedule::Schedule;
    use crate::testing::{Rwnn, rwnn};

    /// Returns a problem with the same module several times in sequence.
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
    fn segments_become_a_schedule() {
        let instance = Instance::new(&repeated(3), Objective::Batch).unwrap();
        let model = Model::new(&instance).unwrap();
        let own = |places: std::ops::Range<usize>, entered: bool| places.start + usize::from(entered)..places.end;
        let segments: Vec<Vec<usize>> = segments(&instance)
            .into_iter()
            .map(|segment| instance.order()[own(segment.places, segment.entered)].to_vec())
            .collect();
        let alike = |at: usize| (0..at).any(|other| model.alike(&segments[other], &segments[at]));
        assert!((0..segments.len()).any(alike) && !alike(0), "{segments:?}");

        let order = instance.order().iter().map(|task| *task as u32).collect();
        let start = Choice { places: model.all_on(1), order };
        let before = Schedule::new(&model, start.clone()).forward(&model);
        let options = Options { limit: Some(Limit::Iterations(1200)), ..Options::default() };
        let allowance = Allowance::new(&options, 0);
        let best = allowance.best_of(|random| {
            let (value, choice) = run(&instance, &model, &start, &segments, random, &allowance);
            (value, (value, choice))
        });
        let (value, choice) = best.unwrap();
        let mut tasks = choice.order.clone();
        tasks.sort_unstable();
        assert!(tasks.into_iter().eq(0..model.graph.tasks as u32));
        let after = Schedule::new(&model, choice).forward(&model);
        assert!((value - after).abs() < Micros(1e-6) && after < before * 0.7, "{value} is {after}, was {before}");
    }
}
