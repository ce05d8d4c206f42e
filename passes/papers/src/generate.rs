//! Problems from a seed: randomly wired networks as DiviML's section V describes, and synthetic graphs as MTPP's
//! Appendix C.2 does, and chains as the edge paper has them. The same seed gives the same problem on every machine. GPT-3 on
//! nodes of GPUs needs no seed.

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

/// Random graphs by their usual names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Erdős–Rényi: each pair with the same probability.
    ErdosRenyi,
    /// Watts–Strogatz: a ring with neighbours, some edges moved elsewhere.
    WattsStrogatz,
    /// Barabási–Albert: new nodes prefer nodes with many edges.
    BarabasiAlbert,
    /// Stochastic blocks: more edges inside a block than between blocks.
    Blocks,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::ErdosRenyi, Self::WattsStrogatz, Self::BarabasiAlbert, Self::Blocks];

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
            Error::Unsupported(format!("there is no kind of graph '{name}'; there are {names}"))
        })
    }
}

/// More than this in any number of a generator is a slip of the finger.
const MOST_NODES: usize = 1_000_000;

/// Refuses sizes from which no problem can be made.
fn in_range(what: &str, value: usize, least: usize, most: usize) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Unsupported(format!("{what} is {value}; it must be at least {least} and at most {most}")))
}
