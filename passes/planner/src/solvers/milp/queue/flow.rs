//! Transfers between batches.

use super::{Assignment, Flow, Queue};
use crate::mip::{Column, Program};
use crate::model::instance::Instance;
use crate::solvers::milp::rows::conserve;

impl Queue<'_> {
    /// Adds precedence rows: a batch starts when all of its operands have arrived.
    pub(super) fn connect(&mut self, program: &mut Program) {
        let instance = self.instance;
        for (tensor, moved) in instance.tensors().iter().enumerate() {
            for &reader in &moved.consumers {
                let groups = (instance.group_of(moved.producer), instance.group_of(reader));
                if groups.0 == groups.1 {
                    for on in &self.on[groups.0] {
                        let row = self.after(moved.producer, on, reader, on.device);
                        program.at_least(0.0, row);
                    }
                    continue;
                }
                if !self.flows.iter().any(|flow| flow.groups == groups) {
                    let flows = flows(program, instance, groups, &self.on[groups.0], &self.on[groups.1], self.inputs);
                    self.flows.extend(flows);
                }
                for flow in self.flows.iter().filter(|flow| flow.groups == groups) {
                    let (u, v) = flow.devices;
                    let Some(on) = self.on(groups.0, u) else { continue };
                    let latency = instance.transfer_of(tensor, u, v, 0) / self.horizon;
                    let each = instance.transfer_of(tensor, u, v, 1) / self.horizon - latency;
                    let big_m = self.big_m(moved.producer, u, reader, v);
                    let mut row = self.after(moved.producer, on, reader, v);
                    row.push((flow.any, -latency - big_m));
                    row.extend(flow.both.iter().map(|both| (*both, -each)));
                    program.at_least(-big_m, row);
                }
            }
        }
    }
}

/// Returns flows between the assignments of two groups, on linked pairs of devices only.
fn flows(
    program: &mut Program,
    instance: &Instance,
    groups: (usize, usize),
    from: &[Assignment],
    to: &[Assignment],
    inputs: usize,
) -> Vec<Flow> {
    let mut flows = Vec::new();
    for u in from {
        for v in to.iter().filter(|v| instance.linked(u.device, v.device)) {
            let both: Vec<Column> = (0..inputs).map(|_| program.column(0.0, 1.0, 0.0)).collect();
            let any = program.column(0.0, 1.0, 0.0);
            both.iter().for_each(|both| program.at_least(0.0, [(any, 1.0), (*both, -1.0)]));
            flows.push(Flow { groups, devices: (u.device, v.device), both, any });
        }
    }
    for input in 0..inputs {
        let both: Vec<_> = flows.iter().map(|flow| (flow.devices.0, flow.devices.1, flow.both[input])).collect();
        let takes = |on: &Assignment| (on.device, on.takes[input]);
        conserve(program, &both, from.iter().map(takes), to.iter().map(takes));
    }
    flows
}
