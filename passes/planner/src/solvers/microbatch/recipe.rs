//! Recipes: patterns from few parameters.
//!
//! The network is a line of co-location groups in topological order. It is divided into chunks of about equal work, at the
//! narrowest cuts nearby, which go to devices in turn. Memory that is left has copies of chunks: a micro-batch then runs
//! on the holder that ends first. Slow devices may hold copies only, so that they help where a fast one is busy.

use super::model::Model;
use super::pattern::{Pattern, Rule};
use super::search::groups_in_order;
use crate::bounds::device_classes;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Reach of a cut around its place, as a share of a chunk.
const REACH: f64 = 0.4;
/// Relative difference of cuts that count as equally narrow.
const NARROW: f64 = 1.01;
/// Share of a chunk's time by which ends of devices may differ, so that chunks go to the devices in turn.
const SAME: f64 = 0.5;

/// Parameters of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) size: u32,
    /// Number of chunks.
    pub(super) chunks: usize,
    /// Number of classes of devices, the slowest ones, that hold no chunk alone.
    pub(super) helpers: usize,
    /// Percentage by which the load of the slowest class counts among those that hold chunks.
    pub(super) handicap: u32,
    pub(super) copies: Copies,
    /// Number of chunks that helpers hold, and number of helpers that hold each.
    pub(super) helped: usize,
    pub(super) each: usize,
    /// True if the memory of operands and results is reserved beside the weights.
    pub(super) reserves: bool,
    pub(super) rule: Rule,
    pub(super) bias: u32,
}

/// Chunks that a second device of the class holds if it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    None,
    /// The first chunks.
    First,
    /// The first and the last chunks.
    Ends,
    /// Chunks far from each other.
    Spread,
    /// The first and the last one, on all devices of the class.
    Everywhere,
}

pub(super) const COPIES: [Copies; 5] = [Copies::None, Copies::First, Copies::Ends, Copies::Spread, Copies::Everywhere];

/// Groups in topological order for micro-batches of one size.
pub(super) struct Line<'a> {
    model: &'a Model<'a>,
    size: u32,
    order: Vec<usize>,
    /// By group: least time of an input.
    least: Vec<Micros>,
    /// Least time of an input on the groups before each place of the order.
    before: Vec<Micros>,
    /// By place: bytes of the tensors that are computed before and read from there on.
    crossing: Vec<Bytes>,
    /// Classes of equal devices, the slowest first.
    pub(super) classes: Vec<Vec<usize>>,
}

/// Weights that devices hold, and memory that is left.
struct Held {
    holders: Vec<Vec<u16>>,
    left: Vec<Bytes>,
    /// By group: memory on each holder, and memory that holders share.
    weights: Vec<Bytes>,
    shared: Vec<Bytes>,
}

impl Held {
    /// Returns the memory that one more holder of a group needs.
    fn needed(&self, group: usize) -> Bytes {
        self.weights[group] + self.shared[group] / (self.holders[group].len() + 1) as f64
    }

    /// Returns true if a device has memory for some groups that it does not hold yet.
    fn fits(&self, groups: &[usize], device: usize) -> bool {
        let holds = groups.iter().any(|group| self.holders[*group].contains(&(device as u16)));
        !holds && groups.iter().map(|group| self.needed(*group)).sum::<Bytes>() <= self.left[device]
    }

    /// Adds a holder of some groups if it has memory for them.
    fn add(&mut self, groups: &[usize], device: usize) -> bool {
        if !self.fits(groups, device) {
            return false;
        }
        for &group in groups {
            let needed = self.needed(group);
            let count = self.holders[group].len() as f64;
            for holder in &self.holders[group] {
                self.left[usize::from(*holder)] += self.shared[group] / (count * (count + 1.0));
            }
            self.left[device] -= needed;
            self.holders[group].push(device as u16);
            self.holders[group].sort_unstable();
        }
        true
    }
}

