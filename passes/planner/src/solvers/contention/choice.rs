//! What a search decides: where launches run, how parameters get there, and in which order buses and devices are given out.

use super::model::{Model, Way};
use crate::model::units::Micros;

/// One thing after the other, as a list scheduler takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The parameters of a launch are sent on their way, if they have to be.
    Fetch(u32),
    /// A launch runs; what it reads is sent on its way, if it is not yet.
    Run(u32),
}

impl Job {
    pub(crate) fn launch(self) -> usize {
        match self {
            Self::Fetch(launch) | Self::Run(launch) => launch as usize,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// By launch.
    pub(crate) device: Vec<u16>,
    pub(crate) way: Vec<Way>,
    /// By tensor: whether it is sent as soon as it is made, not only when its first reader's turn comes.
    pub(crate) eager: Vec<bool>,
    /// Every launch after those that it waits for.
    pub(crate) order: Vec<Job>,
}

impl Choice {
    /// Nothing has been decided.
    pub(crate) fn empty(model: &Model<'_>) -> Self {
        let (launches, tensors) = (model.launches.len(), model.instance.tensors().len());
        Self {
            device: vec![0; launches],
            way: vec![Way::Copy; launches],
            eager: vec![false; tensors],
            order: Vec::new(),
        }
    }

    /// Launches where they are, in the order of their starts; parameters in the order in which they are used.
    pub(crate) fn new(model: &Model<'_>, device: Vec<u16>, start: &[Micros]) -> Self {
        let launches = model.instance.order().iter().flat_map(|task| model.of_task[*task].iter().copied());
        let mut order: Vec<usize> = launches.collect();
        // Stable: launches that take no time stay behind those that they wait for.
        order.sort_by(|a, b| start[*a].total_cmp(&start[*b]));
        let first_way = |(launch, device): (usize, &u16)| model.ways(launch, usize::from(*device)).first().copied();
        let way = device.iter().enumerate().map(|on| first_way(on).unwrap_or(Way::Copy)).collect();
        let order = jobs(model, &order);
        Self { device, way, eager: vec![false; model.instance.tensors().len()], order }
    }
}

/// Each launch, with its parameters just before it where there are any to be brought.
pub(crate) fn jobs(model: &Model<'_>, launches: &[usize]) -> Vec<Job> {
    let of = |launch: &usize| {
        let fetches = model.cold.is_some() && model.weight(*launch) > 0.0;
        fetches.then_some(Job::Fetch(*launch as u32)).into_iter().chain([Job::Run(*launch as u32)])
    };
    launches.iter().flat_map(of).collect()
}
