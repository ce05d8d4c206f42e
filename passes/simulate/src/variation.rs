//! Distributions of the times of steps.
//!
//! All arithmetic is exact or of basic operations, so that a seed gives the same result on every machine.

use crate::program::Program;
use divi_json::{At, Error, parse};
use divi_planner::random::Random;
use std::collections::BTreeMap;

/// Variation of the times of steps. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    /// Coefficient of variation of each step that was not measured: its time is `1 − jitter + jitter · E` times the planned one,
    /// with an exponential variable `E` of mean 1. From 0 to 1; 1 is an exponential distribution.
    pub jitter: f64,
    /// Probability that a step is a straggler, and the factor of its time.
    pub straggler: (f64, f64),
    /// Share of the hosts that are slow all the time, and the factor of the times of their devices.
    pub slow_hosts: (f64, f64),
    /// Measured times, which replace the planned ones.
    pub measured: Option<Measured>,
}

/// Times of recorded runs of a bundle, as `divi-run --json` prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Inputs of a run.
    inputs: u64,
    /// By device: sum of its launches in each run, in µs.
    devices: BTreeMap<String, Vec<f64>>,
    /// By devices that send and receive: sum of the transfers in each run, in µs.
    links: BTreeMap<(String, String), Vec<f64>>,
}

impl Measured {
    /// Reads the output of `divi-run --json`.
    pub fn read(text: &str) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        let inputs = root.field("inputs")?;
        let mut measured = Self { inputs: inputs.count()?, ..Self::default() };
        let steps = root.field("steps")?;
        let mut count = None;
        for step in steps.items()? {
            let Some(runs) = step.optional("runs_us")? else { continue };
            let times: Vec<f64> = runs.items()?.iter().map(At::amount).collect::<Result<_, Error>>()?;
            if times.is_empty() {
                return Err(runs.error("has no runs: measure the bundle in one process, not with several ranks"));
            }
            if *count.get_or_insert(times.len()) != times.len() {
                return Err(runs.error("must have as many runs as the other steps"));
            }
            let text = |key| step.field(key)?.string().map(str::to_owned);
            let sums = match step.optional("device")? {
                Some(device) => measured.devices.entry(device.string()?.to_owned()).or_default(),
                None => measured.links.entry((text("from")?, text("to")?)).or_default(),
            };
            sums.resize(times.len(), 0.0);
            sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        }
        match count {
            Some(_) => Ok(measured),
            None => Err(steps.error("must have steps with 'runs_us': write it with divi-run --json")),
        }
    }

    /// Keeps the times of launches only.
    pub fn without_transfers(self) -> Self {
        Self { links: BTreeMap::new(), ..self }
    }

    fn runs(&self) -> usize {
        self.devices.values().chain(self.links.values()).map(Vec::len).next().unwrap_or(0)
    }
}

/// Random times of the steps of a program.
pub(crate) struct Sampler<'a> {
    program: &'a Program,
    variation: &'a Variation,
    /// By step: factors of its planned time in the measured runs.
    factors: Vec<Option<&'a [f64]>>,
    runs: usize,
    /// By host.
    is_slow: Vec<bool>,
    random: Random,
}

/// Measured time relative to the planned one, by run, of all steps on a device or link.
pub(crate) struct Factors {
    lists: Vec<Vec<f64>>,
    of_step: Vec<Option<usize>>,
    runs: usize,
}

impl Factors {
    /// Compares the measured times with those of a program. Fails if they are not of the same plan.
    pub(crate) fn of(program: &Program, measured: Option<&Measured>) -> Result<Self, String> {
        let mut factors = Self { lists: vec![], of_step: vec![None; program.steps.len()], runs: 0 };
        let Some(measured) = measured else { return Ok(factors) };
        if measured.inputs != program.inputs {
            return Err(format!(
                "a measured run has {} inputs, and a request of the plan has {}: measure a bundle of this plan",
                measured.inputs, program.inputs
            ));
        }
        factors.runs = measured.runs();
        let name = |device: usize| &program.resources[device].name;
        for (device, times) in &measured.devices {
            let is_of = |step: &crate::Step| step.link.is_none() && step.resource.is_some_and(|on| name(on) == device);
            factors.add(program, times, is_of);
        }
        for ((from, to), times) in &measured.links {
            factors.add(program, times, |step| step.link.is_some_and(|(a, b)| (name(a), name(b)) == (from, to)));
        }
        let is_missing = |(step, factor): (&crate::Step, &Option<usize>)| {
            factor.is_none() && step.link.is_none() && step.time.0 > 0.0
        };
        match program
            .steps
            .iter()
            .zip(&factors.of_step)
            .find(|pair| is_missing(*pair))
            .and_then(|(step, _)| step.resource)
        {
            Some(device) => Err(format!(
                "the measured runs have no launches on device '{}': measure a bundle of this plan in one process",
                name(device)
            )),
            None => Ok(factors),
        }
    }