impl<'a> Line<'a> {
    pub(super) fn new(model: &'a Model<'a>, size: u32) -> Self {
        let instance = model.instance;
        let order = groups_in_order(model);
        let least = |group: usize| {
            let rates = model.allowed(group).iter().map(|device| model.rate(group, *device, size));
            rates.fold(Micros::INFINITY, Micros::min)
        };
        let least: Vec<Micros> = (0..order.len()).map(least).collect();
        let mut before = vec![Micros::ZERO];
        order.iter().for_each(|group| before.push(before[before.len() - 1] + least[*group]));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, group)| place[*group] = at);
        let mut change = vec![Bytes::ZERO; order.len() + 1];
        for tensor in instance.tensors() {
            let from = place[instance.group_of(tensor.producer)];
            let readers = tensor.consumers.iter().map(|reader| place[instance.group_of(*reader)]);
            let until = readers.fold(from, usize::max);
            change[from + 1] += tensor.bytes;
            change[until + 1] -= tensor.bytes;
        }
        let sum = |sum: &mut Bytes, change: &Bytes| {
            *sum += *change;
            Some(*sum)
        };
        let crossing = change.iter().scan(Bytes::ZERO, sum).collect();
        let classes = slowest_first(model, size);
        Self { model, size, order, least, before, crossing, classes }
    }

    /// Returns the number of groups.
    pub(super) fn groups(&self) -> usize {
        self.order.len()
    }

    /// Returns false if some group runs on no device in micro-batches of this size.
    pub(super) fn is_possible(&self) -> bool {
        self.before[self.order.len()].is_finite()
    }

    /// Returns the number of chunks between the narrowest cuts.
    pub(super) fn narrow_chunks(&self) -> usize {
        let inner = &self.crossing[1..self.order.len().max(1)];
        let narrow = inner.iter().copied().fold(Bytes::INFINITY, Bytes::min) * NARROW;
        inner.iter().filter(|bytes| **bytes <= narrow).count() + 1
    }

    /// Returns the ends of chunks of about equal work, at the narrowest cuts nearby.
    fn ends(&self, chunks: usize) -> Vec<usize> {
        let groups = self.order.len();
        let mut ends: Vec<usize> = Vec::with_capacity(chunks);
        for chunk in 1..chunks {
            let share = |part: f64| self.before[groups] * ((chunk as f64 + part) / chunks as f64);
            let first = self.before.partition_point(|time| *time < share(-REACH)).max(1);
            let last = self.before.partition_point(|time| *time <= share(REACH)).max(first + 1).min(groups);
            let distance = |place: usize| (self.before[place] - share(0.0)).abs();
            let nearest = |a: &usize, b: &usize| {
                self.crossing[*a].total_cmp(&self.crossing[*b]).then(distance(*a).total_cmp(&distance(*b)))
            };
            ends.extend((first..last).min_by(nearest));
        }
        ends.push(groups);
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Returns devices that hold nothing. Operands and results of the queue are shared by holders under the static memory
    /// model; with liveness, those of one micro-batch count if they are reserved.
    fn nothing_held(&self, reserves: bool) -> Held {
        let (model, instance) = (self.model, self.model.instance);
        let values = |group: usize| -> Bytes {
            let of = |task: &usize| instance.input_bytes(*task) + instance.output_bytes(*task);
            instance.groups()[group].iter().map(of).sum()
        };
        let (alone, shared) = match instance.memory_model() {
            MemoryModel::Static => (0, model.inputs),
            MemoryModel::Liveness => (self.size * u32::from(reserves), 0),
        };
        let groups = 0..self.order.len();
        Held {
            holders: vec![Vec::new(); self.order.len()],
            left: (0..instance.devices()).map(|device| instance.capacity_bytes(device)).collect(),
            weights: groups.clone().map(|group| model.weights(group) + values(group) * f64::from(alone)).collect(),
            shared: groups.map(|group| values(group) * f64::from(shared)).collect(),
        }
    }

    /// Returns the pattern of a recipe; `None` if the chunks do not fit.
    pub(super) fn pattern(&self, recipe: &Recipe) -> Option<Pattern> {
        let (model, instance) = (self.model, self.model.instance);
        let helpers = self.classes[..recipe.helpers].concat();
        let devices: Vec<usize> = (0..instance.devices()).filter(|device| !helpers.contains(device)).collect();
        let mut held = self.nothing_held(recipe.reserves);
        let ends = self.ends(recipe.chunks);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let chunks: Vec<&[usize]> = begins.zip(&ends).map(|(begin, end)| &self.order[begin..*end]).collect();
        self.assign(recipe, &devices, &chunks, &mut held)?;
        self.copy(recipe.copies, &chunks, &mut held);
        let mut turn = 0;
        for index in 0..recipe.helped.min(chunks.len()) {
            let chunk = chunks[(2 * index + 1) * chunks.len() / (2 * recipe.helped.min(chunks.len()))];
            for _ in 0..recipe.each {
                for _ in 0..helpers.len() {
                    let helper = helpers[turn % helpers.len()];
                    turn += 1;
                    let runs = |group: &usize| model.allowed(*group).contains(&helper);
                    if chunk.iter().all(runs) && held.add(chunk, helper) {
                        break;
                    }
                }
            }
        }
        Some(Pattern { rule: recipe.rule, bias: recipe.bias, ..Pattern::uniform(model, self.size, held.holders) })
    }

    /// Assigns each chunk to the device that ends first if it runs nothing but its chunks; `None` if they do not fit.
    fn assign(&self, recipe: &Recipe, devices: &[usize], chunks: &[&[usize]], held: &mut Held) -> Option<()> {
        let (model, size) = (self.model, self.size);
        let slowest = self.classes.get(recipe.helpers).filter(|_| recipe.helpers + 1 < self.classes.len());
        let handicap = |device: usize| {
            if slowest.is_some_and(|class| class.contains(&device)) { f64::from(recipe.handicap) / 100.0 } else { 1.0 }
        };
        let mut load = vec![Micros::ZERO; model.instance.devices()];
        let mut used = vec![0_usize; load.len()];
        for (index, chunk) in chunks.iter().enumerate() {
            let mut rest = *chunk;
            while !rest.is_empty() {
                // The whole chunk if it fits anywhere, else its first groups.
                let place = |part: &[usize]| {
                    let fits = |device: &usize| {
                        held.fits(part, *device) && part.iter().all(|group| model.allowed(*group).contains(device))
                    };
                    let end = |device: usize| {
                        let time: Micros = part.iter().map(|group| model.rate(*group, device, size)).sum();
                        load[device] + time * handicap(device)
                    };
                    let open = || devices.iter().copied().filter(fits).map(|device| (end(device), device));
                    let first = open().map(|(end, _)| end).fold(Micros::INFINITY, Micros::min);
                    let least: Micros = part.iter().map(|group| self.least[*group]).sum();
                    let near = open().filter(|(end, _)| end.is_finite() && *end <= first + least * SAME);
                    near.min_by_key(|(_, device)| used[*device])
                };
                let (count, (end, device)) =
                    (1..=rest.len()).rev().find_map(|count| Some((count, place(&rest[..count])?)))?;
                held.add(&rest[..count], device);
                (load[device], used[device]) = (end, index + 1);
                rest = &rest[count..];
            }
        }
        Some(())
    }

    /// Copies chunks to other devices of the class that holds them.
    fn copy(&self, copies: Copies, chunks: &[&[usize]], held: &mut Held) {
        let many = chunks.len();
        let from_both_ends = |index: usize| if index.is_multiple_of(2) { index / 2 } else { many - 1 - index / 2 };
        let order: Vec<usize> = match copies {
            Copies::None => Vec::new(),
            Copies::First => (0..many).collect(),
            Copies::Ends => (0..many).map(from_both_ends).collect(),
            // A step near the golden section has no common divisor with most numbers.
            Copies::Spread => {
                let step = (many as f64 * 0.382).round().max(1.0) as usize;
                let mut order: Vec<usize> = (0..many).map(|index| index * step % many).collect();
                let mut seen = vec![false; many];
                order.retain(|chunk| !std::mem::replace(&mut seen[*chunk], true));
                order
            }
            Copies::Everywhere => (0..many.min(2)).map(from_both_ends).collect(),
        };
        for chunk in order {
            let home = usize::from(held.holders[chunks[chunk][0]][0]);
            let Some(class) = self.classes.iter().find(|class| class.contains(&home)) else { continue };
            let place = class.iter().position(|device| *device == home).unwrap_or(0);
            let others = (0..class.len()).map(|step| class[(place + class.len() / 2 + step) % class.len()]);
            for device in others {
                if held.add(chunks[chunk], device) && copies != Copies::Everywhere {
                    break;
                }
            }
        }
    }
}

/// Returns the classes of equal devices, the slowest first: by the mean over all groups that it can run of its time
/// relative to the fastest device.
fn slowest_first(model: &Model<'_>, size: u32) -> Vec<Vec<usize>> {
    let instance = model.instance;
    let class_of = device_classes(instance);
    let slowness = |device: usize| {
        let ratio = |group: usize| {
            let rates = model.allowed(group).iter().map(|other| model.rate(group, *other, size));
            let least = rates.fold(Micros::INFINITY, Micros::min);
            let can_run = model.allowed(group).contains(&device);
            let own = if can_run { model.rate(group, device, size) } else { Micros::INFINITY };
            (own.is_finite() && least > Micros::ZERO).then(|| own / least)
        };
        let ratios: Vec<f64> = (0..instance.groups().len()).filter_map(ratio).collect();
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    };
    let count = class_of.iter().max().map_or(0, |last| last + 1);
    let of_class = |class: usize| (0..instance.devices()).filter(|device| class_of[*device] == class).collect();
    let mut classes: Vec<(f64, Vec<usize>)> =
        (0..count).map(of_class).map(|class: Vec<usize>| (slowness(class[0]), class)).collect();
    classes.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    classes.into_iter().map(|(_, class)| class).collect()
}
