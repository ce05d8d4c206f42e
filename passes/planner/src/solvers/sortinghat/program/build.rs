//! Variables and constraints of the program, by the paper's equations.

use super::slots::{Slots, moving};
use crate::mip::{Column, Program};
use crate::model::units::{Bytes, Micros};
use crate::solvers::contention::Model;

pub(super) struct Formulation {
    pub(super) program: Program,
    /// By launch and slot: one if the launch is there (the paper's x of operations).
    pub(super) runs: Vec<Vec<Column>>,
    /// By launch and slot: one if its parameters are there (x of parameters); fixed to zero if they need no copy.
    pub(super) lies: Vec<Vec<Column>>,
    /// By slot.
    pub(super) starts: Vec<Column>,
    pub(super) copies_from: Vec<Column>,
}

impl Formulation {
    pub(super) fn new(model: &Model<'_>, slots: &Slots) -> Self {
        let mut program = Program::default();
        let total = program.column(f64::NEG_INFINITY, f64::INFINITY, 1.0);
        let never = program.column(0.0, 0.0, 0.0);
        let count = slots.all.len();
        let mut runs = Vec::new();
        let mut lies = Vec::new();
        for launch in 0..slots.launches.len() {
            // (2): each launch has one slot, among those that can run it.
            let possible = |slot: usize| {
                let arrives = slots.arrival[launch * count + slot].is_finite();
                slots.work(model, launch, slots.all[slot]).is_finite() && arrives
            };
            let row: Vec<Column> =
                (0..count).map(|slot| if possible(slot) { program.binary() } else { never }).collect();
            program.exactly(1.0, row.iter().map(|column| (*column, 1.0)));
            // (5): its parameters are in a slot unless they are resident on its device, or read from the host's memory.
            let lands = |slot: usize| slots.copying(model, launch, slots.all[slot].device).is_finite();
            let has_any = model.cold.is_some() && model.weight(slots.launches[launch]) > Bytes::ZERO;
            let own: Vec<Column> =
                (0..count).map(|slot| if has_any && lands(slot) { program.binary() } else { never }).collect();
            let needs = (0..count).filter(|slot| {
                let slot = slots.all[*slot];
                !slot.is_direct() && model.needs_parameters(slots.launches[launch], slot.device)
            });
            let terms = own.iter().map(|column| (*column, 1.0)).chain(needs.map(|slot| (row[slot], -1.0)));
            program.exactly(0.0, terms);
            runs.push(row);
            lies.push(own);
        }
        let free = |program: &mut Program| program.column(f64::NEG_INFINITY, f64::INFINITY, 0.0);
        let starts: Vec<Column> = (0..count).map(|_| free(&mut program)).collect();
        let ends: Vec<Column> = (0..count).map(|_| free(&mut program)).collect();
        let copies_from: Vec<Column> = (0..count).map(|_| free(&mut program)).collect();
        let copies_until: Vec<Column> = (0..count).map(|_| free(&mut program)).collect();
        let mut made = Self { program, runs, lies, starts, copies_from };
        made.contiguity(slots);
        made.copies(model, slots, &copies_until);
        made.turns(model, slots, &ends, &copies_until);
        made.memory(model, slots);
        // (23).
        for end in ends {
            made.program.at_least(0.0, [(total, 1.0), (end, -1.0)]);
        }
        made
    }

    /// (6) to (8): tasks on a path between two launches of a slot are in it as well.
    fn contiguity(&mut self, slots: &Slots) {
        let count = slots.all.len();
        let reaches: Vec<Vec<Column>> = (0..slots.launches.len())
            .map(|_| (0..count).map(|_| self.program.column(0.0, 1.0, 0.0)).collect())
            .collect();
        for slot in 0..count {
            for (launch, reaches) in reaches.iter().enumerate() {
                self.program.at_least(0.0, [(reaches[slot], 1.0), (self.runs[launch][slot], -1.0)]);
            }
            for &(from, to) in &slots.edges {
                self.program.at_least(0.0, [(reaches[from][slot], 1.0), (reaches[to][slot], -1.0)]);
                let both = [(self.runs[to][slot], 1.0), (self.runs[from][slot], -1.0), (reaches[to][slot], -1.0)];
                self.program.at_least(-1.0, both);
            }
        }
    }

