//! Initial patterns: recipes, placements of other plans, and copies of everything.

use super::Known;
use super::model::Model;
use super::pattern::{Pattern, RULES, Rule, Simulator};
use super::recipe::{COPIES, Copies, Line, Recipe};
use crate::model::budget::Budget;
use crate::model::problem::MemoryModel;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// Chunk counts are multiples of the number of devices by powers of this.
const STEP: usize = 2;
/// Share of recipes in a search that do not start from the best one.
const FRESH: f64 = 0.4;
/// Percentages by which the load of slow devices counts.
const HANDICAPS: [u32; 4] = [100, 130, 180, 250];
/// Percentages of a slow holder's additional time that do not count.
const BIASES: [u32; 6] = [0, 40, 60, 70, 80, 90];

/// A pattern with its [`Simulator::cost`], and the recipe that it is from.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) value: Micros,
    pub(super) pattern: Pattern,
    recipe: Option<Recipe>,
}

/// Returns patterns with the costs of the first `inputs` of the queue, the best first. If time is over, the rest is not
/// tried.
pub(super) fn all(model: &Model<'_>, lines: &[Line<'_>], known: Known<'_>, inputs: u32, budget: &Budget) -> Vec<Start> {
    let mut found: Vec<Start> = Vec::new();
    let mut simulator = Simulator::new(model, inputs);
    let mut try_rules = |pattern: Pattern, recipe: Option<Recipe>| {
        if !pattern.is_complete() || !pattern.weights_fit(model) || budget.is_late() && !found.is_empty() {
            return;
        }
        let ruled = RULES.map(|rule| Pattern { rule, ..pattern.clone() });
        let valued = ruled.map(|pattern| (simulator.cost(&pattern), pattern));
        let best = valued.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(value, _)| value.is_finite());
        if let Some((value, pattern)) = best {
            let recipe = recipe.map(|recipe| Recipe { rule: pattern.rule, ..recipe });
            found.push(Start { value, pattern, recipe });
        }
    };
    for size in &model.sizes {
        let places = known.plans.iter().map(|plan| plan.iter().map(|launch| (launch.node, launch.device)).collect());
        let placed = known.placements.iter().map(|placement| placement.iter().copied().enumerate().collect());
        places.chain(placed).for_each(|places: Vec<_>| try_rules(of_places(model, *size, &places), None));
        if !lines.is_empty() {
            try_rules(everywhere(model, *size), None);
        }
    }
    for (line, size) in lines.iter().zip(&model.sizes).filter(|(line, _)| line.is_possible()) {
        for recipe in recipes(model, line, *size) {
            if let Some(pattern) = line.pattern(&recipe) {
                try_rules(pattern, Some(recipe));
            }
        }
    }
    found.sort_by(|a, b| a.value.total_cmp(&b.value));
    found.dedup_by(|a, b| a.pattern.holders == b.pattern.holders && a.pattern.size == b.pattern.size);
    found
}

