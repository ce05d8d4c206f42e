//! `divi-bench pipeline`: the tables of the MTPP paper for graphs like its synthetic ones, beside its own numbers, and
//! how fast orders are sliced.

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

use crate::arguments::{in_turn, part, seconds};
use best::Best;
use graphs::Choice;

const USAGE: &str = "\
usage: divi-bench pipeline [PART …] [--k=K,…] [--graphs=N|NAME] [--seconds=S] [--milp-seconds=S]

parts, by default all of them:
  orders        Table 2: what different orders' slicings are worth, and searches beyond orders
  bounds        Table 3: what is proven, as a share of the best that is known
  models        pipelines of real models, on equal devices and on some that are not
  speed         slicing against the plain dynamic program, in processor time

  --k=K,…           numbers of stages, by default 2,4,8,16,32,64
  --graphs=N|NAME   the first N of test/problems/regal, or all of it and of test/problems/msr whose
                    name contains NAME; by default the 20 of regal
  --seconds=S       for each search, by default 5
  --milp-seconds=S  for the proofs of a graph and k together, by default 2: a fifth for bottleneck, of
                    what is left three tenths for bottleneck-guess, then half for priced, the rest for
                    exact.
                    Table 3 in full is --milp-seconds=8100, the paper's limits: eleven days; 60 takes
                    two hours
";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    seconds: f64,
    milp_seconds: f64,
    stages: Vec<u32>,
    graphs: Choice,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seconds: 5.0, milp_seconds: 2.0, stages: table::STAGES.to_vec(), graphs: Choice::First(usize::MAX) }
    }
}

type Part = fn(&Settings, &mut Best) -> Result<(), String>;

const PARTS: &[(&str, Part)] = &[
    ("orders", orders::orders),
    ("bounds", bounds::bounds),
    ("models", |settings, _| models::models(settings)),
    ("speed", |_, _| speed::speed()),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (settings, parts) = parse(arguments)?;
    let mut best = Best::read()?;
    in_turn(PARTS.iter().filter(|(name, _)| parts.contains(name)), |part| part(&settings, &mut best))?;
    best.print_better();
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(Settings, Vec<&'static str>), String> {
    let mut settings = Settings::default();
    let mut parts = Vec::new();
    for argument in arguments {
        if let Some(text) = argument.strip_prefix("--seconds=") {
            settings.seconds = seconds(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--milp-seconds=") {
            settings.milp_seconds = seconds(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--k=") {
            settings.stages = stages(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--graphs=") {
            settings.graphs = Choice::parse(text).ok_or_else(|| format!("{argument}: no graph is asked for"))?;
        } else {
            parts.push(part(PARTS, argument, USAGE)?.0);
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS.iter().map(|(name, _)| *name));
    }
    Ok((settings, parts))
}

fn stages(argument: &str, text: &str) -> Result<Vec<u32>, String> {
    let stages: Option<Vec<u32>> = text.split(',').map(|k| k.parse().ok().filter(|k| *k > 0)).collect();
    stages.ok_or_else(|| format!("{argument}: not numbers of stages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Settings, Vec<&'static str>), String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn everything_by_default() {
        assert_eq!(parsed(""), Ok((Settings::default(), vec!["orders", "bounds", "models", "speed"])));
    }

    #[test]
    fn options_are_read() {
        let expected = Settings {
            seconds: 0.5,
            milp_seconds: 60.0,
            stages: vec![2, 6],
            graphs: Choice::Named("msr_tp".to_owned()),
        };
        let line = "--k=2,6 bounds --seconds=0.5 --milp-seconds=60 --graphs=msr_tp";
        assert_eq!(parsed(line), Ok((expected, vec!["bounds"])));
        let (settings, _) = parsed("speed --graphs=4").unwrap();
        assert_eq!(settings.graphs, Choice::First(4));
    }

    #[test]
    fn slips_are_named() {
        for (line, message) in [
            ("--k=2,x", "--k=2,x: not numbers of stages"),
            ("--k=0", "--k=0: not numbers of stages"),
            ("--k=", "--k=: not numbers of stages"),
            ("--graphs=", "--graphs=: no graph is asked for"),
            ("--graphs=0", "--graphs=0: no graph is asked for"),
            ("--seconds=-1", "--seconds=-1: not a number of seconds"),
            ("--milp-seconds=inf", "--milp-seconds=inf: not a number of seconds"),
        ] {
            assert_eq!(parsed(line), Err(message.to_owned()));
        }
        assert!(parsed("order").unwrap_err().starts_with("there is no part or option 'order'\nusage: "));
    }
}
