//! Reinsertion of a task into a window of a queue: evaluates every candidate cut at every feasible position exactly.

use super::cut::{Candidates, suggest};
use super::links::Peer;
use super::model::{Model, later};
use super::window::Window;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::search::schedule::Schedule;

/// Secondary criteria of a reinsertion, relative to the makespan: the price of its parts, so that tasks with slack
/// leave time and memory to others, and the longest path through it, so that slack is kept. The first weighs more if
/// memory binds.
const WORTH: f64 = 0.1;
const WORTH_IF_TIGHT: f64 = 0.2;
const PATH: f64 = 0.02;

/// Buffers for reinsertion, reused to avoid allocation.
#[derive(Debug, Default)]
pub(super) struct Reinsertion {
    sources: Vec<Peer>,
    readers: Vec<Peer>,
    /// By part of the candidates.
    routes: Vec<Route>,
    paths: Vec<Micros>,
    candidates: Candidates,
    fresh: Vec<u64>,
}

/// A candidate part, independent of the position in the order.
#[derive(Clone, Copy, Debug)]
struct Route {
    device: usize,
    /// Arrival of its operands, its duration, and the time from its end to the makespan over its readers.
    ready: Micros,
    time: Micros,
    after: Micros,
    worth: Micros,
}

impl Reinsertion {
    /// Removes a task and reinserts it where the makespan plus the secondary criteria is least. Ties are broken at
    /// random.
    pub(super) fn reinsert(
        &mut self,
        window: &mut Window,
        model: &Model,
        schedule: &Schedule<Model>,
        local: usize,
        random: &mut Random,
    ) {
        let devices = window.devices;
        let place_before = usize::from(window.now.place[local]);
        window.lift(model, schedule, local);
        let mut own = std::mem::take(&mut self.candidates);
        let candidates = match &model.candidates {
            Some(candidates) if !window.links[local].fixed => candidates,
            _ => {
                own.clear();
                own.add(window.cut(local));
                if !window.links[local].fixed {
                    suggest(&mut own, window, schedule, local, random);
                }
                &own
            }
        };
        self.find_routes(window, model, schedule, local, candidates);
        let chosen = self.cheapest(window, local, candidates, random);
        self.fresh.clear();
        match chosen {
            Some((_, number)) => {
                let parts = candidates.cuts[number * devices..(number + 1) * devices].iter();
                self.fresh.extend(parts.map(|part| candidates.parts[*part as usize].1));
            }
            None => self.fresh.extend_from_slice(window.cut(local)),
        }
        let place = chosen.map_or(place_before, |(place, _)| place);
        window.put(model, schedule, local, place, &self.fresh);
        self.candidates = own;
    }

    /// Computes for each candidate part the arrival of its operands and the tails of its readers.
    fn find_routes(
        &mut self,
        window: &Window,
        model: &Model,
        schedule: &Schedule<Model>,
        local: usize,
        candidates: &Candidates,
    ) {
        window.gather(schedule, local, &mut self.sources, &mut self.readers);
        self.routes.clear();
        for &(device, part) in &candidates.parts {
            let mut route =
                Route { device, ready: Micros::ZERO, time: Micros::INFINITY, after: Micros::ZERO, worth: Micros::ZERO };
            let time = model.time(window.tasks[local] as usize, device, part.count_ones());
            if time.is_finite() && window.fits(model, local, device, part) {
                route.time = time;
                let share = if model.tight { WORTH_IF_TIGHT } else { WORTH };
                route.worth = share * model.worth(window.tasks[local] as usize, device, part);
                for peer in &self.sources {
                    let shared = peer.part & part;
                    if shared != 0 {
                        let hop = model.hop(peer.arc, peer.device, device, shared.count_ones());
                        route.ready = later(route.ready, peer.time + hop);
                    }
                }
                for peer in &self.readers {
                    let shared = peer.part & part;
                    if shared != 0 {
                        let hop = model.hop(peer.arc, device, peer.device, shared.count_ones());
                        route.after = later(route.after, peer.time + hop);
                    }
                }
            }
            self.routes.push(route);
        }
    }

    /// Returns the position and the cut of least weight; `None` if all are infinite.
    fn cheapest(
        &mut self,
        window: &Window,
        local: usize,
        candidates: &Candidates,
        random: &mut Random,
    ) -> Option<(usize, usize)> {
        let devices = window.devices;
        let (first, last) = window.reach(local);
        let floor = window.now.value;
        let (mut chosen, mut least) = (None, Micros(f64::MAX));
        self.paths.clear();
        self.paths.resize(candidates.parts.len(), Micros::ZERO);
        for place in first..=last {
            let free = &window.now.free[place * devices..(place + 1) * devices];
            let rear = &window.now.rear[place * devices..(place + 1) * devices];
            for ((path, route), (_, part)) in self.paths.iter_mut().zip(&self.routes).zip(&candidates.parts) {
                let (from, to) = (later(route.ready, free[route.device]), later(route.after, rear[route.device]));
                *path = if *part == 0 { Micros::ZERO } else { from + route.time + to };
            }
            for (number, parts) in candidates.cuts.chunks_exact(devices).enumerate() {
                let mut longest = Micros::ZERO;
                let mut worth = Micros::ZERO;
                for part in parts {
                    longest = later(longest, self.paths[*part as usize]);
                    worth += self.routes[*part as usize].worth;
                }
                let weight = later(longest, floor) + worth + PATH * longest;
                if weight < least || weight == least && random.next_u64() & 1 == 0 {
                    (chosen, least) = (Some((place, number)), weight);
                }
            }
        }
        chosen
    }
}
