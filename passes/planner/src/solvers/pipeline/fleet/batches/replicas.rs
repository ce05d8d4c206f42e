//! Search over devices that take turns: for few configurations all of them; else equal devices in groups of two, three
//! and so on, and single changes of the best configuration.

use std::time::Instant;

use super::config::{Config, Group};
use super::search::{Found, ROUNDS, Search, placed, with_moves};
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::pipeline::fleet::Plans;

/// Moves of a search after a single change, and its maximum seconds.
const MOVES: u64 = 20_000;
const SECONDS: f64 = 0.2;
/// Share of the remaining time for groups of equal devices.
const GROUPS_SHARE: f64 = 0.5;

impl Search<'_> {
    /// Plans replicas from the best plan without them, in the remaining time.
    pub(super) fn plan_replicas(&mut self) {
        let options = self.options.left_since(self.since);
        let since = Instant::now();
        if self.is_closed() {
            return;
        }
        let every = self.every_config(self.space.replicas);
        match every.filter(|_| self.is_small()) {
            Some(every) => self.try_all(every, &options, since),
            None => {
                let grouped = self.grouped();
                let first = options.share_since(since, GROUPS_SHARE);
                self.try_some(grouped, &first, since);
                self.improve(&first, since);
                self.change_groups(&options, since);
            }
        }
        self.improve(&options, since);
    }

    /// Returns configurations with equal devices in groups of r, for each r and in sizes of the best plan or uniform
    /// ones: all kinds of devices, and each kind alone.
    fn grouped(&self) -> Vec<Config> {
        let mut starts: Vec<Config> = self.best.iter().map(|best| best.config.clone()).collect();
        starts.extend(self.space.uniform());
        let mut all: Vec<Config> = Vec::new();
        for config in starts {
            let kinds = self.kinds(&config);
            for count in 2..=self.space.replicas {
                let mut wanted = vec![vec![true; kinds.len()]];
                if kinds.len() > 1 {
                    wanted.extend((0..kinds.len()).map(|kind| (0..kinds.len()).map(|other| other == kind).collect()));
                }
                for wanted in wanted {
                    let grouped = |(kind, is_wanted): (&Vec<Group>, &bool)| -> Vec<Group> {
                        if *is_wanted { joined(kind, count) } else { kind.clone() }
                    };
                    let next: Config = kinds.iter().zip(&wanted).flat_map(grouped).collect();
                    if next.len() < config.len() && self.space.is_valid(&next) && !all.contains(&next) {
                        all.push(next);
                    }
                }
            }
        }
        all
    }

    /// Returns the single devices of a configuration by kind: alike beside all others, and of one size. Groups of several
    /// devices are kinds of their own.
    fn kinds(&self, config: &Config) -> Vec<Vec<Group>> {
        let all = || 0..self.space.sizes.len();
        let mut kinds: Vec<Vec<Group>> = Vec::new();
        for group in config {
            let single = group.devices.len() == 1;
            let known = kinds.iter_mut().find(|kind| {
                let (first, own) = (&kind[0], group.devices[0]);
                single && first.devices.len() == 1 && self.space.are_alike(first.devices[0], own, all())
            });
            match known {
                Some(kind) => kind.push(group.clone()),
                None => kinds.push(vec![group.clone()]),
            }
        }
        kinds
    }

    /// Joins and divides groups of the best plan, one at a time, as long as that helps.
    fn change_groups(&mut self, options: &Options, since: Instant) {
        for _ in 0..ROUNDS {
            let Some(best) = self.best.clone() else { return };
            let before = self.value();
            for (config, home) in self.neighbors(&best) {
                if self.is_closed() || self.is_late(options, since) {
                    return;
                }
                self.try_change(&config, home, options, since);
            }
            if self.value() >= before {
                return;
            }
            self.improve(&options.share_since(since, GROUPS_SHARE), since);
        }
    }

    /// Searches briefly from a changed configuration.
    fn try_change(&mut self, config: &Config, home: Vec<usize>, options: &Options, since: Instant) {
        let Ok(fleet) = self.space.fleet(config) else { return };
        if fleet.simple().value >= self.value() {
            return;
        }
        let Some(pipe) = placed(config, &fleet, &home).filter(|pipe| fleet.value(pipe).is_finite()) else { return };
        let brief = match options.limit {
            Some(Limit::Seconds(_)) => {
                let left = options.left_since(since);
                Options { limit: left.limit.map(|limit| limit.with_seconds(|left| left.min(SECONDS))), ..left }
            }
            Some(Limit::Iterations(count)) => with_moves(options, count.min(MOVES)),
            None => with_moves(options, MOVES),
        };
        let brief = Options { observer: Observer::default(), ..brief };
        let Ok(mut plans) = Plans::on(fleet, Some(pipe), &brief) else { return };
        plans.anneal(&brief);
        let home = super::search::homes(config, plans.fleet(), plans.pipe());
        self.take(config, home, plans.by());
    }

    /// Returns configurations that differ by one change: a used group joined with an unused or with another used one, and
    /// a group without one of its devices. Equal changes are tried once.
    fn neighbors(&self, best: &Found) -> Vec<(Config, Vec<usize>)> {
        let is_used = |group: &Group| best.home.contains(&group.devices[0]);
        let mut all = Vec::new();
        for (index, group) in best.config.iter().enumerate().filter(|(_, group)| is_used(group)) {
            let mut has_unused = false;
            for (other, more) in best.config.iter().enumerate().filter(|(other, _)| *other != index) {
                let fits = group.devices.len() + more.devices.len() <= self.space.replicas;
                if !fits || (is_used(more) && other < index) || (!is_used(more) && has_unused) {
                    continue;
                }
                let mut config = best.config.clone();
                config[index].devices.extend(&more.devices);
                config.remove(other);
                if !self.space.is_valid(&config) {
                    continue;
                }
                has_unused |= !is_used(more);
                let to = |home: &usize| if more.devices.contains(home) { group.devices[0] } else { *home };
                all.push((config, best.home.iter().map(to).collect()));
            }
            if group.devices.len() > 1 {
                let mut config = best.config.clone();
                let last = config[index].devices.pop();
                config.extend(last.map(|device| Group { devices: vec![device], size: group.size }));
                all.push((config, best.home.clone()));
            }
        }
        all
    }

    fn is_small(&self) -> bool {
        self.space.problem.nodes.len() <= super::search::FEW_TASKS
    }
}

/// Joins single devices of a kind into groups of `count`; the rest forms a smaller one.
fn joined(kind: &[Group], count: usize) -> Vec<Group> {
    if kind[0].devices.len() > 1 {
        return kind.to_vec();
    }
    let join = |some: &[Group]| Group {
        devices: some.iter().flat_map(|group| group.devices.iter().copied()).collect(),
        size: some[0].size,
    };
    kind.chunks(count).map(join).collect()
}
