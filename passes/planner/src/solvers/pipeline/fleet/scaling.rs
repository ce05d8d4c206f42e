//! Devices that stand for several equal ones that take turns, or that take several inputs at once.

use super::Fleet;
use crate::model::options::PipelineCost;
use crate::model::units::{Bytes, Micros};

/// Sizes of batches, and shares of a transfer that count as load. Tasks and latencies of a problem are scaled already.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scaling {
    /// By device: inputs that it holds at once.
    pub(super) size: Vec<f64>,
    /// By device: share of its transfers that each device that it stands for receives or sends.
    pub(super) part: Vec<f64>,
    /// By pair of devices: largest share of the transfers on one link.
    pub(super) link: Vec<f64>,
    /// Number of devices that a stage may be divided among in a relaxation; else one.
    pub(super) replicas: f64,
}

impl Scaling {
    /// Returns the scaling of devices that stand for themselves and take one input at a time.
    pub(super) fn none(devices: usize) -> Self {
        Self { size: vec![1.0; devices], part: vec![1.0; devices], link: vec![1.0; devices * devices], replicas: 1.0 }
    }

    pub(super) fn is_none(&self) -> bool {
        *self == Self::none(self.size.len())
    }

    /// Returns true if two devices have the same scaling, beside that of their links.
    pub(super) fn are_equal(&self, one: usize, other: usize) -> bool {
        self.size[one] == self.size[other] && self.part[one] == self.part[other]
    }
}

impl Fleet {
    /// Returns the load of the receiver of a transfer.
    pub(super) fn arrival(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        self.move_time(bytes, from, to) * self.scaling.part[to]
    }

    /// Returns the load of the sender of a transfer.
    pub(super) fn departure(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        self.move_time(bytes, from, to) * self.scaling.part[from]
    }

    /// Returns the load of the busiest link of a transfer.
    pub(super) fn link_load(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        self.move_time(bytes, from, to) * self.scaling.link[from * self.devices + to]
    }

    /// Returns the least load of a transfer that counts.
    pub(super) fn least_load(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        match self.cost {
            PipelineCost::Serial => self.arrival(bytes, from, to).min(self.departure(bytes, from, to)),
            PipelineCost::Overlap => self.link_load(bytes, from, to),
        }
    }
}
