//! Decisions of a search: devices of launches, routes of their parameters, and the order in which buses and devices are
//! allocated.

use super::model::{Model, Route};
use crate::model::units::{Bytes, Micros};

/// Unit of the list scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Starts the copy of a launch's parameters, if one is needed.
    Fetch(u32),
    /// Runs a launch, and starts transfers of operands that have not been sent yet.
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
    pub(crate) route: Vec<Route>,
    /// By tensor: true if it is sent as soon as it is produced, not only when its first reader is scheduled.
    pub(crate) eager: Vec<bool>,
    /// Topological: every launch comes after its predecessors.
    pub(crate) order: Vec<Job>,
}

impl Choice {
    /// Returns a choice without decisions.
    pub(crate) fn empty(model: &Model<'_>) -> Self {
        let (launches, tensors) = (model.launches.len(), model.instance.tensors().len());
        Self {
            device: vec![0; launches],
            route: vec![Route::Copy; launches],
            eager: vec![false; tensors],
            order: Vec::new(),
        }
    }

    /// Returns a choice with the given devices, launches in the order of their starts, and parameters in the order of
    /// their use.
    pub(crate) fn new(model: &Model<'_>, device: Vec<u16>, start: &[Micros]) -> Self {
        let launches = model.instance.order().iter().flat_map(|task| model.of_task[*task].iter().copied());
        let mut order: Vec<usize> = launches.collect();
        // The sort is stable: launches of zero duration stay behind their predecessors.
        order.sort_by(|a, b| start[*a].total_cmp(&start[*b]));
        let first_route = |(launch, device): (usize, &u16)| model.routes(launch, usize::from(*device)).first().copied();
        let route = device.iter().enumerate().map(|on| first_route(on).unwrap_or(Route::Copy)).collect();
        let order = jobs(model, &order);
        Self { device, route, eager: vec![false; model.instance.tensors().len()], order }
    }
}

/// Returns a job for each launch, preceded by a fetch of its parameters where it has any.
pub(crate) fn jobs(model: &Model<'_>, launches: &[usize]) -> Vec<Job> {
    let of = |launch: &usize| {
        let fetches = model.cold.is_some() && model.weight(*launch) > Bytes::ZERO;
        fetches.then_some(Job::Fetch(*launch as u32)).into_iter().chain([Job::Run(*launch as u32)])
    };
    launches.iter().flat_map(of).collect()
}
