//! Annealing on blocks and their devices; each trial looks at the whole pipeline.

use super::{Fleet, Pipe};
use crate::pipeline::anneal::{COLD, HOT, power};
use crate::random::Random;
use crate::search::chains::{Allowance, Budget};
use crate::units::Micros;

/// Trials between looks at the clock.
const STRIDE: u64 = 32;
/// Of so many trials one changes a block's device, and one exchanges two blocks' devices.
const KINDS: usize = 12;

/// The best pipeline that was found.
pub(super) fn anneal(fleet: &Fleet, start: &Pipe, least: Micros, allowance: &Allowance) -> Option<(Micros, Pipe)> {
    allowance.best_of(|random, budget| {
        let value = fleet.value(start);
        let mut chain = Chain {
            fleet,
            random,
            pipe: start.clone(),
            best: start.clone(),
            value,
            scale: value.max(f64::MIN_POSITIVE),
            energy: 0.0,
            loads: Vec::new(),
        };
        chain.run(budget, least);
        (chain.value, (chain.value, chain.best))
    })
}

struct Chain<'a> {
    fleet: &'a Fleet,
    random: Random,
    pipe: Pipe,
    best: Pipe,
    /// Of the best.
    value: Micros,
    /// What a load of one is.
    scale: Micros,
    energy: f64,
    loads: Vec<Micros>,
}

impl Chain<'_> {
    fn run(&mut self, budget: Budget<'_>, least: Micros) {
        self.energy = self.look().0;
        let mut trials = 0;
        loop {
            let spent = budget.spent(trials);
            if spent >= 1.0 || self.value <= least {
                break;
            }
            let heat = HOT * (COLD / HOT).powf(spent);
            for _ in 0..STRIDE {
                self.trial(heat);
            }
            trials += STRIDE;
            budget.tell(self.value);
        }
    }

    /// The energy and the value of what is there now.
    fn look(&mut self) -> (f64, Micros) {
        self.fleet.loads(&self.pipe, &mut self.loads);
        let scale = self.scale;
        let energy = self.loads.iter().map(|load| power(load / scale)).sum();
        (energy, self.loads.iter().copied().fold(0.0, f64::max))
    }

    fn trial(&mut self, heat: f64) {
        let fleet = self.fleet;
        let (k, devices) = (fleet.k, fleet.devices);
        match self.random.below(KINDS) {
            0 => {
                let block = self.random.below(k);
                let was = std::mem::replace(&mut self.pipe.device[block], self.random.below(devices));
                self.judge(heat, |pipe| pipe.device[block] = was);
            }
            1 => {
                let (one, other) = (self.random.below(k), self.random.below(k));
                self.pipe.device.swap(one, other);
                self.judge(heat, |pipe| pipe.device.swap(one, other));
            }
            _ => {
                let task = self.random.below(fleet.tasks());
                let (low, high) = fleet.range(&self.pipe, task);
                let to = low + self.random.below((high - low + 1) as usize) as u32;
                let was = std::mem::replace(&mut self.pipe.block[task], to);
                if was != to {
                    self.judge(heat, |pipe| pipe.block[task] = was);
                }
            }
        }
    }

    /// Keeps what has been tried, or takes it back.
    fn judge(&mut self, heat: f64, take_back: impl FnOnce(&mut Pipe)) {
        let (energy, value) = self.look();
        let worse = energy - self.energy;
        // What cannot be has infinite energy.
        if !worse.is_finite() || (worse > 0.0 && self.random.unit() >= (-worse / heat).exp()) {
            take_back(&mut self.pipe);
            return;
        }
        self.energy = energy;
        if value < self.value {
            self.value = value;
            self.best.clone_from(&self.pipe);
        }
    }
}
