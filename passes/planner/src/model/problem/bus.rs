//! Buses, as numbers.

use super::{Contention, Problem};

impl Problem {
    /// By pair of devices the bus that joins them, and how many buses there are: those on which transfers hinder each other, so
    /// none at all without contention.
    pub fn buses(&self) -> (Vec<Option<usize>>, usize) {
        let devices = self.devices.len();
        let mut names: Vec<&str> = Vec::new();
        let of_pair = |pair: usize| {
            let (from, to) = (pair / devices, pair % devices);
            let named = self.bus.as_ref().filter(|_| self.contention != Contention::Off && from != to)?;
            let name = named[from][to].as_deref()?;
            let known = names.iter().position(|known| *known == name);
            Some(known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }))
        };
        let of_pairs = (0..devices * devices).map(of_pair).collect();
        (of_pairs, names.len())
    }
}
