//! Converts a solution to a choice.

use super::build::Formulation;
use super::slots::Slots;
use crate::mip::Column;
use crate::model::units::Bytes;
use crate::solvers::contention::{Choice, Job, Model, Route};

impl Formulation {
    /// Returns devices and routes of the solution, copies in the order of their turns, launches by the starts of their
    /// slots. `None` if the solution violates a constraint that the program does not model.
    pub(super) fn decode(
        &self,
        model: &Model<'_>,
        slots: &Slots,
        before: &Choice,
        from: usize,
        values: &[f64],
    ) -> Option<Choice> {
        let mut choice = before.clone();
        let chosen = |row: &[Column]| row.iter().position(|column| column.of(values) > 0.5);
        let mut slot_of = Vec::new();
        let mut fetches: Vec<(f64, usize)> = Vec::new();
        for (launch, &of) in slots.launches.iter().enumerate() {
            let slot = chosen(&self.runs[launch])?;
            let device = slots.all[slot].device;
            let lies = chosen(&self.lies[launch]);
            let route = match lies.map(|slot| slots.all[slot].device) {
                _ if !model.needs_parameters(of, device) => Route::Copy,
                None => Route::Direct,
                Some(same) if same == device => Route::Copy,
                Some(other) => Route::Via(other as u16),
            };
            if model.needs_parameters(of, device) && !model.routes(of, device).contains(&route) {
                return None;
            }
            (choice.device[of], choice.route[of]) = (device as u16, route);
            if model.cold.is_some() && model.weight(of) > Bytes::ZERO {
                fetches.push((lies.map_or(f64::INFINITY, |slot| self.copies_from[slot].of(values)), launch));
            }
            slot_of.push(slot);
        }
        // Co-located tasks must agree with those before the piece.
        let instance = model.instance;
        for &of in &slots.launches {
            let group = &instance.groups()[instance.group_of(model.launches[of].task)];
            let members = group.iter().flat_map(|task| &model.of_task[*task]);
            let mut others = members.filter(|other| before.order.iter().any(|job| job.launch() == **other));
            if others.any(|other| choice.device[*other] != choice.device[of]) {
                return None;
            }
        }
        fetches.sort_by(|a, b| a.0.total_cmp(&b.0));
        choice.order.truncate(from);
        choice.order.extend(fetches.iter().map(|(_, launch)| Job::Fetch(slots.launches[*launch] as u32)));
        let mut left: Vec<usize> = (0..slots.launches.len()).collect();
        while !left.is_empty() {
            // Of the ready launches, the one whose slot starts first.
            let is_free = |launch: usize| !slots.edges.iter().any(|(maker, to)| *to == launch && left.contains(maker));
            let start = |launch: &usize| self.starts[slot_of[*launch]].of(values);
            let free = left.iter().copied().filter(|launch| is_free(*launch));
            let next = free.min_by(|a, b| start(a).total_cmp(&start(b)).then(a.cmp(b)))?;
            choice.order.push(Job::Run(slots.launches[next] as u32));
            left.retain(|launch| *launch != next);
        }
        Some(choice)
    }
}
