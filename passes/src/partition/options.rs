//! What to plan for, and how: what users give, and how it comes from C++.

use crate::ir::text;
use divi_planner::{DEFAULT_ALGORITHM, Objective, plan::Limit, problem::Contention};
use mlir_sys::MlirStringRef;
use std::path::PathBuf;

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

/// As in `cpp/Passes.cpp`.
#[repr(C)]
pub(super) struct RawOptions {
    objective: MlirStringRef,
    algorithm: MlirStringRef,
    pipeline_cost: MlirStringRef,
    order: MlirStringRef,
    contention: MlirStringRef,
    symmetry: MlirStringRef,
    /// A line each.
    pins: MlirStringRef,
    exclusions: MlirStringRef,
    groups: MlirStringRef,
    host_weights: MlirStringRef,
    placement: MlirStringRef,
    plan: MlirStringRef,
    inputs: i64,
    stages: i64,
    seed: i64,
    /// Negative is none.
    iterations: i64,
    seconds: f64,
    resident: f64,
    /// -1 is none.
    min_gain: f64,
    shared_devices: bool,
    cold: bool,
}

impl RawOptions {
    /// Zero, or nothing, stands for what is not given.
    pub(super) fn read(&self) -> Result<Options, String> {
        // SAFETY: the caller's strings outlive the options.
        let given = |string: MlirStringRef| Some(unsafe { text(string) }).filter(|text| !text.is_empty());
        let parse = |what: &str, message: String| format!("{what}: {message}");
        let count = |name: &str, value: i64| match u32::try_from(value) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(format!("{name} is {value}: it must be a number from 1 to {}", u32::MAX)),
        };
        let lines = |string| given(string).map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default();
        let limit = match (self.iterations >= 0, self.seconds >= 0.0) {
            (true, true) => return Err("only one of iterations and time-limit can be given".into()),
            (true, false) => Some(Limit::Iterations(self.iterations as u64)),
            (false, true) if !self.seconds.is_finite() => {
                return Err("time-limit must be a number of seconds from 0 on".into());
            }
            (false, true) => Some(Limit::Seconds(self.seconds)),
            (false, false) => None,
        };
        let planner = divi_planner::Options {
            seed: u64::try_from(self.seed).map_err(|_| format!("seed is {}: it must not be negative", self.seed))?,
            limit,
            inputs: count("inputs", self.inputs)?,
            stages: count("k", self.stages)?,
            pipeline_cost: given(self.pipeline_cost)
                .map(|name| {
                    name.parse().map_err(|error: divi_planner::Error| parse("pipeline-cost", error.to_string()))
                })
                .transpose()?,
            shared_devices: self.shared_devices,
            order: given(self.order)
                .map(|name| name.parse().map_err(|error: divi_planner::Error| parse("order", error.to_string())))
                .transpose()?,
            symmetry: given(self.symmetry)
                .map(|name| name.parse().map_err(|error: divi_planner::Error| parse("symmetry", error.to_string())))
                .transpose()?
                .unwrap_or_default(),
            ..divi_planner::Options::default()
        };
        let resident = (self.resident != -1.0).then_some(self.resident);
        if let Some(share) = resident.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(format!("resident is {share}: it must be a share from 0 to 1"));
        }
        Ok(Options {
            objective: given(self.objective)
                .map(|name| name.parse().map_err(|error: divi_planner::Error| parse("objective", error.to_string())))
                .transpose()?,
            algorithm: given(self.algorithm).unwrap_or(DEFAULT_ALGORITHM).to_owned(),
            planner,
            pins: lines(self.pins),
            exclusions: lines(self.exclusions),
            groups: lines(self.groups),
            host_weights: lines(self.host_weights),
            placement: given(self.placement).map(PathBuf::from),
            plan: given(self.plan).map(PathBuf::from),
            contention: given(self.contention).map(contention).transpose()?,
            cold: self.cold || resident.is_some(),
            resident,
            min_gain: (self.min_gain != -1.0).then_some(self.min_gain),
        })
    }
}

fn contention(name: &str) -> Result<Contention, String> {
    let all = [Contention::Off, Contention::Exclusive, Contention::Shared];
    all.into_iter()
        .find(|contention| contention.to_string() == name)
        .ok_or_else(|| format!("contention is '{name}': it must be off, exclusive or shared"))
}
