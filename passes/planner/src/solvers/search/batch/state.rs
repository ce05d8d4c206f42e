//! State of a window that is searched.

use crate::model::units::{Bytes, Micros};
use crate::solvers::search::method::Around;
use crate::solvers::search::model::WindowState;

/// An order of the window's tasks with their cuts, and all times that follow; the makespan, and the room that is left.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The order of local tasks, and where each stands in it.
    pub(super) order: Vec<u8>,
    pub(super) place: Vec<u8>,
    /// By local task and device: the units, when they end, and from their start to the end of the plan.
    pub(super) cuts: Vec<u64>,
    pub(super) end: Vec<Micros>,
    pub(super) tail: Vec<Micros>,
    /// By place and device: when a device is free before it, and from the first start on a device at or behind it to the
    /// end of the plan.
    pub(super) free: Vec<Micros>,
    pub(super) rear: Vec<Micros>,
    /// By place: the makespan over paths that leave the window before it or pass by.
    pub(super) peak: Vec<Micros>,
    pub(super) value: Micros,
    pub(super) room: Vec<Bytes>,
}

/// A vector of so many of a value.
fn fill<T: Clone>(list: &mut Vec<T>, count: usize, value: T) {
    list.clear();
    list.resize(count, value);
}

impl State {
    /// So many tasks in order, with no cuts yet.
    pub(super) fn load(&mut self, width: usize, around: &Around) {
        let devices = around.free.len();
        self.order.clear();
        self.order.extend(0..width as u8);
        self.place.clone_from(&self.order);
        self.cuts.clear();
        fill(&mut self.end, width * devices, 0.0);
        fill(&mut self.tail, width * devices, 0.0);
        self.free.clone_from(&around.free);
        self.free.resize((width + 1) * devices, 0.0);
        fill(&mut self.rear, width * devices, 0.0);
        self.rear.extend_from_slice(&around.device_tail);
        fill(&mut self.peak, width + 1, around.floor);
        self.room.clone_from(&around.room);
    }

    pub(super) fn view(&self) -> WindowState<'_, u64> {
        WindowState { value: self.value, order: &self.order, places: &self.cuts, end: &self.end }
    }

    /// Becomes the same as another, without new memory.
    pub(super) fn copy(&mut self, other: &Self) {
        self.order.clone_from(&other.order);
        self.place.clone_from(&other.place);
        self.cuts.clone_from(&other.cuts);
        self.end.clone_from(&other.end);
        self.tail.clone_from(&other.tail);
        self.free.clone_from(&other.free);
        self.rear.clone_from(&other.rear);
        self.peak.clone_from(&other.peak);
        self.value = other.value;
        self.room.clone_from(&other.room);
    }
}
