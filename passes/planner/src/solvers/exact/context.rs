//! Context that all partial schedules of a sweep share, and the initial state.

use super::Pruning;
use super::bounds::Bounds;
use super::graph::Graph;
use super::layer::{Layer, State};
use super::masks::Masks;
use super::set::Set;
use super::symmetry::Classes;
use crate::model::units::Micros;

/// Data that is constant during a sweep.
pub(crate) struct Context<'a, const WORDS: usize> {
    pub(crate) graph: &'a Graph,
    pub(crate) masks: &'a Masks<WORDS>,
    pub(crate) classes: &'a Classes,
    pub(crate) bounds: &'a Bounds,
    /// Upper limit on the makespan.
    pub(crate) cutoff: Micros,
    pub(crate) pruning: Pruning,
}

impl<const WORDS: usize> Context<'_, WORDS> {
    /// Returns true if states track the memory use of devices.
    pub(crate) fn counts_memory(&self) -> bool {
        self.graph.capacity.iter().any(|capacity| capacity.is_finite())
    }

    /// Returns the offset of the front's figures: after the devices' free times, and their memory use if it is tracked.
    pub(crate) fn header(&self) -> usize {
        self.graph.devices * if self.counts_memory() { 2 } else { 1 }
    }

    /// Returns a layer with the initial state.
    pub(crate) fn root(&self) -> Layer<WORDS> {
        let devices = self.graph.devices;
        let mut figures = vec![0.0; self.header()];
        for task in self.masks.sources.iter() {
            for at in task * devices..(task + 1) * devices {
                let possible = self.bounds.time_us[at].is_finite();
                figures.push(if possible { self.bounds.head_us[at].0 } else { f64::INFINITY });
            }
        }
        let mut layer = Layer::new(self.pruning.rivals);
        let root = State {
            done: Set::EMPTY,
            front: self.masks.sources,
            parent: 0,
            task: 0,
            device: 0,
            last_start: Micros::ZERO,
            last_delivery: Micros::ZERO,
            bound: self.bounds.value,
            sum: Micros::ZERO,
        };
        let order: Vec<u8> = if self.classes.is_empty() { Vec::new() } else { (0..devices as u8).collect() };
        layer.add(root, &figures, &order);
        layer
    }
}