    fn add(&mut self, program: &Program, times: &[f64], is_of: impl Fn(&crate::Step) -> bool) {
        let steps: Vec<usize> = (0..program.steps.len()).filter(|step| is_of(&program.steps[*step])).collect();
        let planned: f64 = steps.iter().map(|step| program.steps[*step].time.0).sum();
        if planned > 0.0 {
            steps.iter().for_each(|&step| self.of_step[step] = Some(self.lists.len()));
            self.lists.push(times.iter().map(|time| time / planned).collect());
        }
    }
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(program: &'a Program, variation: &'a Variation, factors: &'a Factors, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_slow = (0..program.hosts).map(|_| random.chance(variation.slow_hosts.0)).collect();
        let of_step = factors.of_step.iter().map(|list| list.map(|list| &factors.lists[list][..])).collect();
        Self { program, variation, factors: of_step, runs: factors.runs, is_slow, random }
    }

    /// Returns the measured run whose times a request has.
    pub(crate) fn run(&mut self) -> usize {
        if self.runs > 0 { self.random.below(self.runs) } else { 0 }
    }

    /// Returns the time of a step of a request with the times of a measured run, in µs.
    pub(crate) fn time(&mut self, step: usize, run: usize) -> f64 {
        let Variation { jitter, straggler, slow_hosts, .. } = *self.variation;
        let of = &self.program.steps[step];
        let mut time = of.time.0;
        match self.factors[step] {
            Some(factors) => time *= factors[run],
            None if jitter > 0.0 => time *= 1.0 - jitter + jitter * self.exponential(),
            None => {}
        }
        if straggler.0 > 0.0 && self.random.chance(straggler.0) {
            time *= straggler.1;
        }
        let host = of.resource.and_then(|resource| self.program.resources[resource].host);
        if host.is_some_and(|host| self.is_slow[host]) { time * slow_hosts.1 } else { time }
    }

    /// Returns a number that is uniformly distributed up to a limit.
    pub(crate) fn up_to(&mut self, limit: f64) -> f64 {
        limit * self.random.unit()
    }

    /// Returns an exponentially distributed number with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // Above zero: the logarithm is finite.
        -natural_logarithm(1.0 - self.random.unit())
    }
}

/// Returns the natural logarithm of a normal number in (0, 1]: ln(m · 2^e) with the series of ln m = 2 artanh((m − 1) / (m + 1)) for m in
/// [0.5, 1). Libraries for mathematics round differently.
fn natural_logarithm(number: f64) -> f64 {
    const TERMS: u32 = 18;
    let bits = number.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1022;
    let mantissa = f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52));
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let (square, mut power, mut sum) = (z * z, z, 0.0);
    for term in 0..TERMS {
        sum += power / f64::from(2 * term + 1);
        power *= square;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_accurate() {
        for number in [1.0, 0.999_999, 0.75, 0.5, 0.3, 1e-3, 1e-10, f64::EPSILON / 2.0] {
            let (ours, exact) = (natural_logarithm(number), number.ln());
            assert!((ours - exact).abs() <= 1e-14 * exact.abs().max(1.0), "{number}: {ours} {exact}");
        }
    }

    #[test]
    fn measured_runs_are_sums_by_device_and_link() {
        let text = r#"{"inputs": 1, "steps": [
            {"name": "a", "us": 2, "device": "cpu0", "runs_us": [1, 3]},
            {"name": "b", "us": 2, "device": "cpu0", "runs_us": [10, 30]},
            {"name": "t", "us": 2, "from": "cpu0", "to": "cpu1", "runs_us": [5, 5]}, {"name": "other", "us": 0}]}"#;
        let measured = Measured::read(text).unwrap();
        assert_eq!(measured.devices["cpu0"], [11.0, 33.0]);
        assert_eq!(measured.links[&("cpu0".to_owned(), "cpu1".to_owned())], [5.0, 5.0]);
        assert!(measured.without_transfers().links.is_empty());
        let fails = |text: &str, expected: &str| assert_eq!(Measured::read(text).unwrap_err().to_string(), expected);
        fails("{", "not JSON: EOF while parsing an object at line 1 column 1");
        fails(r#"{"inputs": 1, "steps": []}"#, "steps: must have steps with 'runs_us': write it with divi-run --json");
        let step = |runs: &str| {
            format!(
                r#"{{"inputs": 1, "steps": [{{"device": "a", "runs_us": [1]}}, {{"device": "b", "runs_us": {runs}}}]}}"#
            )
        };
        fails(&step("[-1]"), "steps[1].runs_us[0]: must be a number that is not negative, is -1");
        fails(&step("[]"), "steps[1].runs_us: has no runs: measure the bundle in one process, not with several ranks");
        fails(&step("[1, 2]"), "steps[1].runs_us: must have as many runs as the other steps");
    }
}
