//! `divi-bench edge`: the figures and tables of the edge paper for chains with its ratios and for models, next to its numbers.

mod models;
mod paper;
mod speedups;
mod zones;

use crate::parts::{in_turn, or_all, sorted};
use clap::{Parser, ValueEnum};

/// Print the figures and tables of the edge paper next to our numbers
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Edge {
    /// Parts to run; by default all of them
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// Fig. 6: gains of a chain of 49 layers by ratio of link speed to machine speed, and search nodes.
    Zones,
    /// Fig. 5: gains by number of machines and of split points.
    Speedups,
    /// Table 2: eq. (10) and the best placement of vision models in the paper's four setups.
    Models,
}

// Options of all parts; not a doc comment, which would become help text.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Number of chains that speedups are averaged over
    #[arg(long, value_name = "N", default_value = "10", value_parser = divi_cli::positive::<u64>)]
    seeds: u64,
    /// Maximum number of search nodes of each placement
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = divi_cli::positive::<u64>)]
    iterations: u64,
}

impl Edge {
    pub(crate) fn run(self) -> Result<(), String> {
        let settings = &self.settings;
        in_turn(sorted(&or_all(self.parts)), |part| match part {
            Part::Zones => zones::zones(settings),
            Part::Speedups => speedups::speedups(settings),
            Part::Models => models::models(settings),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(line: &str) -> Result<Edge, String> {
        let words = ["edge"].into_iter().chain(line.split_whitespace());
        divi_cli::try_parse_from(Edge::command(), words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read() {
        let Edge { parts, settings } = parsed("").unwrap();
        assert_eq!((or_all(parts).len(), settings), (3, Settings { seeds: 10, iterations: 2_000_000 }));
        let Edge { parts, settings } = parsed("models zones --seeds=4 --seeds=3 --iterations 5").unwrap();
        assert_eq!((sorted(&parts), settings), (vec![Part::Zones, Part::Models], Settings { seeds: 3, iterations: 5 }));
        let error = parsed("--seeds=0").unwrap_err();
        assert!(error.contains("invalid value '0' for '--seeds <N>': must be a positive integer"), "{error}");
        let error = parsed("zone").unwrap_err();
        assert!(error.contains("'zone' for '[PART]...'\n  [possible values: zones, speedups, models]"), "{error}");
    }
}
