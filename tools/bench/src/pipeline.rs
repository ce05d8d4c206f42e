//! `divi-bench pipeline`: the tables of the MTPP paper for graphs like its synthetic ones, next to its numbers, and the
//! speed of slicing.

mod baseline;
mod best;
mod bounds;
mod graphs;
mod models;
mod orders;
mod process;
mod progress;
mod speed;
mod table;

use crate::parts::{in_turn, or_all, sorted};
use best::Best;
use clap::{ArgAction, Parser, ValueEnum};
use graphs::Choice;

/// Print the tables of the MTPP paper for graphs like its synthetic ones next to its numbers
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Pipeline {
    /// Parts to run; by default all of them
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// Table 2: values of the best slicings of different orders, and of searches beyond orders.
    Orders,
    /// Table 3: proven bounds, relative to the best known value.
    Bounds,
    /// Pipelines of real models, on homogeneous and on heterogeneous devices.
    Models,
    /// Slicing compared with the plain dynamic program, in processor time.
    Speed,
}

// Options of all parts; not a doc comment, which would become help text.
#[derive(clap::Args, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Numbers of stages
    #[arg(
        long = "k", value_name = "K,...", value_delimiter = ',', action = ArgAction::Set,
        default_values_t = table::STAGES, value_parser = divi_cli::positive::<u32>
    )]
    stages: Vec<u32>,
    /// Graphs of test/problems; by default all of regal
    ///
    /// The first N of regal, or all of regal and msr whose names contain NAME.
    #[arg(long, value_name = "N|NAME", value_parser = Choice::parse)]
    graphs: Option<Choice>,
    /// Time limit of each search, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = divi_cli::seconds)]
    seconds: f64,
    /// Time limit of the proofs of a graph and k together, in seconds
    ///
    /// A fifth is for bottleneck; of the rest, three tenths are for bottleneck-guess, then half for priced, and the
    /// remainder for exact. The full Table 3 is --milp-seconds=8100, the paper's limits: eleven days; 60 takes two hours.
    #[arg(long, value_name = "S", default_value = "2", value_parser = divi_cli::seconds, verbatim_doc_comment)]
    milp_seconds: f64,
}

impl Pipeline {
    pub(crate) fn run(self) -> Result<(), String> {
        let settings = &self.settings;
        let mut best = Best::read()?;
        in_turn(sorted(&or_all(self.parts)), |part| match part {
            Part::Orders => orders::orders(settings, &mut best),
            Part::Bounds => bounds::bounds(settings, &mut best),
            Part::Models => models::models(settings),
            Part::Speed => speed::speed(),
        })?;
        best.print_better();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(line: &str) -> Result<Pipeline, String> {
        let words = ["pipeline"].into_iter().chain(line.split_whitespace());
        divi_cli::try_parse_from(Pipeline::command(), words).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_by_default() {
        let Pipeline { parts, settings } = parsed("").unwrap();
        assert_eq!(or_all(parts), [Part::Orders, Part::Bounds, Part::Models, Part::Speed]);
        let expected = Settings { seconds: 5.0, milp_seconds: 2.0, stages: table::STAGES.to_vec(), graphs: None };
        assert_eq!(settings, expected);
    }

    #[test]
    fn options_are_read() {
        let expected = Settings {
            seconds: 0.5,
            milp_seconds: 60.0,
            stages: vec![2, 6],
            graphs: Some(Choice::Named("msr_tp".to_owned())),
        };
        let line = "--k=8 --k=2,6 bounds --seconds=0.5 --milp-seconds=60 --graphs=msr_tp";
        let Pipeline { parts, settings } = parsed(line).unwrap();
        assert_eq!((parts, settings), (vec![Part::Bounds], expected));
        assert_eq!(parsed("speed --graphs=4").unwrap().settings.graphs, Some(Choice::First(4)));
    }

    #[test]
    fn invalid_values_are_reported() {
        for (line, message) in [
            ("--k=2,x", "invalid value 'x' for '--k <K,...>': must be a positive integer"),
            ("--k=0", "invalid value '0' for '--k <K,...>': must be a positive integer"),
            ("--k=", "invalid value '' for '--k <K,...>': must be a positive integer"),
            ("--graphs=", "invalid value '' for '--graphs <N|NAME>': must be a positive number, or a part of a name"),
            ("--graphs=0", "invalid value '0' for '--graphs <N|NAME>': must be a positive number, or a part of a name"),
            ("--seconds=-1", "invalid value '-1' for '--seconds <S>': must be a non-negative number of seconds"),
            (
                "--milp-seconds=inf",
                "invalid value 'inf' for '--milp-seconds <S>': must be a non-negative number of seconds",
            ),
            ("order", "invalid value 'order' for '[PART]...'\n  [possible values: orders, bounds, models, speed]"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
