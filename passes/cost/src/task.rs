//! A task: what is placed on a device as a whole.

use crate::Work;

/// One operator, or several that run as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The operators in the order in which they run.
    pub members: Vec<Work>,
    /// Bytes of operands that other tasks compute; what passes between members is not read.
    pub read: u64,
    /// Bytes of operands that are constant.
    pub weights: u64,
    /// Bytes of results that leave the task.
    pub written: u64,
}

impl Task {
    pub fn flops(&self) -> u64 {
        self.members.iter().map(|member| member.flops).fold(0, u64::saturating_add)
    }

    /// The member that does most: the one that gives the task its character.
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
