//! Merging of small stages with others.

use std::collections::BTreeSet;

use crate::launches::{Handovers, Launches};
use crate::line::{Change, Line, Times};
use divi_planner::plan::LaunchRule;
use divi_planner::units::Micros;

/// Maximum number of producers and of consumers considered for a stage.
const MOST_NEIGHBOURS: usize = 8;
/// Approximate limit on launches timed per round of merging.
const MOST_WORK: usize = 300_000;
/// Number of changes timed per stage if that limit is exceeded.
const FEW: usize = 2;
/// Number of merges between updates of the tails if that limit is exceeded.
const OUT_OF_DATE: usize = 16;

/// Objective by which lines are compared.
pub(crate) trait Judge {
    /// Returns the cost of a line.
    fn value(&self, line: &Line, times: &Times) -> Micros;

    /// Returns true if the line fits into the devices' memory.
    fn fits(&self, line: &Line, times: &Times) -> bool;
}

/// Times before a merge, and longest paths from each piece's begin to the end.
struct Before<'a> {
    times: &'a Times,
    tails: &'a [Micros],
}

/// A feasible change and its result.
struct Found {
    value: Micros,
    change: Change,
    times: Times,
}

pub(crate) struct Merge<'a> {
    pub(crate) launches: &'a Launches,
    pub(crate) as_planned: bool,
    pub(crate) min_tasks: usize,
    pub(crate) judge: &'a dyn Judge,
}

impl Merge<'_> {
    /// Merges small stages with neighbors, each time the merge with the lowest resulting cost, until none is left or can be
    /// merged. Returns the number of merges. If there are very many, only the smallest stages and the most promising merges
    /// are considered.
    pub(crate) fn run(&self, line: &mut Line) -> usize {
        let mut merged = 0;
        let mut stuck = BTreeSet::new();
        let Some(mut times) = line.times(self.launches, self.as_planned) else { return 0 };
        let mut tails = line.tails(self.launches, &times);
        loop {
            let size = |piece: &usize| line.pieces[*piece].launches.len();
            let is_small = |piece: &usize| size(piece) < self.min_tasks && !stuck.contains(piece);
            let mut small: Vec<usize> = line.alive().filter(is_small).collect();
            small.sort_by(|a, b| size(a).cmp(&size(b)).then(times.begin[*a].total_cmp(&times.begin[*b])));
            let width = MOST_WORK / (small.len() * self.launches.all.len()).max(1);
            // Tails only determine the order of evaluation.
            if width > 0 || merged % OUT_OF_DATE == 0 {
                tails = line.tails(self.launches, &times);
            }
            let before = Before { times: &times, tails: &tails };
            let mut best: Option<Found> = None;
            for (tried, piece) in small.into_iter().enumerate() {
                if tried > width && best.is_some() {
                    break;
                }
                match self.best(line, piece, &before, if width > 0 { usize::MAX } else { FEW }) {
                    None => {
                        stuck.insert(piece);
                    }
                    Some(found) => {
                        if best.as_ref().is_none_or(|best| found.value < best.value) {
                            best = Some(found);
                        }
                    }
                }
            }
            let Some(Found { change, times: after, .. }) = best else { break };
            // Neighbors of the merged stages may have become mergeable.
            for near in self.neighbours(line, change.piece, &times).into_iter().map(|change| change.into) {
                stuck.remove(&near);
            }
            line.apply(change);
            times = after;
            merged += 1;
        }
        merged
    }

    /// Returns the change of a stage with the lowest cost among the first `few` feasible ones; the first of equals.
    fn best(&self, line: &mut Line, piece: usize, before: &Before<'_>, few: usize) -> Option<Found> {
        let changes = self.neighbours(line, piece, before.times).into_iter();
        let possible = changes.filter(|change| self.may_run(line, *change));
        let mut changes: Vec<(Micros, Change)> =
            possible.map(|change| (self.promise(line, change, before), change)).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut best: Option<Found> = None;
        let mut timed = 0;
        for (_, change) in changes {
            if timed >= few {
                break;
            }
            let undo = line.apply(change);
            if let Some(times) = line.times(self.launches, self.as_planned) {
                let value = self.judge.value(line, &times);
                let better = value.is_finite() && best.as_ref().is_none_or(|best| value < best.value);
                if !better {
                    timed += 1;
                } else if self.judge.fits(line, &times) {
                    best = Some(Found { value, change, times });
                    timed += 1;
                }
            }
            line.take_back(&undo);
        }
        best
    }

    /// Estimates the longest path through a merged stage from its two parts.
    fn promise(&self, line: &Line, change: Change, before: &Before<'_>) -> Micros {
        let Change { piece, into, .. } = change;
        let device = line.pieces[into].device;
        let launches = [piece, into].into_iter().flat_map(|piece| &line.pieces[piece].launches);
        let work: Micros = launches.map(|launch| self.launches.time(*launch, device)).sum();
        let both = [(piece, into), (into, piece)];
        let begin = both.map(|(own, other)| line.arrival(self.launches, own, device, before.times, Some(other)));
        let behind = both.map(|(own, other)| line.behind(self.launches, own, device, before.tails, Some(other)));
        begin[0].max(begin[1]) + work + behind[0].max(behind[1])
    }

    /// Returns the merge candidates of a stage with the same inputs: the stages before and behind it on its device, its
    /// producers and its consumers.
    fn neighbours(&self, line: &Line, piece: usize, times: &Times) -> Vec<Change> {
        let inputs = |piece: usize| &self.launches.all[line.pieces[piece].launches[0]].inputs;
        let same_inputs = |other: &usize| *other != piece && inputs(*other) == inputs(piece);
        let on_device = &line.on_device[line.pieces[piece].device];
        let place = on_device.iter().position(|other| *other == piece).expect("a piece is on its device");
        let before = on_device[..place].iter().rev().copied().find(same_inputs);
        let behind = on_device[place + 1..].iter().copied().find(same_inputs);
        let others = |handed: &Handovers| -> Vec<usize> {
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

    /// Returns true if the other stage's device can run all tasks of a stage, independent of times.
    fn may_run(&self, line: &Line, change: Change) -> bool {
        let (from, to) = (line.pieces[change.piece].device, line.pieces[change.into].device);
        if from == to {
            return true;
        }
        let instance = &self.launches.instance;
        let runs = |launch: usize| {
            let node = self.launches.all[launch].node;
            let is_there = |other: usize| line.device_of(self.launches, other) == to;
            let alone = instance.launches() == LaunchRule::Many
                || self.launches.of_node[node].iter().all(|other| *other == launch || !is_there(*other));
            // Co-located tasks are on that device already, or in the same piece.
            let company = instance.groups()[instance.group_of(node)].iter().filter(|other| **other != node);
            let mut company = company.flat_map(|other| &self.launches.of_node[*other]);
            self.launches.time(launch, to).is_finite()
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