/// Searches for recipes that are better than all of `starts` for the first `inputs` of the queue.
pub(super) fn search(
    model: &Model<'_>,
    lines: &[Line<'_>],
    starts: &[Start],
    inputs: u32,
    allowance: &Allowance,
) -> Option<Start> {
    let value = starts.first()?.value;
    let first = starts.iter().find_map(|start| start.recipe.map(|recipe| (start.value, recipe)))?;
    // The first inputs alone take less memory.
    let is_tight = model.is_tight && inputs == model.inputs;
    let chain = |mut random: Random| {
        let mut simulator = Simulator::new(model, inputs);
        let mut best = first;
        let mut found: Option<Start> = None;
        for trials in 0.. {
            if allowance.spent(trials) >= 1.0 {
                break;
            }
            let mut recipe = best.1;
            let changes = if random.chance(FRESH) { 12 } else { 1 + random.below(2) };
            (0..changes).for_each(|_| change(model, lines, &mut recipe, &mut random));
            let place = model.sizes.iter().position(|size| *size == recipe.size).unwrap_or(0);
            let pattern = lines[place].pattern(&recipe).filter(|pattern| pattern.weights_fit(model));
            let Some(pattern) = pattern else { continue };
            let value = simulator.cost(&pattern);
            if value < best.0 && (!is_tight || model.instance.fits_launches(&simulator.launches(&pattern))) {
                best = (value, recipe);
                found = Some(Start { value, pattern, recipe: Some(recipe) });
            }
        }
        (found.as_ref().map_or(Micros::INFINITY, |found| found.value), found)
    };
    allowance.best_of(chain).flatten().filter(|found| found.value < value)
}

/// Changes a parameter at random.
fn change(model: &Model<'_>, lines: &[Line<'_>], recipe: &mut Recipe, random: &mut Random) {
    let pick = |random: &mut Random, values: &[u32]| values[random.below(values.len())];
    let place = model.sizes.iter().position(|size| *size == recipe.size).unwrap_or(0);
    match random.below(10) {
        0 => {
            let place = random.below(model.sizes.len());
            if lines[place].is_possible() {
                recipe.size = model.sizes[place];
            }
        }
        1 => {
            let counts = chunk_counts(&lines[place], model.instance.devices() - helpers(&lines[place], recipe).len());
            recipe.chunks = counts[random.below(counts.len())];
        }
        2 => recipe.helpers = random.below(lines[place].classes.len()),
        3 => recipe.handicap = pick(random, &HANDICAPS),
        4 => recipe.copies = COPIES[random.below(COPIES.len())],
        5 => recipe.helped = random.below(recipe.chunks + 1),
        6 => recipe.each = 1 + random.below(4),
        7 => recipe.rule = if random.chance(0.3) { Rule::Chunk } else { Rule::Due(random.below(600) as u32) },
        8 => recipe.bias = pick(random, &BIASES),
        _ => recipe.reserves = model.instance.memory_model() == MemoryModel::Liveness && !recipe.reserves,
    }
}

/// Returns the devices that hold no chunk alone.
fn helpers(line: &Line<'_>, recipe: &Recipe) -> Vec<usize> {
    line.classes[..recipe.helpers].concat()
}

/// Returns numbers of chunks for some devices: multiples of their number, and numbers of chunks between narrow cuts.
fn chunk_counts(line: &Line<'_>, devices: usize) -> Vec<usize> {
    let groups = line.groups();
    let least = devices.min(groups);
    let multiples = std::iter::successors(Some(least), |count| Some(count * STEP).filter(|count| *count < groups));
    let narrow = std::iter::successors(Some(line.narrow_chunks()), |count| Some(count / STEP));
    let narrow = narrow.take_while(|count| *count > least);
    let mut counts: Vec<usize> = multiples.chain(narrow).chain([groups]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns recipes without copies: chunks in turn on all devices or on the fastest ones, for several numbers of chunks.
fn recipes(model: &Model<'_>, line: &Line<'_>, size: u32) -> Vec<Recipe> {
    let mut found = Vec::new();
    let reserved: &[bool] = match model.instance.memory_model() {
        MemoryModel::Static => &[false],
        MemoryModel::Liveness => &[false, true],
    };
    let mut helping = 0;
    for helpers in 0..line.classes.len() {
        for chunks in chunk_counts(line, model.instance.devices() - helping) {
            let rule = Rule::Arrival;
            let copies = Copies::None;
            let recipe = |reserves: &bool| Recipe {
                size,
                chunks,
                helpers,
                handicap: 100,
                copies,
                helped: 0,
                each: 1,
                reserves: *reserves,
                rule,
                bias: 0,
            };
            found.extend(reserved.iter().map(recipe));
        }
        helping += line.classes[helpers].len();
    }
    found
}

/// Returns the pattern with all weights on every device.
fn everywhere(model: &Model<'_>, size: u32) -> Pattern {
    let holders = |group: usize| -> Vec<u16> {
        let runs = |device: &&usize| model.rate(group, **device, size).is_finite();
        model.allowed(group).iter().filter(runs).map(|device| *device as u16).collect()
    };
    Pattern::uniform(model, size, (0..model.instance.groups().len()).map(holders).collect())
}

/// Returns the pattern that holds the weights of tasks on given devices.
fn of_places(model: &Model<'_>, size: u32, places: &[(usize, usize)]) -> Pattern {
    let mut holders: Vec<Vec<u16>> = vec![Vec::new(); model.instance.groups().len()];
    for (task, device) in places {
        holders[model.instance.group_of(*task)].push(*device as u16);
    }
    for devices in &mut holders {
        devices.sort_unstable();
        devices.dedup();
    }
    Pattern::uniform(model, size, holders)
}
