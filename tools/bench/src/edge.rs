//! `divi-bench edge`: the figures and tables of the edge paper, for chains with its ratios and for models, beside its numbers.

mod models;
mod paper;
mod speedups;
mod zones;

use crate::arguments::{in_turn, part};

const USAGE: &str = "\
usage: divi-bench edge [PART …] [--seeds=N] [--iterations=N]

parts, by default all of them:
  zones         Fig. 6: what a chain of 49 layers gains at different ratios of link speed to machine speed,
                and how many nodes of the tree that takes, ours and the paper's
  speedups      Fig. 5: gains by numbers of machines and of split points
  models        Table 2: eq. (10) and the best placement of vision models in the paper's four set-ups

  --seeds=N         chains that speed-ups are averaged over, by default 10
  --iterations=N    nodes of the tree for each placement, by default 2000000
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    seeds: u64,
    iterations: u64,
}

type Part = fn(&Settings) -> Result<(), String>;

const PARTS: &[(&str, Part)] = &[("zones", zones::zones), ("speedups", speedups::speedups), ("models", models::models)];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (settings, parts) = parse(arguments)?;
    in_turn(PARTS.iter().filter(|(name, _)| parts.contains(name)), |part| part(&settings))
}

fn parse(arguments: &[String]) -> Result<(Settings, Vec<&'static str>), String> {
    let mut settings = Settings { seeds: 10, iterations: 2_000_000 };
    let mut parts = Vec::new();
    for argument in arguments {
        if let Some(text) = argument.strip_prefix("--seeds=") {
            settings.seeds = count(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--iterations=") {
            settings.iterations = count(argument, text)?;
        } else {
            parts.push(part(PARTS, argument, USAGE)?.0);
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS.iter().map(|(name, _)| *name));
    }
    Ok((settings, parts))
}

fn count(argument: &str, text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{argument}: not a positive whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Settings, Vec<&'static str>), String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let all = vec!["zones", "speedups", "models"];
        assert_eq!(parsed(""), Ok((Settings { seeds: 10, iterations: 2_000_000 }, all)));
        let few = Settings { seeds: 3, iterations: 5 };
        assert_eq!(parsed("zones --seeds=3 --iterations=5"), Ok((few, vec!["zones"])));
        assert_eq!(parsed("--seeds=0"), Err("--seeds=0: not a positive whole number".to_owned()));
        assert!(parsed("zone").unwrap_err().starts_with("there is no part or option 'zone'\nusage: "));
    }
}
