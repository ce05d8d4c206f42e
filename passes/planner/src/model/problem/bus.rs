//! Buses as numbers.

use super::{Contention, Problem};

impl Problem {
    /// Returns the bus of each pair of devices, and the number of buses: those with contention, so none if contention is
    /// off.
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
