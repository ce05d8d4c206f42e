//! Initial patterns: interleaved chunks of the network, placements of other plans, and copies of everything.

use super::model::Model;
use super::pattern::{Pattern, Rule};
use super::search::groups_in_order;
use crate::bounds::device_classes;
use crate::model::plan::Batch;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Chunk counts are multiples of the number of devices by powers of this.
const STEP: usize = 2;

/// Returns patterns in micro-batches of one size: chunks of the network in turn on all devices or on the fastest ones, for
/// several numbers of chunks, and everything on every device.
pub(super) fn patterns(model: &Model<'_>, size: u32) -> Vec<Pattern> {
    let mut found = Vec::new();
    let groups = model.instance.groups().len();
    let everywhere = |group: usize| -> Vec<u16> {
        let runs = |device: &&usize| model.rate(group, **device, size).is_finite();
        model.allowed(group).iter().filter(runs).map(|device| *device as u16).collect()
    };
    found.push(uniform(model, size, (0..groups).map(everywhere).collect()));
    for devices in fastest(model, size) {
        let mut chunks = devices.len().min(groups);
        loop {
            for reserve in [0.0, 1.0] {
                found.extend(interleaved(model, size, &devices, chunks, reserve));
            }
            if chunks == groups {
                break;
            }
            chunks = (chunks * STEP).min(groups);
        }
    }
    found.retain(|pattern| pattern.holders.iter().all(|holders| !holders.is_empty()));
    found.dedup();
    found
}

/// Returns the pattern that holds weights where launches of a plan are.
pub(super) fn of_launches(model: &Model<'_>, size: u32, launches: &[Batch]) -> Pattern {
    let mut holders: Vec<Vec<u16>> = vec![Vec::new(); model.instance.groups().len()];
    for launch in launches {
        holders[model.instance.group_of(launch.node)].push(launch.device as u16);
    }
    for devices in &mut holders {
        devices.sort_unstable();
        devices.dedup();
    }
    uniform(model, size, holders)
}

fn uniform(model: &Model<'_>, size: u32, holders: Vec<Vec<u16>>) -> Pattern {
    let size_of = |undivided: &bool| if *undivided { model.inputs } else { size };
    let size = model.is_undivided.iter().map(size_of).collect();
    Pattern { size, holders, rule: Rule::Arrival, window: model.inputs }
}

/// Returns sets of devices: all, and without one class of equal devices after the other, the slowest first.
fn fastest(model: &Model<'_>, size: u32) -> Vec<Vec<usize>> {
    let instance = model.instance;
    let class_of = device_classes(instance);
    // Time of an input on all groups that the device can run, relative to the fastest device of each.
    let slowness = |device: usize| {
        let ratio = |group: usize| {
            let rates = model.allowed(group).iter().map(|other| model.rate(group, *other, size));
            let least = rates.fold(Micros::INFINITY, Micros::min);
            let own =
                if model.allowed(group).contains(&device) { model.rate(group, device, size) } else { Micros::INFINITY };
            (own.is_finite() && least > Micros::ZERO).then(|| own / least)
        };
        let ratios: Vec<f64> = (0..instance.groups().len()).filter_map(ratio).collect();
        ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
    };
    let mut devices: Vec<usize> = (0..instance.devices()).collect();
    let slowness: Vec<f64> = devices.iter().map(|device| slowness(*device)).collect();
    let mut sets = vec![devices.clone()];
    loop {
        let slowest = devices.iter().copied().max_by(|a, b| slowness[*a].total_cmp(&slowness[*b]));
        let class = slowest.map(|device| class_of[device]);
        devices.retain(|device| Some(class_of[*device]) != class);
        if devices.is_empty() {
            return sets;
        }
        sets.push(devices.clone());
    }
}

/// Assigns chunks of about equal work in topological order, each to the device that ends first if it runs nothing but
/// its chunks; `None` if they do not fit. `reserve` is the share of operands and results beside the weights that the
/// liveness model reserves.
fn interleaved(model: &Model<'_>, size: u32, devices: &[usize], chunks: usize, reserve: f64) -> Option<Pattern> {
    let instance = model.instance;
    let order = groups_in_order(model);
    let least = |group: usize| {
        let rates = model.allowed(group).iter().map(|device| model.rate(group, *device, size));
        rates.fold(Micros::INFINITY, Micros::min)
    };
    let total: Micros = order.iter().map(|group| least(*group)).sum();
    if total.is_infinite() {
        return None;
    }
    let bytes = |group: usize| -> Bytes {
        let values = |task: &usize| instance.input_bytes(*task) + instance.output_bytes(*task);
        let each: Bytes = instance.groups()[group].iter().map(values).sum();
        model.weights(group)
            + match instance.memory_model() {
                MemoryModel::Static => each * f64::from(model.inputs),
                MemoryModel::Liveness => each * f64::from(size) * reserve,
            }
    };
    let mut left: Vec<Bytes> = (0..instance.devices()).map(|device| instance.capacity_bytes(device)).collect();
    let mut load = vec![Micros::ZERO; instance.devices()];
    let mut used = vec![0_usize; instance.devices()];
    let mut holders: Vec<Vec<u16>> = vec![Vec::new(); order.len()];
    let (mut done, mut begin) = (Micros::ZERO, 0);
    for chunk in 1..=chunks {
        let share = total * (chunk as f64 / chunks as f64) * (1.0 + 1e-9);
        let mut end = begin;
        while end < order.len() && (done + least(order[end]) <= share || chunk == chunks) {
            done += least(order[end]);
            end += 1;
        }
        let mut rest = &order[begin..end];
        begin = end;
        while !rest.is_empty() {
            // The whole chunk if it fits anywhere, else its first groups.
            let place = |part: &[usize]| {
                let fits = |device: &usize| {
                    part.iter().all(|group| model.allowed(*group).contains(device))
                        && part.iter().map(|group| bytes(*group)).sum::<Bytes>() <= left[*device]
                };
                let end = |device: usize| {
                    load[device] + part.iter().map(|group| model.rate(*group, device, size)).sum::<Micros>()
                };
                let open = devices.iter().copied().filter(fits).filter(|device| end(*device).is_finite());
                open.min_by(|a, b| end(*a).total_cmp(&end(*b)).then(used[*a].cmp(&used[*b])))
            };
            let (count, device) = (1..=rest.len()).rev().find_map(|count| Some((count, place(&rest[..count])?)))?;
            for &group in &rest[..count] {
                holders[group] = vec![device as u16];
                left[device] -= bytes(group);
                load[device] += model.rate(group, device, size);
            }
            used[device] = chunk;
            rest = &rest[count..];
        }
    }
    Some(uniform(model, size, holders))
}
