//! `divi-plan simulate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use divi_simulate::{Measured, Outcome, Program, Scenario, Variation, simulate};
use serde_json::{Value, json};

use crate::files;

/// Percentiles that are printed: name, and share of the requests.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// Maximum number of hosts.
const MOST_HOSTS: usize = 1 << 16;

/// Simulate a plan whose times vary and whose hosts fail, also on more hosts, and print latencies, throughput and losses
///
/// Runs the steps of a plan as discrete events. Without options for variation, a simulation reproduces the plan's value.
/// With --hosts, groups of as many hosts as the plan has run it independently, with requests of their own.
/// All output is named as simulated.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Simulate {
    /// Problem, a divi-problem/1 file
    problem: PathBuf,
    /// Plan for it, a divi-plan/1, divi-plan/2 or divi-plan/3 file
    plan: PathBuf,
    /// File for the result, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Numbers of hosts, multiples of those of the plan, which are the default; A..B doubles from A to B
    #[arg(long, value_name = "N,...|A..B", value_parser = hosts)]
    hosts: Option<Hosts>,
    /// Number of requests of each group of hosts
    #[arg(long, value_name = "N", default_value = "1000", value_parser = divi_cli::positive::<u64>)]
    requests: u64,
    /// Requests in flight in each group; by default as in divi-run: stages of a pipeline and one, or one
    #[arg(long, value_name = "N", value_parser = divi_cli::positive::<usize>)]
    in_flight: Option<usize>,
    /// Coefficient of variation of the times of tasks and transfers, from 0 to 1
    ///
    /// A time is 1 - CV + CV * E times the planned one, with an exponential variable E of mean 1: at least 1 - CV, and
    /// with a long tail.
    #[arg(long, value_name = "CV", default_value = "0", value_parser = share, verbatim_doc_comment)]
    jitter: f64,
    /// Measured times, as divi-run --json prints them, instead of the planned ones
    ///
    /// Each simulated request has the times of a recorded run of the bundle.
    #[arg(long, value_name = "RUN.json")]
    measured: Option<PathBuf>,
    /// Take the times of transfers from --measured, or keep those of the problem
    #[arg(long, value_name = "NAME", default_value = "measured", value_parser = ["measured", "keep"])]
    links: String,
    /// Add the delays with which waiting ranks of divi-run notice messages from other hosts
    ///
    /// A rank sleeps between polls, for an eighth of the time that it has waited and at most 1 ms.
    #[arg(long, verbatim_doc_comment)]
    polling: bool,
    /// Probability that a step is a straggler, and the factor of its time
    #[arg(long, value_name = "P,FACTOR", default_value = "0,1", value_parser = share_and_factor)]
    straggler: ShareAndFactor,
    /// Share of hosts that are slow all the time, and the factor of their times
    #[arg(long, value_name = "SHARE,FACTOR", default_value = "0,1", value_parser = share_and_factor)]
    slow_hosts: ShareAndFactor,
    /// Failures of a host per hour; requests in flight in its group are lost
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    failures: f64,
    /// Time in seconds until a group works again after a failure
    #[arg(long, value_name = "S", default_value = "60", value_parser = divi_cli::seconds)]
    recovery: f64,
    /// Seed of random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

type Hosts = Vec<usize>;
type ShareAndFactor = (f64, f64);

impl Simulate {
    pub(super) fn run(self) -> Result<(), String> {
        let inputs: Vec<_> =
            [Some(&self.problem), Some(&self.plan), self.measured.as_ref()].into_iter().flatten().collect();
        files::check(&inputs.iter().map(|path| path.as_path()).collect::<Vec<_>>(), &[("-o", self.output.as_deref())])?;
        let (problem, plan) = (files::problem(&self.problem)?, files::plan(&self.plan)?);
        let program = Program::of(&problem, &plan).map_err(|error| error.to_string())?;
        let scenario = self.scenario()?;
        let hosts = self.hosts.clone().unwrap_or_else(|| vec![program.hosts]);
        let outcomes: Vec<Outcome> =
            hosts.into_iter().map(|hosts| simulate(&program, &scenario, hosts)).collect::<Result<_, String>>()?;
        let in_flight = scenario.in_flight.unwrap_or(program.in_flight);
        let text = if self.json {
            format!("{}\n", self.as_json(in_flight, &outcomes))
        } else {
            self.as_table(in_flight, &outcomes)
        };
        files::write(self.output.as_deref(), &text)
    }

    fn scenario(&self) -> Result<Scenario, String> {
        let measured = match &self.measured {
            Some(path) => {
                let measured = Measured::read(&files::read(path)?);
                let measured = measured.map_err(|error| format!("{}: {error}", files::label(path)))?;
                Some(if self.links == "keep" { measured.without_transfers() } else { measured })
            }
            None => None,
        };
        let variation =
            Variation { jitter: self.jitter, straggler: self.straggler, slow_hosts: self.slow_hosts, measured };
        Ok(Scenario {
            requests: self.requests,
            // The first requests meet empty queues.
            warm_up: self.requests / 10,
            in_flight: self.in_flight,
            variation,
            has_polling: self.polling,
            failures_per_hour: self.failures,
            recovery: self.recovery * 1e6,
            seed: self.seed,
        })
    }

