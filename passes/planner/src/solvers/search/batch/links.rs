//! Neighbors of the tasks of a window.

use std::ops::Range;

use super::model::Model;
use super::window::Window;
use crate::model::units::Micros;
use crate::solvers::search::model::Arc;
use crate::solvers::search::schedule::{ABSENT, Schedule};

/// Predecessors and successors of a task.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Arcs from and to tasks inside the window, which have local indices.
    pub(super) from: Vec<Arc>,
    pub(super) to: Vec<Arc>,
    /// Arcs from tasks before the window, and to tasks behind it; tasks that are not in the order yet have no cuts.
    pub(super) before: Vec<Arc>,
    pub(super) behind: Vec<Arc>,
    /// True if the task's cut must not change.
    pub(super) fixed: bool,
}

/// A part of a task at the other end of an arc, with its end, or the time from its start to the makespan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) arc: Arc,
    pub(super) device: usize,
    pub(super) part: u64,
    pub(super) time: Micros,
}

impl Links {
    /// Partitions a task's arcs by whether they stay within a range of positions.
    pub(super) fn load(&mut self, model: &Model, schedule: &Schedule<Model>, task: usize, places: Range<usize>) {
        let sort = |arcs: &[Arc], inside: &mut Vec<Arc>, outside: &mut Vec<Arc>| {
            inside.clear();
            outside.clear();
            for &arc in arcs {
                let place = schedule.place[arc.task as usize];
                if place == ABSENT {
                    continue;
                }
                let place = place as usize;
                if places.contains(&place) {
                    inside.push(Arc { task: (place - places.start) as u32, hop: arc.hop });
                } else {
                    outside.push(arc);
                }
            }
        };
        sort(model.graph.preds(task), &mut self.from, &mut self.before);
        sort(model.graph.succs(task), &mut self.to, &mut self.behind);
        self.fixed = model.graph.colocated[task];
    }
}

impl Window {
    /// Lists the parts that a task reads, and the parts that read it.
    pub(super) fn gather(
        &self,
        schedule: &Schedule<Model>,
        local: usize,
        sources: &mut Vec<Peer>,
        readers: &mut Vec<Peer>,
    ) {
        let (links, choice) = (&self.links[local], &schedule.choice);
        sources.clear();
        readers.clear();
        self.peers(&links.from, &self.now.cuts, &self.now.end, sources);
        self.peers(&links.before, &choice.places, &schedule.end, sources);
        self.peers(&links.to, &self.now.cuts, &self.now.tail, readers);
        self.peers(&links.behind, &choice.places, &schedule.tail, readers);
    }

    fn peers(&self, arcs: &[Arc], cuts: &[u64], times: &[Micros], peers: &mut Vec<Peer>) {
        for &arc in arcs {
            let row = arc.task as usize * self.devices;
            for device in 0..self.devices {
                let part = cuts[row + device];
                if part != 0 {
                    peers.push(Peer { arc, device, part, time: times[row + device] });
                }
            }
        }
    }
}
