//! Tasks that stay together: a few that follow each other, whose inputs are shared out among devices in one way.

use std::collections::BTreeMap;

use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros};
use crate::solvers::baseline::batch::split::{Piece, cheapest};
use crate::solvers::cuts::stretches;

/// A chunk takes no more than this share of the largest memory: it has to find a place when little is left.
const LARGEST: f64 = 1.0 / 16.0;

pub(super) struct Chunk {
    /// In topological order.
    pub(super) tasks: Vec<usize>,
    /// By device: each batch size that all tasks take there, with their time and their bytes.
    ways: Vec<Vec<(u32, Micros, Bytes)>>,
    /// Chunks with the same number are the same but for their names.
    kind: usize,
}

/// The chunks of an instance, in order: its stretches between places where it is one task wide, cut again where that is
/// too much for a device, and where tasks may run on other devices.
pub(super) fn chunks(instance: &Instance, bytes: impl Fn(usize, u32) -> Bytes) -> Vec<Chunk> {
    let capacity = |device: usize| Some(instance.capacity_bytes(device)).filter(|bytes| bytes.is_finite());
    let largest = (0..instance.devices()).filter_map(capacity).fold(0.0, f64::max) * LARGEST;
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for stretch in stretches(instance) {
        let mut held = f64::INFINITY;
        let own = stretch.places.start + usize::from(stretch.entered)..stretch.places.end;
        for &task in &instance.order()[own] {
            let weight = instance.weight_bytes(task);
            match lists.last_mut() {
                Some(list) if held + weight <= largest && instance.allowed(list[0]) == instance.allowed(task) => {
                    list.push(task);
                    held += weight;
                }
                _ => {
                    lists.push(vec![task]);
                    held = weight;
                }
            }
        }
    }
    let mut kinds: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let chunk = |tasks: Vec<usize>| {
        let way = |device: usize, size: u32| {
            let times: Option<Vec<Micros>> = tasks.iter().map(|task| instance.time_at(*task, device, size)).collect();
            let held = tasks.iter().map(|task| bytes(*task, size)).sum();
            Some((size, times?.into_iter().sum(), held))
        };
        let on = |device: usize| -> Vec<(u32, Micros, Bytes)> {
            instance.batch_sizes(device).iter().filter_map(|size| way(device, *size)).collect()
        };
        let ways: Vec<Vec<(u32, Micros, Bytes)>> = (0..instance.devices()).map(on).collect();
        let figures = |(device, ways): (usize, &Vec<(u32, Micros, Bytes)>)| -> Vec<u64> {
            let way = |way: &(u32, Micros, Bytes)| [device as u64, u64::from(way.0), way.1.to_bits(), way.2.to_bits()];
            ways.iter().flat_map(way).collect()
        };
        let key = ways.iter().enumerate().flat_map(figures).collect();
        let count = kinds.len();
        let kind = *kinds.entry(key).or_insert(count);
        Chunk { tasks, ways, kind }
    };
    lists.into_iter().map(chunk).collect()
}

impl Chunk {
    /// What its tasks take one after the other; none where the device does not take such a batch.
    pub(super) fn time(&self, device: usize, size: u32) -> Option<Micros> {
        self.ways[device].iter().find(|way| way.0 == size).map(|way| way.1)
    }

    /// What they hold.
    pub(super) fn bytes(&self, device: usize, size: u32) -> Option<Bytes> {
        self.ways[device].iter().find(|way| way.0 == size).map(|way| way.2)
    }
}

/// What a cut of a chunk is judged by, beside its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// The mean time of inputs: some may be slow here, and others elsewhere.
    Mean,
    /// The time of the slowest batch: inputs that meet again wait for it.
    Slowest,
}

/// Into which batches each kind of chunk is cut at some price of memory, each kind looked at once.
pub(super) struct Shapes<'a> {
    instance: &'a Instance,
    /// By device, for a byte.
    byte: &'a [f64],
    factor: f64,
    pace: Pace,
    /// By kind.
    known: BTreeMap<usize, Option<Vec<(usize, u32)>>>,
}

impl<'a> Shapes<'a> {
    pub(super) fn new(instance: &'a Instance, byte: &'a [f64], factor: f64, pace: Pace) -> Self {
        Self { instance, byte, factor, pace, known: BTreeMap::new() }
    }

    /// Devices and sizes, largest first, for which the time of inputs and what their bytes are worth are least together.
    /// Any device of the same class will do as well. None where sizes do not add up.
    pub(super) fn of(&mut self, chunk: &Chunk) -> Option<&[(usize, u32)]> {
        let inputs = self.instance.inputs();
        let shape = self.known.entry(chunk.kind).or_insert_with(|| {
            // Its end is its time, and its key what its memory is worth.
            let piece = |device: usize, (size, time, bytes): (u32, Micros, Bytes)| Piece {
                device,
                size,
                end: time,
                key: (self.factor * self.byte[device] * bytes, time * f64::from(size) / f64::from(inputs)),
            };
            let on = |(device, ways): (usize, &Vec<(u32, Micros, Bytes)>)| -> Vec<Piece> {
                ways.iter().map(|way| piece(device, *way)).collect()
            };
            let pieces: Vec<Vec<Piece>> = chunk.ways.iter().enumerate().map(on).collect();
            let cut = match self.pace {
                Pace::Mean => cheapest(&pieces, inputs, |_| true, |piece| (piece.key.0 + piece.key.1, 0.0)),
                Pace::Slowest => least_with_slowest(&pieces, inputs),
            };
            let mut shape: Vec<(usize, u32)> = cut?.iter().map(|piece| (piece.device, piece.size)).collect();
            shape.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
            Some(shape)
        });
        shape.as_deref()
    }
}

/// The cut for which the time of its slowest piece and what all its memory is worth are least together.
fn least_with_slowest(pieces: &[Vec<Piece>], inputs: u32) -> Option<Vec<Piece>> {
    let mut times: Vec<Micros> = pieces.iter().flatten().map(|piece| piece.end).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let within = |time: Micros| {
        let cut = cheapest(pieces, inputs, |piece| piece.end <= time, |piece| piece.key)?;
        let worth: f64 = cut.iter().map(|piece| piece.key.0).sum();
        Some((time + worth, cut))
    };
    let cuts = times.into_iter().filter_map(within);
    cuts.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, cut)| cut)
}
