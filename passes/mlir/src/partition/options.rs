//! What to plan for, and how, read from the options of the pass.

use crate::declared::Partition;
use divi_planner::{DEFAULT_ALGORITHM, Objective, plan::Limit, problem::Contention};
use std::{path::PathBuf, str::FromStr};

/// What to plan for, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// By default batch where several inputs are queued, else latency.
    pub objective: Option<Objective>,
    pub algorithm: String,
    /// Seed, limits and what only some objectives have.
    pub planner: divi_planner::Options,
    /// `PATTERN=DEVICE`: what runs there.
    pub pins: Vec<String>,
    /// `PATTERN=DEVICE`: what does not run there.
    pub exclusions: Vec<String>,
    /// `PATTERN=GROUP`: what shares a device with all others of its group.
    pub groups: Vec<String>,
    /// `PATTERN`: what reads its weights from the host's memory if it runs on a GPU.
    pub host_weights: Vec<String>,
    /// A file of placements by regular expressions.
    pub placement: Option<PathBuf>,
    /// A plan to replay, instead of solving.
    pub plan: Option<PathBuf>,
    /// What transfers on one bus do to each other, instead of what the module says.
    pub contention: Option<Contention>,
    /// Whether parameters are in the host's memory and come with the input.
    pub cold: bool,
    /// The share of what such a plan has copied that is still there when the next input is planned.
    pub resident: Option<f64>,
    /// Several devices are used only where one alone takes at least this share longer; by default what costs are exact to.
    pub min_gain: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            objective: None,
            algorithm: DEFAULT_ALGORITHM.to_owned(),
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
    /// Reads the options of the pass. Zero, or an empty text, stands for what is not given.
    pub(super) fn of(pass: &Partition) -> Result<Self, String> {
        check_signs(pass)?;
        let limit = match (pass.iterations, pass.time_limit) {
            (Some(_), Some(_)) => return Err("only one of iterations and time-limit can be given".into()),
            (Some(iterations), None) => Some(Limit::Iterations(iterations.unsigned_abs())),
            (None, Some(seconds)) if !seconds.is_finite() => return Err(WRONG_SECONDS.into()),
            (None, Some(seconds)) => Some(Limit::Seconds(seconds)),
            (None, None) => None,
        };
        let planner = divi_planner::Options {
            seed: u64::try_from(pass.seed).map_err(|_| format!("seed is {}: it must not be negative", pass.seed))?,
            limit,
            inputs: count("inputs", pass.inputs)?,
            stages: count("k", pass.stages)?,
            pipeline_cost: parse("pipeline-cost", &pass.pipeline_cost)?,
            shared_devices: pass.shared_devices,
            order: parse("order", &pass.order)?,
            symmetry: parse("symmetry", &pass.symmetry)?.unwrap_or_default(),
            ..divi_planner::Options::default()
        };
        if let Some(share) = pass.resident.filter(|&share| share > 1.0) {
            return Err(format!("resident is {share}: it must be a share from 0 to 1"));
        }
        let file = |path: &PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        Ok(Self {
            objective: parse("objective", &pass.objective)?,
            algorithm: given(&pass.algorithm).unwrap_or(DEFAULT_ALGORITHM).to_owned(),
            planner,
            pins: pass.pins.clone(),
            exclusions: pass.exclusions.clone(),
            groups: pass.groups.clone(),
            host_weights: pass.host_weights.clone(),
            placement: file(&pass.placement),
            plan: file(&pass.plan),
            contention: given(&pass.contention).map(contention).transpose()?,
            cold: pass.cold || pass.resident.is_some(),
            resident: pass.resident,
            min_gain: pass.min_gain,
        })
    }
}

const WRONG_SECONDS: &str = "time-limit must be a number of seconds from 0 on";

/// Refuses negative numbers, and what is no number.
fn check_signs(pass: &Partition) -> Result<(), String> {
    let is_wrong = |value: Option<f64>| value.is_some_and(|value| value.is_nan() || value < 0.0);
    if pass.iterations.is_some_and(|iterations| iterations < 0) {
        return Err("iterations must not be negative".into());
    }
    if is_wrong(pass.time_limit) {
        return Err(WRONG_SECONDS.into());
    }
    if is_wrong(pass.resident) {
        return Err("resident must be a share from 0 to 1".into());
    }
    if is_wrong(pass.min_gain) {
        return Err("min-gain must be a share from 0 on, as 0.05 for 5 %".into());
    }
    Ok(())
}

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn parse<T: FromStr<Err = divi_planner::Error>>(option: &str, text: &str) -> Result<Option<T>, String> {
    given(text).map(|text| text.parse().map_err(|error| format!("{option}: {error}"))).transpose()
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
