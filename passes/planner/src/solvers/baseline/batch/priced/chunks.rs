//! Chunks: consecutive tasks whose inputs are split over devices in the same way.

use std::collections::BTreeMap;

use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros, MicrosPerByte};
use crate::solvers::baseline::batch::split::{Piece, cheapest};
use crate::solvers::cuts::segments;

/// Maximum size of a chunk as a share of the largest memory: a chunk must still fit when little memory is left.
const LARGEST: f64 = 1.0 / 16.0;

pub(super) struct Chunk {
    /// In topological order.
    pub(super) tasks: Vec<usize>,
    /// By device: each batch size that all tasks support there, with their total time and bytes.
    ways: Vec<Vec<(u32, Micros, Bytes)>>,
    /// Equivalence class: chunks of one kind have identical times and bytes.
    kind: usize,
}

/// Returns the chunks of an instance in topological order: segments between single-task cuts, split further where they
/// exceed the size limit or where the allowed devices change.
pub(super) fn chunks(instance: &Instance, bytes: impl Fn(usize, u32) -> Bytes) -> Vec<Chunk> {
    let capacity = |device: usize| Some(instance.capacity_bytes(device)).filter(|bytes| bytes.is_finite());
    let largest = (0..instance.devices()).filter_map(capacity).fold(Bytes::ZERO, Bytes::max) * LARGEST;
    let mut lists: Vec<Vec<usize>> = Vec::new();
    for segment in segments(instance) {
        let mut held = Bytes::INFINITY;
        let own = segment.places.start + usize::from(segment.entered)..segment.places.end;
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
            let way =
                |way: &(u32, Micros, Bytes)| [device as u64, u64::from(way.0), way.1.0.to_bits(), way.2.0.to_bits()];
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
    /// Returns the total time of its tasks; `None` if a task does not support this batch size on the device.
    pub(super) fn time(&self, device: usize, size: u32) -> Option<Micros> {
        self.ways[device].iter().find(|way| way.0 == size).map(|way| way.1)
    }

    /// Returns the bytes that its tasks hold on the device.
    pub(super) fn bytes(&self, device: usize, size: u32) -> Option<Bytes> {
        self.ways[device].iter().find(|way| way.0 == size).map(|way| way.2)
    }
}

/// Time criterion for a split of a chunk, beside its memory cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeCriterion {
    /// Mean time per input: slow inputs here may be fast elsewhere.
    Mean,
    /// Time of the slowest batch: inputs that are joined later wait for it.
    Slowest,
}

/// Splits of each kind of chunk at a given price of memory, computed once per kind.
pub(super) struct Shapes<'a> {
    instance: &'a Instance,
    /// Price of a byte, by device.
    byte: &'a [MicrosPerByte],
    factor: f64,
    criterion: TimeCriterion,
    /// By kind.
    known: BTreeMap<usize, Option<Vec<(usize, u32)>>>,
}

impl<'a> Shapes<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        byte: &'a [MicrosPerByte],
        factor: f64,
        criterion: TimeCriterion,
    ) -> Self {
        Self { instance, byte, factor, criterion, known: BTreeMap::new() }
    }

    /// Returns devices and batch sizes, largest first, that minimize time plus memory cost. Devices of the same class
    /// are interchangeable. `None` if no sizes add up to the number of inputs.
    pub(super) fn of(&mut self, chunk: &Chunk) -> Option<&[(usize, u32)]> {
        let inputs = self.instance.inputs();
        let shape = self.known.entry(chunk.kind).or_insert_with(|| {
            // `end` holds the time, `key` the memory cost and the weighted time.
            let piece = |device: usize, (size, time, bytes): (u32, Micros, Bytes)| Piece {
                device,
                size,
                end: time,
                key: (bytes * (self.factor * self.byte[device]), time * f64::from(size) / f64::from(inputs)),
            };
            let on = |(device, ways): (usize, &Vec<(u32, Micros, Bytes)>)| -> Vec<Piece> {
                ways.iter().map(|way| piece(device, *way)).collect()
            };
            let pieces: Vec<Vec<Piece>> = chunk.ways.iter().enumerate().map(on).collect();
            let cut = match self.criterion {
                TimeCriterion::Mean => {
                    cheapest(&pieces, inputs, |_| true, |piece| (piece.key.0 + piece.key.1, Micros::ZERO))
                }
                TimeCriterion::Slowest => least_with_slowest(&pieces, inputs),
            };
            let mut shape: Vec<(usize, u32)> = cut?.iter().map(|piece| (piece.device, piece.size)).collect();
            shape.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
            Some(shape)
        });
        shape.as_deref()
    }
}

/// Returns the split that minimizes the time of its slowest batch plus its memory cost.
fn least_with_slowest(pieces: &[Vec<Piece>], inputs: u32) -> Option<Vec<Piece>> {
    let mut times: Vec<Micros> = pieces.iter().flatten().map(|piece| piece.end).collect();
    times.sort_by(Micros::total_cmp);
    times.dedup();
    let within = |time: Micros| {
        let cut = cheapest(pieces, inputs, |piece| piece.end <= time, |piece| piece.key)?;
        let worth: Micros = cut.iter().map(|piece| piece.key.0).sum();
        Some((time + worth, cut))
    };
    let cuts = times.into_iter().filter_map(within);
    cuts.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, cut)| cut)
}
