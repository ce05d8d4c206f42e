//! Relaxation for bounds: each task in its best batch size on each device, with the memory of the smallest and the
//! latency of the largest one.

use super::config::{Config, Group, Space};
use crate::model::error::Error;
use crate::model::units::Micros;
use crate::solvers::pipeline::fleet::{Fleet, Scaling, ports_among};

impl Space<'_> {
    /// Returns the relaxation. A node that takes no time in some size may be a port, and counts as one.
    pub(super) fn relaxed(&self) -> Result<Fleet, Error> {
        let devices: Config = (0..self.sizes.len()).map(|device| Group { devices: vec![device], size: 1 }).collect();
        let time = |node: usize, group: &Group| -> Option<Micros> {
            let sizes = &self.sizes[group.devices[0]];
            let each = |size: &u32| Some(self.time(node, group.devices[0], *size)? / f64::from(*size));
            sizes.iter().filter_map(each).reduce(Micros::min)
        };
        let largest = |group: &Group| self.sizes[group.devices[0]].last().copied().unwrap_or(1);
        let together = |from: &Group, to: &Group| f64::from(largest(from).min(largest(to)));
        let mut problem = self.skeleton(&devices, time, together);
        problem.nodes.iter_mut().zip(&self.problem.nodes).for_each(|(node, own)| node.pin = own.pin);
        let count = devices.len();
        let scaling = Scaling {
            size: self.sizes.iter().map(|sizes| f64::from(sizes.first().copied().unwrap_or(1))).collect(),
            part: vec![1.0; count],
            link: vec![1.0; count * count],
            replicas: self.replicas as f64,
        };
        Fleet::scaled(&problem, self.options, scaling, &ports_among(self.problem, |node| self.takes_none(node, false)))
    }
}
