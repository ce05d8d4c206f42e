//! Memory: devices that hold the weights of a task, and the times before their first and after their last launch.

use super::{Columns, Model, ROUNDING};
use crate::bounds::fill::largest_sum;
use crate::mip::Program;
use crate::model::problem::MemoryModel;
use crate::model::units::Bytes;

impl Model<'_> {
    /// Adds the holders of weights on a class of devices, if they do not fit everywhere.
    pub(super) fn memory(&self, program: &mut Program, columns: &Columns, class: usize, horizon: f64) {
        let instance = self.instance;
        let (device, count) = (self.classes[class][0], self.classes[class].len() as f64);
        let capacity = instance.capacity_bytes(device);
        let inputs = f64::from(instance.inputs());
        let is_static = instance.memory_model() == MemoryModel::Static;
        let values = |task: usize| {
            let of_input = instance.input_bytes(task) + instance.output_bytes(task);
            if is_static { of_input * inputs } else { Bytes::ZERO }
        };
        let here: Vec<usize> =
            (0..instance.tasks()).filter(|task| columns.parts[*task].iter().any(|part| part.class == class)).collect();
        let weights: Vec<Bytes> =
            here.iter().map(|task| instance.weight_bytes(*task)).filter(|bytes| *bytes > Bytes::ZERO).collect();
        let all: Bytes = weights.iter().sum::<Bytes>() + here.iter().map(|task| values(*task)).sum::<Bytes>();
        if all <= capacity {
            return;
        }
        let room = if is_static { capacity } else { largest_sum(weights, capacity) };
        let scale = all.max(Bytes(1.0));
        let mut held = Vec::new();
        // Devices without a launch are idle for the whole makespan.
        let unused = program.column(0.0, count, 0.0);
        let mut load = vec![(columns.makespan, count), (unused, -1.0)];
        let mut ends = [vec![(unused, 1.0)], vec![(unused, 1.0)]];
        for task in here {
            let own = || columns.parts[task].iter().filter(|part| part.class == class);
            load.extend(own().map(|part| (part.column, -self.work(part))));
            let outer = [0, 1].map(|end: usize| {
                let idle = self.idle[end][self.cell(task, class)];
                let column = program.column(0.0, if idle.is_finite() { count } else { 0.0 }, 0.0);
                ends[end].push((column, 1.0));
                load.push((column, if idle.is_finite() { -idle } else { 0.0 }));
                column
            });
            held.extend(own().map(|part| (part.column, values(task) / scale)));
            let weight = instance.weight_bytes(task);
            if weight == Bytes::ZERO {
                continue;
            }
            let holders = program.column(0.0, count, 0.0);
            held.push((holders, weight / scale));
            program.at_least(0.0, own().map(|part| (part.column, -1.0)).chain([(holders, 1.0)]));
            outer.into_iter().for_each(|column| program.at_least(0.0, [(holders, 1.0), (column, -1.0)]));
            // One device runs the task between its head and its tail.
            let left =
                horizon * (1.0 + ROUNDING) - self.head[self.cell(task, class)] - self.tail[self.cell(task, class)];
            let work = own().map(|part| (part.column, -part.time * inputs / f64::from(part.size)));
            program.at_least(0.0, work.chain([(holders, left)]));
        }
        program.at_most(room / scale * count, held);
        ends.into_iter().for_each(|end| program.exactly(count, end));
        program.at_least(0.0, load);
    }
}
