//! An order of the tasks, laid out so that what a stretch of it costs is found while it grows.

use super::model::Model;
use crate::model::units::{Bytes, Micros};

/// Positions are counted from zero; a stretch `from..to` is a block of consecutive tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) work: Vec<Micros>,
    /// What each position's results take to leave it.
    made: Vec<Micros>,
    /// For each position a range of `touched`.
    starts: Vec<u32>,
    touched: Vec<Touch>,
    /// For each position a range of `kept`: its tensors' last readers.
    made_starts: Vec<u32>,
    kept: Vec<Kept>,
    memory: Option<Room>,
}

/// A tensor that a position reads.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Where it was made or read last before: outside the stretch, it comes in here.
    previous: u32,
    /// Where it was made, where this is its last reader; else beyond the end, as if never.
    closes: u32,
    time: Micros,
}

/// A tensor that a position makes.
#[derive(Clone, Copy, Debug)]
struct Kept {
    last: u32,
    time: Micros,
}

/// What overflow needs to know.
#[derive(Clone, Debug)]
struct Room {
    capacity: Bytes,
    bandwidth: f64,
    weight: Vec<Bytes>,
    scratch: Vec<Bytes>,
    made: Vec<Bytes>,
    /// Beside `touched`: how large, and where it was made.
    touched: Vec<(Bytes, u32)>,
}

const NEVER: u32 = u32::MAX;

impl Line {
    /// Lays out an order of all the model's tasks.
    pub(super) fn new(model: &Model, order: &[u32]) -> Self {
        let mut line = Self::default();
        line.lay(model, order);
        line
    }

    /// The same in room that is there already.
    pub(super) fn lay(&mut self, model: &Model, order: &[u32]) {
        let tasks = order.len();
        let (mut previous, mut place) = (vec![NEVER; model.tensors.len()], vec![0_u32; tasks]);
        order.iter().enumerate().for_each(|(position, task)| place[*task as usize] = position as u32);
        let position_of = |task: u32| place[task as usize];
        let last: Vec<u32> = model
            .tensors
            .iter()
            .map(|tensor| tensor.readers.iter().map(|reader| position_of(*reader)).max().unwrap_or(0))
            .collect();
        self.work.clear();
        self.made.clear();
        self.touched.clear();
        self.kept.clear();
        (self.starts, self.made_starts) = (vec![0], vec![0]);
        self.memory = model.memory.as_ref().map(|memory| Room {
            capacity: memory.capacity,
            bandwidth: memory.bandwidth,
            weight: order.iter().map(|task| memory.weight[*task as usize]).collect(),
            scratch: order.iter().map(|task| memory.scratch[*task as usize]).collect(),
            made: Vec::new(),
            touched: Vec::new(),
        });
        for (position, &task) in order.iter().enumerate() {
            let task = task as usize;
            self.work.push(model.work[task]);
            let mut made = (0.0, 0.0);
            for &index in &model.makes[task] {
                let tensor = &model.tensors[index as usize];
                previous[index as usize] = position as u32;
                self.kept.push(Kept { last: last[index as usize], time: tensor.time });
                made = (made.0 + tensor.time, made.1 + tensor.bytes);
            }
            self.made.push(made.0);
            for &index in &model.reads[task] {
                let tensor = &model.tensors[index as usize];
                let made_at = position_of(tensor.producer);
                let closes = if last[index as usize] == position as u32 { made_at } else { NEVER };
                let touch = Touch { previous: previous[index as usize], closes, time: tensor.time };
                previous[index as usize] = position as u32;
                self.touched.push(touch);
                self.memory.iter_mut().for_each(|room| room.touched.push((tensor.bytes, made_at)));
            }
            self.memory.iter_mut().for_each(|room| room.made.push(made.1));
            self.starts.push(self.touched.len() as u32);
            self.made_starts.push(self.kept.len() as u32);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.work.len()
    }

    /// A stretch that begins here, and is empty yet.
    pub(super) fn stretch(&self, from: usize) -> Stretch<'_> {
        Stretch { line: self, from, to: from, work: 0.0, entering: 0.0, leaving: 0.0, room: Held::default() }
    }

    /// How far back of a position, but not before `least`, no `q` has more leaving `q..to` than it has of work, times a
    /// factor.
    pub(super) fn calm_before(&self, to: usize, least: usize, factor: f64) -> usize {
        let (mut work, mut leaving) = (0.0, 0.0);
        let mut from = to;
        while from > least {
            let position = from - 1;
            work += self.work[position];
            let kept = &self.kept[self.made_starts[position] as usize..self.made_starts[from] as usize];
            leaving += kept.iter().filter(|kept| kept.last as usize >= to).map(|kept| kept.time).sum::<f64>();
            if leaving > work * factor {
                break;
            }
            from = position;
        }
        from
    }
}

/// A block that grows to the right.
pub(super) struct Stretch<'a> {
    line: &'a Line,
    from: usize,
    to: usize,
    pub(super) work: Micros,
    /// Made before it, read in it: never less when it grows.
    pub(super) entering: Micros,
    /// Made in it, read behind it: more or less when it grows.
    pub(super) leaving: Micros,
    room: Held,
}

/// What a stretch holds along its run. What grows never makes it less: see [`Stretch::hold`].
#[derive(Default)]
struct Held {
    weight: Bytes,
    /// At each step.
    live: Vec<Bytes>,
    peak: Bytes,
    /// Made inside, and still to be read.
    open: Bytes,
}

impl Stretch<'_> {
    /// Takes the next position in; there must be one.
    pub(super) fn grow(&mut self) {
        let (line, position) = (self.line, self.to);
        let range = line.starts[position] as usize..line.starts[position + 1] as usize;
        self.work += line.work[position];
        self.leaving += line.made[position];
        let from = self.from as u32;
        for touch in &line.touched[range] {
            if touch.previous < from {
                self.entering += touch.time;
            }
            if touch.closes >= from && touch.closes != NEVER {
                self.leaving -= touch.time;
            }
        }
        if line.memory.is_some() {
            self.hold();
        }
        self.to += 1;
    }

    /// A tensor from before is there from the start until its last reader; one made inside from then until its last
    /// reader, or until the end where that is behind. So a longer stretch holds at each step what the shorter one did.
    fn hold(&mut self) {
        let (line, position, held) = (self.line, self.to, &mut self.room);
        let Some(room) = &line.memory else { return };
        held.weight += room.weight[position];
        held.open += room.made[position];
        held.live.push(held.open + room.scratch[position]);
        let touches = line.starts[position] as usize..line.starts[position + 1] as usize;
        for (touch, (bytes, made_at)) in line.touched[touches.clone()].iter().zip(&room.touched[touches]) {
            if (*made_at as usize) < self.from {
                let since = (touch.previous as usize + 1).max(self.from);
                held.live[since - self.from..].iter_mut().for_each(|live| *live += bytes);
                let highest = held.live[since - self.from..].iter().copied().fold(0.0, f64::max);
                held.peak = held.peak.max(highest);
            } else if touch.closes != NEVER {
                held.open -= bytes;
            }
        }
        held.peak = held.peak.max(held.live.last().copied().unwrap_or(0.0));
    }

    /// Eq. (2).
    pub(super) fn overflow(&self) -> Micros {
        let Some(room) = &self.line.memory else { return 0.0 };
        (self.room.weight + self.room.peak - room.capacity).max(0.0) / room.bandwidth
    }
}
