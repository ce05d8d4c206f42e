//! Pieces of a plan in a line on each device, and when each of them runs.

use crate::launches::{Launches, Role};
use divi_planner::units::Micros;

/// No piece: what a port is in.
const NONE: usize = usize::MAX;

/// Launches that run one after the other as one: a stage in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) device: usize,
    /// Empty where it has become part of another.
    pub(crate) launches: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) pieces: Vec<Piece>,
    /// The pieces of each device, in the order in which it runs them.
    pub(crate) on_device: Vec<Vec<usize>>,
    of_launch: Vec<usize>,
}

/// When pieces and launches run.
pub(crate) struct Times {
    /// By launch.
    pub(crate) start: Vec<Micros>,
    /// By piece.
    pub(crate) begin: Vec<Micros>,
    pub(crate) end: Vec<Micros>,
    /// Pieces, each after those that it waits for.
    pub(crate) order: Vec<usize>,
    pub(crate) makespan: Micros,
}

/// Change that makes a piece part of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) piece: usize,
    pub(crate) into: usize,
    /// True if its launches come before the other's.
    pub(crate) in_front: bool,
}

/// State that a change has replaced.
pub(crate) struct Before {
    change: Change,
    /// The device that the piece was on, and where in its line.
    device: usize,
    place: usize,
    count: usize,
}

impl Line {
    /// Pieces as they are given, those of a device in the order in which it is to run them.
    pub(crate) fn new(launches: &Launches, pieces: Vec<Piece>) -> Self {
        let mut on_device = vec![Vec::new(); launches.instance.devices()];
        let mut of_launch = vec![NONE; launches.all.len()];
        for (index, piece) in pieces.iter().enumerate() {
            on_device[piece.device].push(index);
            piece.launches.iter().for_each(|launch| of_launch[*launch] = index);
        }
        Self { pieces, on_device, of_launch }
    }

    /// The piece that a launch is in; none for ports.
    pub(crate) fn piece_of(&self, launch: usize) -> Option<usize> {
        Some(self.of_launch[launch]).filter(|piece| *piece != NONE)
    }

    /// Where a launch runs.
    pub(crate) fn device_of(&self, launches: &Launches, launch: usize) -> usize {
        self.piece_of(launch).map_or(launches.all[launch].device, |piece| self.pieces[piece].device)
    }

    /// The pieces that are left.
    pub(crate) fn alive(&self) -> impl Iterator<Item = usize> {
        self.on_device.iter().flatten().copied()
    }

    /// The same in the order in which pieces were given.
    pub(crate) fn alive_in_order(&self) -> Vec<usize> {
        let mut alive: Vec<usize> = self.alive().collect();
        alive.sort_unstable();
        alive
    }

    pub(crate) fn apply(&mut self, change: Change) -> Before {
        let Change { piece, into, in_front } = change;
        let Piece { device, launches } = std::mem::take(&mut self.pieces[piece]);
        let place = self.on_device[device].iter().position(|other| *other == piece).expect("a piece is on its device");
        self.on_device[device].remove(place);
        launches.iter().for_each(|launch| self.of_launch[*launch] = into);
        let count = launches.len();
        let at = if in_front { 0 } else { self.pieces[into].launches.len() };
        self.pieces[into].launches.splice(at..at, launches);
        Before { change, device, place, count }
    }

    pub(crate) fn take_back(&mut self, before: &Before) {
        let Before { change: Change { piece, into, in_front }, device, place, count } = *before;
        let other = &mut self.pieces[into].launches;
        let at = if in_front { 0 } else { other.len() - count };
        let launches: Vec<usize> = other.drain(at..at + count).collect();
        launches.iter().for_each(|launch| self.of_launch[*launch] = piece);
        self.on_device[device].insert(place, piece);
        self.pieces[piece] = Piece { device, launches };
    }

    /// When everything runs, as early as it can: a piece once its device is free and all that its launches read has
    /// arrived; what it computes leaves when all of it has run. None where pieces wait for each other in a circle, or for
    /// what cannot come. `as_planned` also waits for the start that the plan gives a piece's first launch.
    pub(crate) fn times(&self, launches: &Launches, as_planned: bool) -> Option<Times> {
        let count = self.pieces.len();
        let planned = |launch: usize| if as_planned { launches.all[launch].planned.max(0.0) } else { 0.0 };
        let mut times = Times {
            start: vec![0.0; launches.all.len()],
            begin: vec![0.0; count],
            end: vec![0.0; count],
            order: Vec::with_capacity(count),
            makespan: 0.0,
        };
        let mut waiting_for = vec![0_usize; count];
        let mut next_on_device = vec![NONE; count];
        for line in &self.on_device {
            for pair in line.windows(2) {
                next_on_device[pair[0]] = pair[1];
                waiting_for[pair[1]] += 1;
            }
        }
        let mut alive = 0;
        for piece in self.alive() {
            alive += 1;
            let own = &self.pieces[piece].launches;
            times.begin[piece] = own.first().map_or(0.0, |first| planned(*first));
            let reads = own.iter().flat_map(|launch| &launches.reads[*launch]);
            waiting_for[piece] += reads.filter(|read| ![piece, NONE].contains(&self.of_launch[read.launch])).count();
        }
        for launch in (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Input) {
            times.start[launch] = planned(launch);
            // A model's inputs are waited for by time alone.
            self.hand_over(launches, launch, times.start[launch], &mut times, |_| {});
        }
        let mut ready: std::collections::VecDeque<usize> =
            self.alive().filter(|piece| waiting_for[*piece] == 0).collect();
        while let Some(piece) = ready.pop_front() {
            times.order.push(piece);
            let Piece { device, launches: own } = &self.pieces[piece];
            let mut now = times.begin[piece];
            for &launch in own {
                times.start[launch] = now;
                now += launches.time(launch, *device);
            }
            if !now.is_finite() {
                return None;
            }
            times.end[piece] = now;
            times.makespan = times.makespan.max(now);
            let next = next_on_device[piece];
            if next != NONE {
                times.begin[next] = times.begin[next].max(now);
                waiting_for[next] -= 1;
                if waiting_for[next] == 0 {
                    ready.push_back(next);
                }
            }
            for &launch in own {
                self.hand_over(launches, launch, now, &mut times, |reader| {
                    waiting_for[reader] -= 1;
                    if waiting_for[reader] == 0 {
                        ready.push_back(reader);
                    }
                });
            }
        }
        if times.order.len() < alive {
            return None;
        }
        self.place_outputs(launches, &mut times, as_planned)?;
        Some(times)
    }

