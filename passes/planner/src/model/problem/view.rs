//! Views of a problem, and its initial state.

use super::{Cold, EdgeNetwork, Pipeline, Problem};

/// Target that a pipeline is planned on.
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
    /// See [`View::Devices`].
    Devices,
    /// See [`View::Homogeneous`].
    Homogeneous,
    /// See [`View::Network`].
    Network,
}

impl ViewKind {
    /// All kinds, the preferred one first.
    pub const ALL: [Self; 3] = [Self::Homogeneous, Self::Network, Self::Devices];
}

/// Location of parameters before the first launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start<'a> {
    /// On the devices that need them.
    Warm,
    /// In the host's memory: they are copied, or read there.
    Cold(&'a Cold),
}

impl Problem {
    /// Returns the first of these kinds of views that the problem has; its devices if it has none of them.
    pub fn view_among(&self, kinds: &[ViewKind]) -> View<'_> {
        let view = |kind: &ViewKind| match kind {
            ViewKind::Devices => Some(View::Devices),
            ViewKind::Homogeneous => self.mtpp.as_ref().map(View::Homogeneous),
            ViewKind::Network => self.edge.as_ref().map(View::Network),
        };
        kinds.iter().find_map(view).unwrap_or(View::Devices)
    }

    /// Returns the view that pipelines are planned on if the algorithm does not prefer another.
    pub fn view(&self) -> View<'_> {
        self.view_among(&ViewKind::ALL)
    }

    /// Returns the initial location of parameters.
    pub fn start(&self) -> Start<'_> {
        self.cold.as_ref().map_or(Start::Warm, Start::Cold)
    }
}
