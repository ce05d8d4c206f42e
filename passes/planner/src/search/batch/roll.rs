//! A network that is one task wide in places, stretch after stretch (DiviML IV-B, for a queue).
//!
//! Each stretch is searched when all before it is in place: which inputs have ended where and when is what it starts from,
//! and its last tasks end as early as can be. A stretch that looks like one before it takes over what was found there. In
//! the end windows slide over everything, borders included, since batches of one stretch may well run beside those of the
//! next.

use super::anneal::{Annealer, Leg};
use super::model::Model;
use super::schedule::Choice;
use crate::instance::Instance;
use crate::random::Random;
use crate::search::chains::Budget;
use crate::search::memory::Limits;
use crate::units::Micros;

/// The share of the budget for one stretch after the other; the rest is for the whole.
const STRETCHES: f64 = 0.4;
/// So many tasks before a stretch may change with it.
const OVERLAP: usize = 6;
/// The temperature to begin with, in mean times of a task: for a stretch, and for the whole.
const HOT: (f64, f64) = (0.5, 0.3);

/// One chain: the best value, and the choice that has it.
pub(super) fn run(
    instance: &Instance,
    model: &Model,
    start: &Choice,
    stretches: &[Vec<usize>],
    random: Random,
    budget: Budget<'_>,
) -> (Micros, Choice) {
    let mut annealer = Annealer::new(instance, model, start, random);
    let whole = (annealer.best_value, start.clone());
    let mean = model.mean_time();
    // Where memory binds, what one stretch takes the others lack: only the whole can tell.
    let apart = stretches.len() > 1 && Limits::of(instance) == Limits::None && whole.0.is_finite();
    if apart {
        put_together(&mut annealer, model, start, stretches, budget);
        if annealer.best_value > whole.0 {
            annealer.restart(whole.1);
        }
    }
    let begin = if apart { STRETCHES } else { 0.0 };
    annealer.run(budget, &Leg { first: 0, begin, end: 1.0, hot: mean * HOT.1 });
    (annealer.best_value, annealer.best)
}

/// Searches stretch after stretch.
fn put_together(
    annealer: &mut Annealer<'_>,
    model: &Model,
    start: &Choice,
    stretches: &[Vec<usize>],
    budget: Budget<'_>,
) {
    let devices = model.devices;
    annealer.restart(Choice { cuts: vec![0; model.tasks * devices], order: Vec::new() });
    // Stretches like one before need no search of their own.
    let like: Vec<Option<usize>> =
        (0..stretches.len()).map(|at| (0..at).find(|other| model.alike(&stretches[*other], &stretches[at]))).collect();
    let searched = like.iter().filter(|like| like.is_none()).count();
    let mut done = 0;
    for (stretch, like) in stretches.iter().zip(like) {
        let first = annealer.best.order.len().saturating_sub(OVERLAP);
        let model_of = |task: usize| match like {
            Some(other) => stretches[other][stretch.iter().position(|own| *own == task).unwrap_or(0)],
            None => task,
        };
        let known = if like.is_some() { &annealer.best } else { start };
        let mut found = vec![0; model.tasks];
        known.order.iter().enumerate().for_each(|(place, task)| found[*task as usize] = place);
        let mut tasks: Vec<u32> = stretch.iter().map(|task| *task as u32).collect();
        tasks.sort_by_key(|task| found[model_of(*task as usize)]);
        let cut = |task: &u32| &known.cuts[model_of(*task as usize) * devices..][..devices];
        let cuts: Vec<u64> = tasks.iter().flat_map(|task| cut(task).iter().copied()).collect();
        annealer.append(&tasks, &cuts);
        if like.is_none() {
            let share = |count: usize| STRETCHES * count as f64 / searched as f64;
            let hot = model.mean_time() * HOT.0;
            annealer.run(budget, &Leg { first, begin: share(done), end: share(done + 1), hot });
            done += 1;
        }
    }
}