    /// Brings what a launch computes, which is there at a time, to its readers in other pieces, and tells of each.
    fn hand_over(
        &self,
        launches: &Launches,
        launch: usize,
        done: Micros,
        times: &mut Times,
        mut tell: impl FnMut(usize),
    ) {
        let (own, from) = (self.of_launch[launch], self.device_of(launches, launch));
        for handed in &launches.read_by[launch] {
            let reader = self.of_launch[handed.launch];
            if reader != NONE && reader == own {
                continue;
            }
            let to = self.device_of(launches, handed.launch);
            let arrival = done + launches.instance.transfer_of(handed.tensor, from, to, handed.count);
            if reader == NONE {
                times.start[handed.launch] = times.start[handed.launch].max(arrival);
            } else {
                times.begin[reader] = times.begin[reader].max(arrival);
                tell(reader);
            }
        }
    }

    /// From each piece's beginning to the end of the plan, on the longest way.
    pub(crate) fn tails(&self, launches: &Launches, times: &Times) -> Vec<Micros> {
        let mut tails = vec![0.0; self.pieces.len()];
        let mut device_tail = vec![0.0; self.on_device.len()];
        for &piece in times.order.iter().rev() {
            let device = self.pieces[piece].device;
            let behind = self.behind(launches, piece, device, &tails, None);
            tails[piece] = times.end[piece] - times.begin[piece] + f64::max(behind, device_tail[device]);
            device_tail[device] = tails[piece];
        }
        tails
    }

    /// The longest way from a piece's end through what reads it, if it were on a device; but for those in another piece.
    pub(crate) fn behind(
        &self,
        launches: &Launches,
        piece: usize,
        device: usize,
        tails: &[Micros],
        without: Option<usize>,
    ) -> Micros {
        let mut longest: Micros = 0.0;
        for handed in self.pieces[piece].launches.iter().flat_map(|launch| &launches.read_by[*launch]) {
            let reader = self.of_launch[handed.launch];
            if reader != piece && Some(reader) != without {
                let to = self.device_of(launches, handed.launch);
                let tail = tails.get(reader).copied().unwrap_or(0.0);
                longest = longest.max(launches.instance.transfer_of(handed.tensor, device, to, handed.count) + tail);
            }
        }
        longest
    }

    /// When all that a piece reads would be there, if it were on a device; but for what another piece computes.
    pub(crate) fn arrival(
        &self,
        launches: &Launches,
        piece: usize,
        device: usize,
        times: &Times,
        without: Option<usize>,
    ) -> Micros {
        let mut latest: Micros = 0.0;
        for read in self.pieces[piece].launches.iter().flat_map(|launch| &launches.reads[*launch]) {
            let source = self.of_launch[read.launch];
            if source != piece && Some(source) != without {
                let from = self.device_of(launches, read.launch);
                let done = times.end.get(source).copied().unwrap_or(times.start[read.launch]);
                latest = latest.max(done + launches.instance.transfer_of(read.tensor, from, device, read.count));
            }
        }
        latest
    }

    /// Outputs are taken when they have arrived, and the host runs nothing else: they are no piece, but have their moment.
    fn place_outputs(&self, launches: &Launches, times: &mut Times, as_planned: bool) -> Option<()> {
        for launch in (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Output) {
            let arrival = times.start[launch];
            if !arrival.is_finite() {
                return None;
            }
            let wanted = if as_planned { arrival.max(launches.all[launch].planned) } else { arrival };
            let device = launches.all[launch].device;
            let line = &self.on_device[device];
            // The last piece that begins before.
            let running = line.partition_point(|piece| times.begin[*piece] < wanted).checked_sub(1);
            let busy = running.and_then(|place| {
                let end = |task: &usize| times.start[*task] + launches.time(*task, device);
                let mut tasks = self.pieces[line[place]].launches.iter();
                tasks.find(|task| times.start[**task] < wanted && wanted < end(task)).map(end)
            });
            times.start[launch] = busy.unwrap_or(wanted);
            times.makespan = times.makespan.max(times.start[launch]);
        }
        Some(())
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self { device: NONE, launches: Vec::new() }
    }
}
