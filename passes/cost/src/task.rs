//! Task: the unit of placement on a device.

use crate::{Class, Work};

/// One operator, or a cluster of several that run as one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Operators in execution order.
    pub members: Vec<Work>,
    /// Bytes of operands that other tasks compute, without intermediate results.
    pub read: u64,
    /// Bytes of constant operands.
    pub weights: u64,
    /// Bytes of results that other tasks read or the model returns.
    pub written: u64,
}

impl Task {
    /// Returns the number of operations of all members.
    pub fn flops(&self) -> u64 {
        self.members.iter().map(|member| member.flops).fold(0, u64::saturating_add)
    }

    /// Returns the bytes of constants that must be in the device's memory, whether or not they are read. Operands of views, such
    /// as shapes, need not be.
    pub fn resident_weights(&self) -> u64 {
        let members = self.members.iter().filter(|member| member.class != Class::View);
        members.map(|member| member.resident_weights).fold(0, u64::saturating_add)
    }

    /// Returns the dominant member: the one with the most operations, or else with the most bytes.
    pub fn main(&self) -> Option<&Work> {
        let bytes = |member: &Work| member.read.saturating_add(member.weights).saturating_add(member.written);
        self.members.iter().max_by_key(|member| (member.flops, bytes(member)))
    }
}

impl From<Work> for Task {
    fn from(work: Work) -> Self {
        Self { read: work.read, weights: work.weights, written: work.written, members: vec![work] }
    }
}