    fn as_table(&self, in_flight: usize, outcomes: &[Outcome]) -> String {
        let measured = match &self.measured {
            Some(path) => format!("times of {}, ", files::label(path)),
            None => String::new(),
        };
        let polling = if self.polling { "polling, " } else { "" };
        let mut lines = vec![format!(
            "simulated: {} requests per group, {in_flight} in flight; {measured}{polling}jitter {}, stragglers {} % x {}, slow hosts {} % x \
             {}, {} failures per host and hour, recovery {} s; seed {}",
            self.requests,
            self.jitter,
            self.straggler.0 * 100.0,
            self.straggler.1,
            self.slow_hosts.0 * 100.0,
            self.slow_hosts.1,
            self.failures,
            self.recovery,
            self.seed
        )];
        let [p50, p90, p99, p999] = PERCENTILES.map(|(name, _)| format!("{name} µs"));
        lines.push(format!(
            "simulated {:>6} {:>6} {:>12} {:>8} {p50:>12} {p90:>12} {p99:>12} {p999:>12} {:>8} {:>7}",
            "hosts", "groups", "inputs/s", "of plan", "lost", "down"
        ));
        for outcome in outcomes {
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            let latency =
                |(_, share)| outcome.latency(share).map_or_else(|| "-".to_owned(), |micros| format!("{micros:.1}"));
            let [p50, p90, p99, p999] = PERCENTILES.map(latency);
            lines.push(format!(
                "simulated {:>6} {:>6} {:>12.2} {:>8} {p50:>12} {p90:>12} {p99:>12} {p999:>12} {:>8} {:>7}",
                outcome.hosts,
                outcome.groups,
                outcome.throughput,
                percent(outcome.throughput / outcome.planned_throughput),
                outcome.lost,
                percent(outcome.down)
            ));
        }
        lines.join("\n") + "\n"
    }

    fn as_json(&self, in_flight: usize, outcomes: &[Outcome]) -> Value {
        let row = |outcome: &Outcome| {
            let latencies: serde_json::Map<String, Value> =
                PERCENTILES.iter().map(|(name, share)| ((*name).to_owned(), json!(outcome.latency(*share)))).collect();
            json!({
                "hosts": outcome.hosts,
                "groups": outcome.groups,
                "planned_throughput_per_s": outcome.planned_throughput,
                "simulated_throughput_per_s": outcome.throughput,
                "simulated_latency_us": latencies,
                "simulated_completed": outcome.completed,
                "simulated_lost": outcome.lost,
                "simulated_down": outcome.down,
            })
        };
        json!({
            "simulated": true,
            "requests": self.requests,
            "in_flight": in_flight,
            "jitter": self.jitter,
            "measured": self.measured.as_ref().map(|path| files::label(path)),
            "polling": self.polling,
            "straggler": [self.straggler.0, self.straggler.1],
            "slow_hosts": [self.slow_hosts.0, self.slow_hosts.1],
            "failures_per_hour": self.failures,
            "recovery_s": self.recovery,
            "seed": self.seed,
            "rows": outcomes.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// Parses numbers of hosts.
fn hosts(text: &str) -> Result<Hosts, String> {
    let count = |text: &str| text.parse().ok().filter(|count| (1..=MOST_HOSTS).contains(count));
    let hosts = match text.split_once("..") {
        Some((first, last)) => count(first).zip(count(last)).map(|(first, last)| doubled(first..=last)),
        None => text.split(',').map(count).collect(),
    };
    let hosts = hosts.filter(|hosts: &Hosts| !hosts.is_empty());
    hosts.ok_or_else(|| format!("must be numbers from 1 to {MOST_HOSTS}, as in 16,64, or a range, as in 16..1024"))
}

/// Returns the first number and its doubles within a range.
fn doubled(range: RangeInclusive<usize>) -> Hosts {
    std::iter::successors(Some(*range.start()), |count| count.checked_mul(2))
        .take_while(|count| range.contains(count))
        .collect()
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be from 0 to 1".to_owned())
}

fn share_and_factor(text: &str) -> Result<ShareAndFactor, String> {
    let parse = |(part, factor): (&str, &str)| {
        let factor = factor.parse().ok().filter(|factor| (1.0..=1e6).contains(factor));
        share(part).ok().zip(factor)
    };
    let found = text.split_once(',').and_then(parse);
    found.ok_or_else(|| "must be a share from 0 to 1 and a factor from 1 to 1000000, as in 0.01,3".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "must be a number that is not negative".to_owned())
}
