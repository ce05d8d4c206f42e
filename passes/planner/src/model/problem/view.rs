//! Views of a problem, and the state it starts in.

use super::{Cold, EdgeNetwork, Pipeline, Problem};

/// Machine that a pipeline is planned on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'a> {
    /// The problem's devices and links, with times for each.
    Devices,
    /// Equal devices (MTPP).
    Homogeneous(&'a Pipeline),
    /// Machines of an edge network.
    Network(&'a EdgeNetwork),
}

/// Kind of a [`View`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    Devices,
    Homogeneous,
    Network,
}

impl ViewKind {
    /// Every kind, the preferred one first.
    pub const ALL: [Self; 3] = [Self::Homogeneous, Self::Network, Self::Devices];
}

/// Place of parameters before anything runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// On the devices that need them.
    Warm,
    /// In the host's memory: they are copied, or read there.
    Cold(&'a Cold),
}

impl Problem {
    /// The first of these kinds of views that the problem has; its devices where it has none of them.
    pub fn view_among(&self, kinds: &[ViewKind]) -> View<'_> {
        let view = |kind: &ViewKind| match kind {
            ViewKind::Devices => Some(View::Devices),
            ViewKind::Homogeneous => self.mtpp.as_ref().map(View::Homogeneous),
            ViewKind::Network => self.edge.as_ref().map(View::Network),
        };
        kinds.iter().find_map(view).unwrap_or(View::Devices)
    }

    /// The view that pipelines are planned on where no algorithm prefers another.
    pub fn view(&self) -> View<'_> {
        self.view_among(&ViewKind::ALL)
    }

    pub fn start(&self) -> Start<'_> {
        self.cold.as_ref().map_or(Start::Warm, Start::Cold)
    }
}
