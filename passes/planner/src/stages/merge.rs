//! Stages of few tasks become part of others, where that is possible.

use std::collections::BTreeSet;

use super::launches::Launches;
use super::line::{Change, Line, Times};
use crate::units::Micros;

/// So many neighbours of a stage are looked at in each direction: a result that everybody reads has very many.
const MOST_NEIGHBOURS: usize = 8;
/// About so many launches are timed for each neighbour, all merging together.
const MOST_WORK: usize = 30_000_000;

/// What makes one line better than another.
pub(super) trait Judge {
    /// What a line costs.
    fn value(&self, line: &Line, times: &Times) -> Micros;

    /// Whether devices have the memory for it.
    fn fits(&self, line: &Line, times: &Times) -> bool;
}

pub(super) struct Merge<'a> {
    pub(super) launches: &'a Launches,
    pub(super) as_planned: bool,
    pub(super) min_tasks: usize,
    pub(super) judge: &'a dyn Judge,
}

impl Merge<'_> {
    /// Merges stages that are too small with neighbours, each time the one whose merging makes the plan best, until none is
    /// too small or can be merged. Returns how many were. Where there are very many, the smallest are looked at first.
    pub(super) fn run(&self, line: &mut Line) -> usize {
        let mut merged = 0;
        let mut stuck = BTreeSet::new();
        while let Some(times) = line.times(self.launches, self.as_planned) {
            let size = |piece: &usize| line.pieces[*piece].launches.len();
            let is_small = |piece: &usize| size(piece) < self.min_tasks && !stuck.contains(piece);
            let mut small: Vec<usize> = line.alive().filter(is_small).collect();
            small.sort_by(|a, b| size(a).cmp(&size(b)).then(times.begin[*a].total_cmp(&times.begin[*b])));
            let width = MOST_WORK / (small.len() * self.launches.all.len()).max(1);
            let mut best: Option<(Micros, Change)> = None;
            for (looked, piece) in small.into_iter().enumerate() {
                if looked > width && best.is_some() {
                    break;
                }
                match self.best(line, piece, &times) {
                    None => {
                        stuck.insert(piece);
                    }
                    Some((value, change)) => {
                        if best.is_none_or(|(best, _)| value < best) {
                            best = Some((value, change));
                        }
                    }
                }
            }
            let Some((_, change)) = best else { break };
            // What is around the stage that is gone, and around the one that has grown, may be possible now.
            for near in self.neighbours(line, change.piece, &times).into_iter().map(|change| change.into) {
                stuck.remove(&near);
            }
            line.apply(change);
            merged += 1;
        }
        merged
    }

    /// The possible change of a stage that makes the plan best, and of several the first, with what it then costs.
    fn best(&self, line: &mut Line, piece: usize, times: &Times) -> Option<(Micros, Change)> {
        let mut tried: Vec<(Micros, Change)> = Vec::new();
        for change in self.neighbours(line, piece, times) {
            if !self.may_run(line, change) {
                continue;
            }
            let before = line.apply(change);
            let times = line.times(self.launches, self.as_planned);
            tried.extend(times.map(|times| (self.judge.value(line, &times), change)));
            line.take_back(&before);
        }
        tried.retain(|(value, _)| value.is_finite());
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut fits = |change: Change| {
            let before = line.apply(change);
            let times = line.times(self.launches, self.as_planned);
            let fits = times.is_some_and(|times| self.judge.fits(line, &times));
            line.take_back(&before);
            fits
        };
        tried.into_iter().find(|(_, change)| fits(*change))
    }

    /// The stages before and behind on the same device, those that compute what this one reads, and those that read what it
    /// computes; of the same inputs.
    fn neighbours(&self, line: &Line, piece: usize, times: &Times) -> Vec<Change> {
        let inputs = |piece: usize| &self.launches.all[line.pieces[piece].launches[0]].inputs;
        let same_inputs = |other: &usize| *other != piece && inputs(*other) == inputs(piece);
        let on_device = &line.on_device[line.pieces[piece].device];
        let place = on_device.iter().position(|other| *other == piece).expect("a piece is on its device");
        let before = on_device[..place].iter().rev().copied().find(same_inputs);
        let behind = on_device[place + 1..].iter().copied().find(same_inputs);
        let others = |handed: &[Vec<super::launches::Handed>]| -> Vec<usize> {
            let own = line.pieces[piece].launches.iter();
            let all = own.flat_map(|launch| &handed[*launch]).filter_map(|handed| line.piece_of(handed.launch));
            let mut others: Vec<usize> = all.filter(same_inputs).collect();
            others.sort_unstable();
            others.dedup();
            others
        };
        let (mut sources, mut readers) = (others(&self.launches.reads), others(&self.launches.read_by));
        sources.sort_by(|a, b| times.end[*b].total_cmp(&times.end[*a]));
        readers.sort_by(|a, b| times.begin[*a].total_cmp(&times.begin[*b]));
        sources.truncate(MOST_NEIGHBOURS);
        readers.truncate(MOST_NEIGHBOURS);
        let mut changes: Vec<Change> = Vec::new();
        let behind_others = before.into_iter().chain(sources).map(|into| (into, false));
        for (into, in_front) in behind_others.chain(behind.into_iter().chain(readers).map(|into| (into, true))) {
            let change = Change { piece, into, in_front };
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        changes
    }

    /// Whether the other stage's device may run all of a stage, as far as that does not depend on when.
    fn may_run(&self, line: &Line, change: Change) -> bool {
        let (from, to) = (line.pieces[change.piece].device, line.pieces[change.into].device);
        if from == to {
            return true;
        }
        let instance = &self.launches.instance;
        let runs = |launch: usize| {
            let node = self.launches.all[launch].node;
            let is_there = |other: usize| line.device_of(self.launches, other) == to;
            let alone = self.launches.of_node[node].iter().all(|other| *other == launch || !is_there(*other));
            // Who shares a device with it is there already, or comes along.
            let company = instance.groups()[instance.group_of(node)].iter().filter(|other| **other != node);
            let mut company = company.flat_map(|other| &self.launches.of_node[*other]);
            self.launches.time(launch, to).is_some()
                && alone
                && company.all(|other| {
                    is_there(*other)
                        || line.piece_of(*other) == Some(change.piece)
                        || self.launches.shared_inputs(launch, *other).is_empty()
                })
        };
        line.pieces[change.piece].launches.iter().all(|launch| runs(*launch))
    }
}
