//! Options of planning, and their conversion from the options of the pass.

use crate::declared::Partition;
use divi_planner::{
    DEFAULT_ALGORITHM, Objective,
    plan::{LaunchRule, Limit},
    problem::Contention,
};
use std::{path::PathBuf, str::FromStr};

/// Objective, algorithm and constraints of a plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Default: batch if several inputs are queued, otherwise latency.
    pub objective: Option<Objective>,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Number of launches of a task on each device for queued inputs. Default: that of the planner, or of the plan that is
    /// replayed.
    pub launches: Option<LaunchRule>,
    /// Seed, limits and options of single objectives.
    pub planner: divi_planner::Options,
    /// `PATTERN=DEVICE`: tasks that must run on a device.
    pub pins: Vec<String>,
    /// `PATTERN=DEVICE`: tasks that must not run on a device.
    pub exclusions: Vec<String>,
    /// `PATTERN=GROUP`: tasks that share a device with all others of their group.
    pub groups: Vec<String>,
    /// `PATTERN`: tasks that read their weights from the host's memory if they run on a GPU.
    pub host_weights: Vec<String>,
    /// File of placements by regular expressions.
    pub placement: Option<PathBuf>,
    /// File of a plan to replay, instead of solving.
    pub plan: Option<PathBuf>,
    /// Contention between transfers on one bus, instead of the module's.
    pub contention: Option<Contention>,
    /// True if parameters are in the host's memory when an input arrives.
    pub cold: bool,
    /// Fraction of the parameters copied by such a plan that is still resident when the next input is planned.
    pub resident: Option<f64>,
    /// Minimum gain of several devices: the time on one device alone exceeds theirs by this fraction. Default: the
    /// accuracy of the costs.
    pub min_gain: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            objective: None,
            algorithm: DEFAULT_ALGORITHM.to_owned(),
            launches: None,
            planner: divi_planner::Options::default(),
            pins: vec![],
            exclusions: vec![],
            groups: vec![],
            host_weights: vec![],
            placement: None,
            plan: None,
            contention: None,
            cold: false,
            resident: None,
            min_gain: None,
        }
    }
}

impl Options {
    /// Converts the options of the pass. Zero, or an empty string, means that an option is not given.
    pub(super) fn of(pass: &Partition) -> Result<Self, String> {
        check_signs(pass)?;
        let limit = match (pass.iterations, pass.time_limit) {
            (Some(_), Some(_)) => return Err("only one of iterations and time-limit can be given".into()),
            (Some(iterations), None) => Some(Limit::Iterations(iterations.unsigned_abs())),
            (None, Some(seconds)) if !seconds.is_finite() => return Err(WRONG_SECONDS.into()),
            (None, Some(seconds)) => Some(Limit::Seconds(seconds)),
            (None, None) => None,
        };
        let launches = parse("launches", &pass.launches)?;
        let planner = divi_planner::Options {
            seed: u64::try_from(pass.seed).map_err(|_| format!("seed is {}: it must not be negative", pass.seed))?,
            limit,
            inputs: count("inputs", pass.inputs)?,
            stages: count("k", pass.stages)?,
            pipeline_cost: parse("pipeline-cost", &pass.pipeline_cost)?,
            shared_devices: pass.shared_devices,
            max_batch: count("max-batch", pass.max_batch)?,
            max_replicas: count("replicas", pass.replicas)?,
            order: parse("order", &pass.order)?,
            symmetry: parse("symmetry", &pass.symmetry)?.unwrap_or_default(),
            launches: launches.unwrap_or(divi_planner::Options::default().launches),
            is_executed: true,
            ..divi_planner::Options::default()
        };
        if let Some(share) = pass.resident.filter(|&share| share > 1.0) {
            return Err(format!("resident is {share}: it must be a fraction from 0 to 1"));
        }
        let file = |path: &PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        Ok(Self {
            objective: parse("objective", &pass.objective)?,
            algorithm: non_empty(&pass.algorithm).unwrap_or(DEFAULT_ALGORITHM).to_owned(),
            launches,
            planner,
            pins: pass.pins.clone(),
            exclusions: pass.exclusions.clone(),
            groups: pass.groups.clone(),
            host_weights: pass.host_weights.clone(),
            placement: file(&pass.placement),
            plan: file(&pass.plan),
            contention: non_empty(&pass.contention).map(contention).transpose()?,
            cold: pass.cold || pass.resident.is_some(),
            resident: pass.resident,
            min_gain: pass.min_gain,
        })
    }
}

const WRONG_SECONDS: &str = "time-limit must be a non-negative number of seconds";

/// Rejects negative numbers and NaN.
fn check_signs(pass: &Partition) -> Result<(), String> {
    let is_wrong = |value: Option<f64>| value.is_some_and(|value| value.is_nan() || value < 0.0);
    if pass.iterations.is_some_and(|iterations| iterations < 0) {
        return Err("iterations must not be negative".into());
    }
    if is_wrong(pass.time_limit) {
        return Err(WRONG_SECONDS.into());
    }
    if is_wrong(pass.resident) {
        return Err("resident must be a fraction from 0 to 1".into());
    }
    if is_wrong(pass.min_gain) {
        return Err("min-gain must be a non-negative fraction, such as 0.05 for 5 %".into());
    }
    Ok(())
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn parse<T: FromStr<Err = divi_planner::Error>>(option: &str, text: &str) -> Result<Option<T>, String> {
    non_empty(text).map(|text| text.parse().map_err(|error| format!("{option}: {error}"))).transpose()
}

fn count(option: &str, value: i64) -> Result<Option<u32>, String> {
    match u32::try_from(value) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(format!("{option} is {value}: it must be a number from 1 to {}", u32::MAX)),
    }
}

fn contention(name: &str) -> Result<Contention, String> {
    let all = [Contention::Off, Contention::Exclusive, Contention::Shared];
    all.into_iter()
        .find(|contention| contention.to_string() == name)
        .ok_or_else(|| format!("contention is '{name}': it must be off, exclusive or shared"))
}