    /// (12) to (14): a bus copies by turns, first the parameters of the first slot of each of its devices.
    fn copies(&mut self, model: &Model<'_>, slots: &Slots, until: &[Column]) {
        let Some(cold) = &model.cold else { return };
        let bus_of = |slot: usize| model.link(cold.host, slots.all[slot].device).bus;
        let mut order: Vec<usize> = (0..slots.all.len()).collect();
        order.sort_by_key(|slot| (slots.all[*slot].turn, slots.all[*slot].place));
        for (position, &slot) in order.iter().enumerate() {
            let device = slots.all[slot].device;
            // Without a shared bus, turns are per device.
            let same = |other: &&usize| match bus_of(slot) {
                Some(bus) => bus_of(**other) == Some(bus),
                None => slots.all[**other].device == device,
            };
            match order[..position].iter().rev().find(same) {
                Some(before) => {
                    self.program.exactly(0.0, [(self.copies_from[slot], 1.0), (until[*before], -1.0)]);
                }
                None => {
                    let free = bus_of(slot).map_or(Micros::ZERO, |bus| slots.bus_free[bus]);
                    self.program.exactly((free - slots.origin) / slots.scale, [(self.copies_from[slot], 1.0)]);
                }
            }
            let copied = (0..slots.launches.len()).filter_map(|launch| {
                let takes = slots.copying(model, launch, device);
                takes.is_finite().then(|| (self.lies[launch][slot], -takes / slots.scale))
            });
            let terms = [(until[slot], 1.0), (self.copies_from[slot], -1.0)].into_iter().chain(copied);
            self.program.exactly(0.0, terms);
        }
    }

    /// (9), (10) and (15) to (22): a slot starts when the previous one has ended and its operands have arrived; its
    /// duration includes transfers from other devices.
    fn turns(&mut self, model: &Model<'_>, slots: &Slots, ends: &[Column], copies_until: &[Column]) {
        let (count, far) = (slots.all.len(), slots.horizon * 2.0);
        let time = |program: &mut Program| program.column(f64::NEG_INFINITY, f64::INFINITY, 0.0);
        let done: Vec<Column> = slots.launches.iter().map(|_| time(&mut self.program)).collect();
        let there: Vec<Column> = slots.launches.iter().map(|_| time(&mut self.program)).collect();
        for slot in 0..count {
            let at = slots.all[slot];
            let start = self.starts[slot];
            if at.turn == 0 {
                let free = (slots.device_free[at.device] - slots.origin) / slots.scale;
                self.program.at_least(free, [(start, 1.0)]);
            } else {
                self.program.at_least(0.0, [(start, 1.0), (ends[slot - 1], -1.0)]);
            }
            let mut takes = vec![(ends[slot], 1.0), (start, -1.0)];
            for launch in 0..slots.launches.len() {
                let runs = self.runs[launch][slot];
                self.program.at_least(-far, [(done[launch], 1.0), (ends[slot], -1.0), (runs, -far)]);
                self.program.at_least(
                    -far,
                    [(there[launch], 1.0), (copies_until[slot], -1.0), (self.lies[launch][slot], -far)],
                );
                let work = slots.work(model, launch, at);
                if !work.is_finite() {
                    continue;
                }
                takes.push((runs, -work / slots.scale));
                // Operands from before the piece.
                let arrival = slots.arrival[launch * count + slot];
                if arrival.is_finite() && arrival > slots.origin {
                    self.program.at_least(0.0, [(start, 1.0), (runs, -(arrival - slots.origin) / slots.scale)]);
                }
                if !at.is_direct() && model.needs_parameters(slots.launches[launch], at.device) {
                    self.program.at_least(-far, [(start, 1.0), (there[launch], -1.0), (runs, -far)]);
                    self.forward(model, slots, launch, slot, &mut takes);
                }
            }
            self.receive(model, slots, slot, &done, &mut takes);
            self.program.at_least(0.0, takes);
        }
    }

