//! Scenarios: variation, failures and numbers of hosts, and the results of all groups.

use crate::{
    engine,
    program::Program,
    variation::{Factors, Variation},
};

/// Maximum number of requests of all groups together.
const MOST_REQUESTS: u64 = 20_000_000;

/// Maximum number of steps of all requests in flight in a group, which are in memory.
const MOST_PENDING: usize = 1 << 27;

/// Conditions of a simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Requests of each group of hosts.
    pub requests: u64,
    /// First requests of each group that are not part of percentiles and throughput.
    pub warm_up: u64,
    /// Requests in flight in each group; by default that of the program.
    pub in_flight: Option<usize>,
    /// Variation of times.
    pub variation: Variation,
    /// True if hosts notice messages only when they poll, as ranks of `divi-run` do.
    pub has_polling: bool,
    /// Failures of a host per hour.
    pub failures_per_hour: f64,
    /// Time in µs from a failure until the group of the host works again.
    pub recovery: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Simulated results of all groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of hosts.
    pub hosts: usize,
    /// Number of groups, each of which runs the plan.
    pub groups: usize,
    /// Completed requests.
    pub completed: u64,
    /// Requests that were in flight when a host of their group failed.
    pub lost: u64,
    /// Inputs per second of all groups after the warm-up.
    pub throughput: f64,
    /// Inputs per second according to the plan.
    pub planned_throughput: f64,
    /// Share of the time in which a group recovers.
    pub down: f64,
    /// Latencies of requests after the warm-up in µs, ascending.
    latencies: Vec<f64>,
}

impl Outcome {
    /// Returns a percentile of the latencies in µs: the smallest that is not below a share of them. `None` if no request was completed
    /// after the warm-up.
    pub fn latency(&self, share: f64) -> Option<f64> {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.max(1) - 1).copied()
    }
}

/// Simulates a plan on a number of hosts, divided into groups of as many hosts as the plan has. Each group has requests of its own,
/// and groups do not share links.
pub fn simulate(program: &Program, scenario: &Scenario, hosts: usize) -> Result<Outcome, String> {
    let groups = hosts / program.hosts.max(1);
    if groups == 0 || groups * program.hosts != hosts {
        return Err(format!("{hosts} hosts cannot be divided into groups of {}, the hosts of the plan", program.hosts));
    }
    if scenario.requests.saturating_mul(groups as u64) > MOST_REQUESTS {
        return Err(format!(
            "{} requests for each of {groups} groups are more than {MOST_REQUESTS}: simulate fewer",
            scenario.requests
        ));
    }
    let in_flight = scenario.in_flight.unwrap_or(program.in_flight).min(scenario.requests as usize);
    if in_flight.saturating_mul(program.steps.len()) > MOST_PENDING {
        let steps = program.steps.len();
        return Err(format!(
            "{in_flight} requests in flight with {steps} steps each are too many to simulate: allow fewer"
        ));
    }
    let factors = Factors::of(program, scenario.variation.measured.as_ref())?;
    let mut outcome = Outcome {
        hosts,
        groups,
        completed: 0,
        lost: 0,
        throughput: 0.0,
        planned_throughput: program.planned_throughput * groups as f64,
        down: 0.0,
        latencies: vec![],
    };
    let mut time = 0.0;
    for group in 0..groups {
        let result = engine::run(program, scenario, &factors, seed_of(scenario.seed, group as u64));
        outcome.completed += result.completed;
        outcome.lost += result.lost;
        outcome.down += result.down.min(result.end);
        time += result.end;
        let (count, micros) = result.steady;
        if micros > 0.0 {
            outcome.throughput += (count * program.inputs) as f64 / (micros / 1e6);
        }
        outcome.latencies.extend(result.latencies);
    }
    outcome.down = if time > 0.0 { outcome.down / time } else { 0.0 };
    outcome.latencies.sort_by(f64::total_cmp);
    Ok(outcome)
}

/// Returns a seed for a group: an odd multiple, so that groups differ.
fn seed_of(seed: u64, group: u64) -> u64 {
    seed.wrapping_add(group.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e6c_63d0_876a_68ef)
}
