//! Choice of the batch size of each device for the tasks that it has.

use super::config::Config;
use super::search::{Found, Search, placed};
use crate::model::units::Micros;
use crate::solvers::pipeline::fleet::{Fleet, Loads, Pipe};
use crate::solvers::pipeline::state::power;

/// Maximum number of passes over all devices.
const PASSES: usize = 4;

impl Search<'_> {
    /// Returns the pipeline with better batch sizes, device by device: those that reduce a smooth approximation of the
    /// largest load, so that loads below the largest one shrink, too.
    pub(super) fn resized(&self, found: &Found) -> Found {
        let scale = found.value.max(Micros(f64::MIN_POSITIVE));
        let mut best = found.clone();
        let mut least = self.energy(&best.config, &best.home, scale).map_or(f64::INFINITY, |(energy, _)| energy);
        for _ in 0..PASSES {
            let before = least;
            for group in 0..best.config.len() {
                let first = best.config[group].devices[0];
                if !best.home.contains(&first) {
                    continue;
                }
                for size in self.space.tried(first) {
                    let mut config = best.config.clone();
                    if std::mem::replace(&mut config[group].size, size) == size {
                        continue;
                    }
                    let Some((energy, value)) = self.energy(&config, &best.home, scale) else { continue };
                    if energy < least * (1.0 - 1e-9) {
                        least = energy;
                        (best.config, best.value) = (config, value);
                    }
                }
            }
            if least >= before {
                break;
            }
        }
        best
    }

    /// Returns the energy and the value of a placement; `None` if it is infeasible.
    pub(super) fn energy(&self, config: &Config, home: &[usize], scale: Micros) -> Option<(f64, Micros)> {
        let fleet = self.space.fleet(config).ok()?;
        let pipe = placed(config, &fleet, home)?;
        energy_of(&fleet, &pipe, scale)
    }
}

fn energy_of(fleet: &Fleet, pipe: &Pipe, scale: Micros) -> Option<(f64, Micros)> {
    let loads = Loads::new(fleet, pipe.devices());
    let value = loads.value();
    value.is_finite().then(|| (loads.each().map(|load| power(load / scale)).sum(), value))
}
