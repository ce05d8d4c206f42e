//! Batch sizes of the stages of a pipeline.

use std::collections::BTreeSet;

use super::{Domains, Problem};
use crate::model::plan::Objective;

impl Problem {
    /// Returns the maximum batch size of a pipeline if none is given: the least with which every task has a device, linked
    /// to those of its neighbors. One, if all tasks have times for one input.
    pub fn default_batch(&self) -> u32 {
        let needed = self.nodes.iter().filter_map(|node| self.least_batch(node.id)).max().unwrap_or(1);
        if needed <= 1 {
            return 1;
        }
        let all: BTreeSet<u32> = self.devices.iter().flat_map(|device| device.batch_sizes.iter().copied()).collect();
        let works = |size: &u32| Domains::up_to(self, Objective::Pipeline, *size).contradiction().is_none();
        all.range(needed..).copied().find(works).unwrap_or(needed)
    }

    /// Returns the maximum batch size of a pipeline: the given one, or the default.
    pub(crate) fn largest_batch(&self, asked: Option<u32>) -> u32 {
        asked.unwrap_or_else(|| self.default_batch())
    }

    /// Returns the least batch size in which some device that the pin allows runs a node.
    fn least_batch(&self, node: usize) -> Option<u32> {
        let node = &self.nodes[node];
        let allowed = self.devices.iter().filter(|device| node.pin.is_none_or(|pin| pin == device.id));
        let sizes = allowed.flat_map(|device| device.batch_sizes.iter().map(|size| (device.id, *size)));
        let runs = |(on, size): &(usize, u32)| node.time.get(size).is_some_and(|times| times[*on].is_some());
        sizes.filter(runs).map(|(_, size)| size).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_least_size_with_which_all_tasks_have_a_device() {
        let problem = |sizes: &str, time: &str| {
            let text = format!(
                r#"{{"format":"divi-problem/1","name":"sizes","devices":[{{"id":0,"name":"a","batch_sizes":{sizes}}}],
                "bandwidth":[[null]],"nodes":[{{"id":0,"time":{time},"weight":0,"input":0,"output":0}}]}}"#
            );
            Problem::read(&text).unwrap()
        };
        assert_eq!(problem("[1, 4]", r#"{"1": [5], "4": [9]}"#).default_batch(), 1);
        assert_eq!(problem("[8, 4]", r#"{"4": [9], "8": [12]}"#).default_batch(), 4);
        assert_eq!(problem("[1, 4]", r#"{"1": [null], "4": [9]}"#).default_batch(), 4);
        assert_eq!(problem("[8, 4]", r#"{"4": [9], "8": [12]}"#).largest_batch(Some(64)), 64);
    }
}