    /// Parameters on another device are forwarded as part of the slot.
    fn forward(
        &mut self,
        model: &Model<'_>,
        slots: &Slots,
        launch: usize,
        slot: usize,
        takes: &mut Vec<(Column, f64)>,
    ) {
        let at = slots.all[slot];
        for (place, &device) in slots.devices.iter().enumerate().filter(|(place, _)| *place != at.place) {
            let takes_over = moving(model, device, at.device, model.weight(slots.launches[launch]));
            let own = &self.lies[launch][place * slots.each..(place + 1) * slots.each];
            let lies = own.iter().map(|column| (*column, 1.0));
            if takes_over.is_finite() {
                let comes = self.program.column(0.0, 1.0, 0.0);
                let both = [(self.runs[launch][slot], 1.0), (comes, -1.0)];
                self.program.at_most(1.0, lies.chain(both));
                takes.push((comes, -takes_over / slots.scale));
            } else {
                self.program.at_most(1.0, lies.chain([(self.runs[launch][slot], 1.0)]));
            }
        }
    }

    /// (9), (10) and (19): values of the piece that come from other slots and devices.
    fn receive(
        &mut self,
        model: &Model<'_>,
        slots: &Slots,
        slot: usize,
        done: &[Column],
        takes: &mut Vec<(Column, f64)>,
    ) {
        let (at, far) = (slots.all[slot], slots.horizon * 2.0);
        for (maker, done) in done.iter().copied().enumerate() {
            let readers: Vec<usize> =
                slots.edges.iter().filter(|(from, _)| *from == maker).map(|(_, to)| *to).collect();
            if readers.is_empty() {
                continue;
            }
            let enters = self.program.column(0.0, 1.0, 0.0);
            for reader in readers {
                let terms = [(enters, 1.0), (self.runs[reader][slot], -1.0), (self.runs[maker][slot], 1.0)];
                self.program.at_least(0.0, terms);
            }
            let waits = [(self.starts[slot], 1.0), (done, -1.0), (enters, -far)];
            self.program.at_least(-far, waits);
            for (place, &device) in slots.devices.iter().enumerate().filter(|(place, _)| *place != at.place) {
                let comes_over = moving(model, device, at.device, slots.made[maker]);
                let made_there = self.runs[maker][place * slots.each..(place + 1) * slots.each].iter();
                let there: Vec<(Column, f64)> = made_there.map(|column| (*column, 1.0)).collect();
                if comes_over.is_finite() {
                    let comes = self.program.column(0.0, 1.0, 0.0);
                    self.program.at_most(1.0, there.into_iter().chain([(enters, 1.0), (comes, -1.0)]));
                    takes.push((comes, -comes_over / slots.scale));
                } else {
                    self.program.at_most(1.0, there.into_iter().chain([(enters, 1.0)]));
                }
            }
        }
    }

    /// (11), for resident parameters only; forwarded ones are checked when the plan is simulated.
    fn memory(&mut self, model: &Model<'_>, slots: &Slots) {
        for (place, &device) in slots.devices.iter().enumerate().filter(|(_, on)| slots.room[**on].is_finite()) {
            let unit = slots.room[device].abs().max(Bytes(1.0));
            let mut held = Vec::new();
            for slot in place * slots.each..(place + 1) * slots.each {
                for (launch, &of) in slots.launches.iter().enumerate() {
                    let away = slots.all[slot].is_direct() && model.needs_parameters(of, device);
                    let weight = if away { Bytes::ZERO } else { model.weight(of) };
                    held.push((self.runs[launch][slot], weight / unit));
                }
            }
            self.program.at_most(slots.room[device].max(Bytes::ZERO) / unit, held);
        }
    }
}
