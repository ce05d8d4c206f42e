//! Sequences of pieces (stages under construction) on each device, and their times.

use crate::launches::{Launches, Role};
use divi_planner::units::Micros;

/// Piece index of a port, which is in no piece.
const NONE: usize = usize::MAX;

/// Launches that run in sequence as one: a stage under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) device: usize,
    /// Empty after the piece was merged into another.
    pub(crate) launches: Vec<usize>,
}

/// Pieces of all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) pieces: Vec<Piece>,
    /// Pieces of each device, in execution order.
    pub(crate) on_device: Vec<Vec<usize>>,
    of_launch: Vec<usize>,
}

/// Times of pieces and launches.
pub(crate) struct Times {
    /// Start of each launch.
    pub(crate) start: Vec<Micros>,
    /// Begin and end of each piece.
    pub(crate) begin: Vec<Micros>,
    pub(crate) end: Vec<Micros>,
    /// Pieces in topological order.
    pub(crate) order: Vec<usize>,
    pub(crate) makespan: Micros,
}

/// Merge of a piece into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) piece: usize,
    pub(crate) into: usize,
    /// True if its launches come before those of the other.
    pub(crate) in_front: bool,
}

/// Undo record of a change.
pub(crate) struct Before {
    change: Change,
    /// Former device of the piece, and its position there.
    device: usize,
    place: usize,
    count: usize,
}

impl Line {
    /// Builds a line; the pieces of a device are given in execution order.
    pub(crate) fn new(launches: &Launches, pieces: Vec<Piece>) -> Self {
        let mut on_device = vec![Vec::new(); launches.instance.devices()];
        let mut of_launch = vec![NONE; launches.all.len()];
        for (index, piece) in pieces.iter().enumerate() {
            on_device[piece.device].push(index);
            piece.launches.iter().for_each(|launch| of_launch[*launch] = index);
        }
        Self { pieces, on_device, of_launch }
    }

    /// Returns the piece of a launch; `None` for ports.
    pub(crate) fn piece_of(&self, launch: usize) -> Option<usize> {
        Some(self.of_launch[launch]).filter(|piece| *piece != NONE)
    }

    /// Returns the device of a launch.
    pub(crate) fn device_of(&self, launches: &Launches, launch: usize) -> usize {
        self.piece_of(launch).map_or(launches.all[launch].device, |piece| self.pieces[piece].device)
    }

    /// Returns all pieces that were not merged into others.
    pub(crate) fn alive(&self) -> impl Iterator<Item = usize> {
        self.on_device.iter().flatten().copied()
    }

    /// Returns the same pieces sorted by number.
    pub(crate) fn alive_in_order(&self) -> Vec<usize> {
        let mut alive: Vec<usize> = self.alive().collect();
        alive.sort_unstable();
        alive
    }

    /// Merges a piece into another; returns the undo record.
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

    /// Undoes a change; the changes after it must have been undone before.
    pub(crate) fn take_back(&mut self, before: &Before) {
        let Before { change: Change { piece, into, in_front }, device, place, count } = *before;
        let other = &mut self.pieces[into].launches;
        let at = if in_front { 0 } else { other.len() - count };
        let launches: Vec<usize> = other.drain(at..at + count).collect();
        launches.iter().for_each(|launch| self.of_launch[*launch] = piece);
        self.on_device[device].insert(place, piece);
        self.pieces[piece] = Piece { device, launches };
    }

    /// Computes the earliest times. A piece begins when its device is free and all operands of its launches have arrived; its
    /// results leave when all of it has run. With `as_planned`, it also waits for the planned start of its first launch.
    /// Returns `None` if pieces form a cycle or a link is missing.
    pub(crate) fn times(&self, launches: &Launches, as_planned: bool) -> Option<Times> {
        let count = self.pieces.len();
        let planned =
            |launch: usize| if as_planned { launches.all[launch].planned.max(Micros::ZERO) } else { Micros::ZERO };
        let mut times = Times {
            start: vec![Micros::ZERO; launches.all.len()],
            begin: vec![Micros::ZERO; count],
            end: vec![Micros::ZERO; count],
            order: Vec::with_capacity(count),
            makespan: Micros::ZERO,
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
            times.begin[piece] = own.first().map_or(Micros::ZERO, |first| planned(*first));
            let reads = own.iter().flat_map(|launch| &launches.reads[*launch]);
            waiting_for[piece] += reads.filter(|read| ![piece, NONE].contains(&self.of_launch[read.launch])).count();
        }
        for launch in (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Input) {
            times.start[launch] = planned(launch);
            // Model inputs constrain times only, not the order.
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

    /// Propagates the results of a launch, available at `done`, to the consumers in other pieces; calls `notify` for each.
    fn hand_over(
        &self,
        launches: &Launches,
        launch: usize,
        done: Micros,
        times: &mut Times,
        mut notify: impl FnMut(usize),
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
                notify(reader);
            }
        }
    }

    /// Returns the longest path from each piece's begin to the end of the plan.
    pub(crate) fn tails(&self, launches: &Launches, times: &Times) -> Vec<Micros> {
        let mut tails = vec![Micros::ZERO; self.pieces.len()];
        let mut device_tail = vec![Micros::ZERO; self.on_device.len()];
        for &piece in times.order.iter().rev() {
            let device = self.pieces[piece].device;
            let behind = self.behind(launches, piece, device, &tails, None);
            tails[piece] = times.end[piece] - times.begin[piece] + Micros::max(behind, device_tail[device]);
            device_tail[device] = tails[piece];
        }
        tails
    }

    /// Returns the longest path from the end of a piece through its consumers if it were on `device`, without those in `without`.
    pub(crate) fn behind(
        &self,
        launches: &Launches,
        piece: usize,
        device: usize,
        tails: &[Micros],
        without: Option<usize>,
    ) -> Micros {
        let mut longest = Micros::ZERO;
        for handed in self.pieces[piece].launches.iter().flat_map(|launch| &launches.read_by[*launch]) {
            let reader = self.of_launch[handed.launch];
            if reader != piece && Some(reader) != without {
                let to = self.device_of(launches, handed.launch);
                let tail = tails.get(reader).copied().unwrap_or_default();
                longest = longest.max(launches.instance.transfer_of(handed.tensor, device, to, handed.count) + tail);
            }
        }
        longest
    }

    /// Returns the arrival of the last operand of a piece if it were on `device`, without the results of `without`.
    pub(crate) fn arrival(
        &self,
        launches: &Launches,
        piece: usize,
        device: usize,
        times: &Times,
        without: Option<usize>,
    ) -> Micros {
        let mut latest = Micros::ZERO;
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

    /// Sets the times of model outputs: at arrival, or at the end of the task that is running on their device then.
    fn place_outputs(&self, launches: &Launches, times: &mut Times, as_planned: bool) -> Option<()> {
        for launch in (0..launches.all.len()).filter(|launch| launches.role[*launch] == Role::Output) {
            let arrival = times.start[launch];
            if !arrival.is_finite() {
                return None;
            }
            let wanted = if as_planned { arrival.max(launches.all[launch].planned) } else { arrival };
            let device = launches.all[launch].device;
            let line = &self.on_device[device];
            // The last piece that begins earlier.
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
