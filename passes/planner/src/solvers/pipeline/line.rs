//! An order of the tasks, laid out so that the cost of a block is maintained while it grows.

use super::model::Model;
use crate::model::units::{Bytes, BytesPerMicro, Micros};

/// Positions are counted from zero; a block `from..to` consists of consecutive tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) work: Vec<Micros>,
    /// By position: total transfer time of its results.
    made: Vec<Micros>,
    /// By position: first index in `touched`.
    starts: Vec<u32>,
    touched: Vec<ReadTensor>,
    /// By position: first index in `kept`.
    made_starts: Vec<u32>,
    kept: Vec<ProducedTensor>,
    memory: Option<MemoryTable>,
}

/// A tensor that a position reads.
#[derive(Clone, Copy, Debug)]
struct ReadTensor {
    /// Previous position that produces or reads it: if that is outside the block, it enters here.
    previous: u32,
    /// Position of its producer if this is its last reader, else `NEVER`.
    closes: u32,
    time: Micros,
}

/// A tensor that a position produces, with its last reader.
#[derive(Clone, Copy, Debug)]
struct ProducedTensor {
    last: u32,
    time: Micros,
}

/// Data for the overflow.
#[derive(Clone, Debug)]
struct MemoryTable {
    capacity: Bytes,
    bandwidth: BytesPerMicro,
    weight: Vec<Bytes>,
    scratch: Vec<Bytes>,
    made: Vec<Bytes>,
    /// Parallel to `touched`: bytes, and position of the producer.
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

    /// Lays out an order, reusing buffers.
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
        self.memory = model.memory.as_ref().map(|memory| MemoryTable {
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
            let mut made = (Micros::ZERO, Bytes::ZERO);
            for &index in &model.makes[task] {
                let tensor = &model.tensors[index as usize];
                previous[index as usize] = position as u32;
                self.kept.push(ProducedTensor { last: last[index as usize], time: tensor.time });
                made = (made.0 + tensor.time, made.1 + tensor.bytes);
            }
            self.made.push(made.0);
            for &index in &model.reads[task] {
                let tensor = &model.tensors[index as usize];
                let made_at = position_of(tensor.producer);
                let closes = if last[index as usize] == position as u32 { made_at } else { NEVER };
                let touch = ReadTensor { previous: previous[index as usize], closes, time: tensor.time };
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

    /// Returns an empty block that begins here.
    pub(super) fn block(&self, from: usize) -> GrowingBlock<'_> {
        GrowingBlock {
            line: self,
            from,
            to: from,
            work: Micros::ZERO,
            entering: Micros::ZERO,
            leaving: Micros::ZERO,
            room: LiveBytes::default(),
        }
    }

    /// Returns the smallest position `p >= least` such that for every `q` in `p..to` the tensors that leave `q..to`
    /// take no longer than its work times a factor.
    pub(super) fn dominated_before(&self, to: usize, least: usize, factor: f64) -> usize {
        let (mut work, mut leaving) = (Micros::ZERO, Micros::ZERO);
        let mut from = to;
        while from > least {
            let position = from - 1;
            work += self.work[position];
            let kept = &self.kept[self.made_starts[position] as usize..self.made_starts[from] as usize];
            leaving += kept.iter().filter(|kept| kept.last as usize >= to).map(|kept| kept.time).sum::<Micros>();
            if leaving > work * factor {
                break;
            }
            from = position;
        }
        from
    }
}

/// A block that grows to the right.
pub(super) struct GrowingBlock<'a> {
    line: &'a Line,
    from: usize,
    to: usize,
    pub(super) work: Micros,
    /// Transfer time of tensors produced before and read inside: monotone in growth.
    pub(super) entering: Micros,
    /// Transfer time of tensors produced inside and read behind: not monotone.
    pub(super) leaving: Micros,
    room: LiveBytes,
}

/// Live bytes of a block at each step. They never decrease with growth: see [`GrowingBlock::hold`].
#[derive(Default)]
struct LiveBytes {
    weight: Bytes,
    /// By step.
    live: Vec<Bytes>,
    peak: Bytes,
    /// Produced inside, and not read completely yet.
    open: Bytes,
}

impl GrowingBlock<'_> {
    /// Adds the next position, which must exist.
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

    /// Updates live bytes. A tensor from before is live from the start until its last reader; one produced inside from
    /// its producer until its last reader, or until the end if that is behind. So a longer block holds at each step at
    /// least what the shorter one did.
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
                held.live[since - self.from..].iter_mut().for_each(|live| *live += *bytes);
                let highest = held.live[since - self.from..].iter().copied().fold(Bytes::ZERO, Bytes::max);
                held.peak = held.peak.max(highest);
            } else if touch.closes != NEVER {
                held.open -= *bytes;
            }
        }
        held.peak = held.peak.max(held.live.last().copied().unwrap_or_default());
    }

    /// Overflow by eq. (2).
    pub(super) fn overflow(&self) -> Micros {
        let Some(room) = &self.line.memory else { return Micros::ZERO };
        (self.room.weight + self.room.peak - room.capacity).max(Bytes::ZERO) / room.bandwidth
    }
}
