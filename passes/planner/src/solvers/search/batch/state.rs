//! State of a window under search.

use crate::model::units::{Bytes, Micros};
use crate::solvers::search::method::Surroundings;
use crate::solvers::search::model::WindowState;

/// An order of the window's tasks with their cuts and all derived times, the makespan, and the free memory.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Order of local tasks, and the position of each in it.
    pub(super) order: Vec<u8>,
    pub(super) place: Vec<u8>,
    /// By local task and device: units, end, and time from the start to the makespan.
    pub(super) cuts: Vec<u64>,
    pub(super) end: Vec<Micros>,
    pub(super) tail: Vec<Micros>,
    /// By position and device: time at which the device is free before it, and time from the first start on the device
    /// at or behind it to the makespan.
    pub(super) free: Vec<Micros>,
    pub(super) rear: Vec<Micros>,
    /// By position: makespan over paths that leave the window before it or bypass it.
    pub(super) peak: Vec<Micros>,
    pub(super) value: Micros,
    pub(super) room: Vec<Bytes>,
}

/// Resets a vector to `count` copies of a value.
fn fill<T: Clone>(list: &mut Vec<T>, count: usize, value: T) {
    list.clear();
    list.resize(count, value);
}

impl State {
    /// Resets to `width` tasks in order, with no cuts yet.
    pub(super) fn load(&mut self, width: usize, surroundings: &Surroundings) {
        let devices = surroundings.free.len();
        self.order.clear();
        self.order.extend(0..width as u8);
        self.place.clone_from(&self.order);
        self.cuts.clear();
        fill(&mut self.end, width * devices, Micros::ZERO);
        fill(&mut self.tail, width * devices, Micros::ZERO);
        self.free.clone_from(&surroundings.free);
        self.free.resize((width + 1) * devices, Micros::ZERO);
        fill(&mut self.rear, width * devices, Micros::ZERO);
        self.rear.extend_from_slice(&surroundings.device_tail);
        fill(&mut self.peak, width + 1, surroundings.floor);
        self.room.clone_from(&surroundings.room);
    }

    pub(super) fn view(&self) -> WindowState<'_, u64> {
        WindowState { value: self.value, order: &self.order, places: &self.cuts }
    }

    /// Copies another state, reusing memory.
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
