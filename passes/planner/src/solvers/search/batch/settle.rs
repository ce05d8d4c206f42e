//! Putting a task back into a window of a queue: every cut on a menu at every place that it can go to, each exactly.

use super::cut::{Menu, suggest};
use super::links::Peer;
use super::model::{Model, later};
use super::window::Window;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::search::schedule::Schedule;

/// Criteria beside the makespan when a task is put back, in shares of it: what its parts are worth, so that tasks with
/// slack leave time and memory to others, and the longest path through it, so that slack is left. Memory makes the first
/// count more.
const WORTH: f64 = 0.1;
const WORTH_IF_TIGHT: f64 = 0.2;
const PATH: f64 = 0.02;

/// Tables for putting a task back; kept so that nothing is allocated anew.
#[derive(Debug, Default)]
pub(super) struct Scales {
    sources: Vec<Peer>,
    readers: Vec<Peer>,
    /// By part on the menu.
    routes: Vec<Route>,
    paths: Vec<Micros>,
    menu: Menu,
    fresh: Vec<u64>,
}

/// A part that a task could have, wherever it stands in the order.
#[derive(Clone, Copy, Debug)]
struct Route {
    device: usize,
    /// When all that it reads is there, its own time, and what its readers need until the end of the plan.
    ready: Micros,
    time: Micros,
    after: Micros,
    worth: Micros,
}

impl Scales {
    /// Takes a task out and puts it to where the makespan, what its parts are worth and the longest path through it are least
    /// together. Of equals any.
    pub(super) fn settle(
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
        let mut own = std::mem::take(&mut self.menu);
        let menu = match &model.menu {
            Some(menu) if !window.links[local].fixed => menu,
            _ => {
                own.clear();
                own.add(window.cut(local));
                if !window.links[local].fixed {
                    suggest(&mut own, window, schedule, local, random);
                }
                &own
            }
        };
        self.find_routes(window, model, schedule, local, menu);
        let chosen = self.lightest(window, local, menu, random);
        self.fresh.clear();
        match chosen {
            Some((_, number)) => {
                let parts = menu.cuts[number * devices..(number + 1) * devices].iter();
                self.fresh.extend(parts.map(|part| menu.parts[usize::from(*part)].1));
            }
            None => self.fresh.extend_from_slice(window.cut(local)),
        }
        let place = chosen.map_or(place_before, |(place, _)| place);
        window.put(model, schedule, local, place, &self.fresh);
        self.menu = own;
    }

    /// Lists what each part on the menu would wait for, and what would wait for it.
    fn find_routes(&mut self, window: &Window, model: &Model, schedule: &Schedule<Model>, local: usize, menu: &Menu) {
        window.gather(schedule, local, &mut self.sources, &mut self.readers);
        self.routes.clear();
        for &(device, part) in &menu.parts {
            let mut route = Route { device, ready: 0.0, time: f64::INFINITY, after: 0.0, worth: 0.0 };
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

    /// The place and the cut of least weight; none where all are infinite.
    fn lightest(&mut self, window: &Window, local: usize, menu: &Menu, random: &mut Random) -> Option<(usize, usize)> {
        let devices = window.devices;
        let (first, last) = window.reach(local);
        let floor = window.now.value;
        let (mut chosen, mut least) = (None, f64::MAX);
        self.paths.clear();
        self.paths.resize(menu.parts.len(), 0.0);
        for place in first..=last {
            let free = &window.now.free[place * devices..(place + 1) * devices];
            let rear = &window.now.rear[place * devices..(place + 1) * devices];
            for ((path, route), (_, part)) in self.paths.iter_mut().zip(&self.routes).zip(&menu.parts) {
                let (from, to) = (later(route.ready, free[route.device]), later(route.after, rear[route.device]));
                *path = if *part == 0 { 0.0 } else { from + route.time + to };
            }
            for (number, parts) in menu.cuts.chunks_exact(devices).enumerate() {
                let mut longest = 0.0;
                let mut worth = 0.0;
                for part in parts {
                    longest = later(longest, self.paths[usize::from(*part)]);
                    worth += self.routes[usize::from(*part)].worth;
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
