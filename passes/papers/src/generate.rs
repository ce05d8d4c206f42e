//! Generators of problems: randomly wired networks (DiviML, section V), synthetic graphs (MTPP, Appendix C.2), chains (the
//! edge paper), and GPT-3 on nodes of GPUs (DiviML, section VI). The same seed gives the same problem on every machine;
//! GPT-3 needs no seed.

mod chain;
mod gpt3;
mod graphs;
mod regal;
mod rwnn;

use std::str::FromStr;

use divi_planner::error::Error;

pub use chain::{Chain, chain};
pub use gpt3::{Gpt3, gpt3};
pub use regal::{Regal, regal};
pub use rwnn::{Rwnn, rwnn};

/// Random graph models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Erdős–Rényi: each pair is an edge with the same probability.
    ErdosRenyi,
    /// Watts–Strogatz: a ring lattice with some edges rewired.
    WattsStrogatz,
    /// Barabási–Albert: preferential attachment.
    BarabasiAlbert,
    /// Stochastic block model: more edges inside a block than between blocks.
    Blocks,
}

impl Kind {
    /// All models.
    pub const ALL: [Self; 4] = [Self::ErdosRenyi, Self::WattsStrogatz, Self::BarabasiAlbert, Self::Blocks];

    /// Returns the usual abbreviation.
    pub fn name(self) -> &'static str {
        match self {
            Self::ErdosRenyi => "ER",
            Self::WattsStrogatz => "WS",
            Self::BarabasiAlbert => "BA",
            Self::Blocks => "SBM",
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Unsupported(format!("unknown graph kind '{name}'; expected one of {names}"))
        })
    }
}

/// Upper limit on the number of generated nodes.
const MOST_NODES: usize = 1_000_000;

/// Returns an error unless `value` is within `least..=most`.
fn in_range(what: &str, value: usize, least: usize, most: usize) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Unsupported(format!("{what} is {value}; it must be at least {least} and at most {most}")))
}
