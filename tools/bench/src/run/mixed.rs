//! Plans for several devices: for one input and for a queue if the model is too large for the fastest device, and for a
//! pipeline. Reports predicted and measured times, overlap of devices, and errors relative to the outputs of one CPU.

use super::{
    Settings,
    build::{Plan, Weights, bundle, write},
    launch::repeat,
    machine::Machine,
    trace::share_at_once,
};
use crate::runs::median;
use divi_npy::npy;
use std::{
    fs,
    path::{Path, PathBuf},
};

const MODELS: [&str; 4] = ["googlenet", "resnet18", "squeezenet1_1", "mobilenet_v2"];

/// Number of inputs in the queue.
const QUEUED: u32 = 8;
/// Batch sizes allowed for the queue.
const BATCHES: [u32; 4] = [1, 2, 4, QUEUED];
/// Available fraction of the memory that the fastest device would need alone, so that one device is not enough.
pub(super) const MEMORY: f64 = 0.6;
/// Number of alternations between the plan and its baseline.
pub(super) const TURNS: usize = 5;

pub(super) fn mixed(settings: &Settings) -> Result<(), String> {
    println!(
        "plans on several devices: for one input and for {QUEUED} queued ones, with the memory of the last device limited to {:.0} % of what\n\
         it would need alone, and for a pipeline, with all memory. Milliseconds for the input, the queue, or an input of the pipeline,\n\
         medians of {TURNS} alternations; predicted and measured speedup over --algorithm=single, which fills that device, or over a pipeline\n\
         of one device; fraction of time in which two devices were busy; error relative to the outputs of a CPU",
        MEMORY * 100.0
    );
    println!(
        "{:<20} {:<9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>8} {:>8}",
        "model", "plan", "predicted", "measured", "error", "gain", "meas.", "overlap", "rel. err"
    );
    let machine = Machine::new(settings)?;
    for model in settings.models_or(&MODELS) {
        let system = machine.measure(&model, &BATCHES)?;
        for kind in [Kind::Input, Kind::Queue, Kind::Pipeline] {
            let row = Bench::new(&model, kind, &system, &machine)?.row()?;
            println!(
                "{model:<20} {:<9} {:>9.3} {:>9.3} {:>+6.1} % {:>6.2}x {:>6.2}x {:>6.1} % {:>8.1e}",
                kind.name(),
                row.predicted / 1e3,
                row.measured / 1e3,
                (row.predicted / row.measured - 1.0) * 100.0,
                row.gain[0],
                row.gain[1],
                row.at_once * 100.0,
                row.error
            );
        }
    }
    Ok(())
}

/// Objective of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Input,
    Queue,
    Pipeline,
}

/// Everything on one device, as long as memory suffices.
const SINGLE: &str = "--algorithm=single";

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Queue => "queue",
            Self::Pipeline => "pipeline",
        }
    }
}

/// A plan for several devices, a baseline on a single device as far as memory suffices, and a CPU bundle for reference outputs.
struct Bench<'a> {
    kind: Kind,
    machine: &'a Machine,
    together: PathBuf,
    alone: PathBuf,
    reference: PathBuf,
}

struct Row {
    /// Microseconds.
    predicted: f64,
    measured: f64,
    /// Predicted and measured speedup over the baseline.
    gain: [f64; 2],
    at_once: f64,
    error: f64,
}

impl<'a> Bench<'a> {
    fn new(model: &str, kind: Kind, system: &Path, machine: &'a Machine) -> Result<Self, String> {
        let queued = format!("--inputs={QUEUED}");
        let shared: Vec<&str> = match kind {
            Kind::Input => vec![],
            Kind::Queue => vec![&queued],
            Kind::Pipeline => vec!["--objective=pipeline", machine.pipeline_cost()],
        };
        let make = |name: &str, system: &Path, special: &[&str]| {
            let options = shared.iter().chain(special).map(|&option| option.to_owned()).collect();
            let name = format!("mixed-{}-{name}", kind.name());
            bundle(model, &name, Weights::Seed, &Plan { system: system.to_owned(), options }).map(|(folder, _)| folder)
        };
        let (together, alone) = match kind {
            Kind::Pipeline => (make("together", system, &[])?, make("alone", system, &["--k=1"])?),
            Kind::Input | Kind::Queue => {
                let roomy = machine.launch(&make("roomy", system, &[SINGLE])?, &[])?;
                let taken: f64 = ["weights", "arena", "values"].map(|what| roomy.sum_of_devices(what)).iter().sum();
                let system = bounded(system, (taken * MEMORY) as u64, false)?;
                (make("together", &system, &[])?, make("alone", &system, &[SINGLE])?)
            }
        };
        let mut plan = Plan::single(1)?;
        plan.options.extend((kind == Kind::Queue).then(|| format!("--batch={QUEUED}")));
        let (reference, _) = bundle(model, &format!("mixed-{}-cpu", kind.name()), Weights::Seed, &plan)?;
        Ok(Self { kind, machine, together, alone, reference })
    }

    fn row(&self) -> Result<Row, String> {
        let (mut measured, mut gains, mut predicted) = (vec![], vec![], [0.0; 2]);
        let runs = [self.runs(&self.together)?, self.runs(&self.alone)?];
        for _ in 0..TURNS {
            let [together, alone] = [self.time(&self.together, &runs[0])?, self.time(&self.alone, &runs[1])?];
            predicted = [together.0, alone.0];
            measured.push(together.1);
            gains.push(alone.1 / together.1);
        }
        let trace = beside(&self.together, "trace.json");
        let mut options = self.flight();
        options.extend([
            "--repeat=20".to_owned(),
            format!("--trace={}", trace.display()),
            format!("--output={}", beside(&self.together, "outputs").display()),
        ]);
        self.machine.launch(&self.together, &options)?;
        self.machine
            .launch(&self.reference, &[format!("--output={}", beside(&self.reference, "outputs").display())])?;
        Ok(Row {
            predicted: predicted[0],
            measured: median(&measured),
            gain: [predicted[1] / predicted[0], median(&gains)],
            at_once: share_at_once(&read(&trace)?)?,
            error: relative_error(&beside(&self.together, "outputs"), &beside(&self.reference, "outputs"))?,
        })
    }

    fn runs(&self, bundle: &Path) -> Result<Vec<String>, String> {
        let seconds = self.machine.seconds / TURNS as f64;
        let inputs = if self.kind == Kind::Queue { QUEUED } else { 1 };
        Ok([vec![repeat(bundle, seconds / f64::from(inputs))?], self.flight()].concat())
    }

    fn flight(&self) -> Vec<String> {
        let in_flight = (self.kind == Kind::Pipeline).then(|| "--in-flight=4".to_owned());
        std::iter::once("--warmup=20".to_owned()).chain(in_flight).collect()
    }

    /// Returns the predicted and the measured time, in microseconds.
    fn time(&self, bundle: &Path, runs: &[String]) -> Result<(f64, f64), String> {
        let launched = self.machine.launch(bundle, runs)?;
        let measured = match self.kind {
            Kind::Pipeline => 1e6 / launched.number("/throughput_per_s")?,
            Kind::Input | Kind::Queue => launched.number("/latency_us/median")?,
        };
        Ok((launched.number("/predicted_us")?, measured))
    }
}

/// Returns a path next to a bundle, which holds nothing but itself.
pub(super) fn beside(bundle: &Path, what: &str) -> PathBuf {
    let name = bundle.file_name().unwrap_or_default().display();
    bundle.with_file_name(format!("{name}-{what}"))
}

/// Writes a system whose last device, or whose devices all have limited memory.
pub(super) fn bounded(system: &Path, bytes: u64, all: bool) -> Result<PathBuf, String> {
    let text = read(system)?;
    let first = if all { text.find("[[device]]") } else { text.rfind("[[device]]") };
    let (before, devices) = text.split_at(first.ok_or("the system has no device")?);
    let limited = devices.lines().map(|line| match line.starts_with("memory = ") {
        true => format!("memory = {bytes}\n"),
        false => format!("{line}\n"),
    });
    let name = format!("{}-bounded.toml", system.file_stem().unwrap_or_default().display());
    write(&name, &(before.to_owned() + &limited.collect::<String>()))
}

/// Returns the largest difference of outputs, relative to the largest element of each output.
pub(super) fn relative_error(outputs: &Path, others: &Path) -> Result<f64, String> {
    let mut worst = 0f64;
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    for entry in fs::read_dir(others).map_err(|error| failed(others, &error))? {
        let other = entry.map_err(|error| failed(others, &error))?.path();
        let path = outputs.join(other.file_name().unwrap_or_default());
        let [ours, theirs] = [&path, &other].map(|path| {
            let bytes = fs::read(path).map_err(|error| failed(path, &error))?;
            let tensor = npy::read(&bytes).map_err(|error| failed(path, &error))?;
            tensor.to_f32().ok_or_else(|| failed(path, &"elements are not f32"))
        });
        let (ours, theirs) = (ours?, theirs?);
        if ours.len() != theirs.len() {
            return Err(failed(&path, &format!("{} elements; expected {}", ours.len(), theirs.len())));
        }
        if let Some(number) = theirs.iter().find(|number| !number.is_finite()) {
            return Err(failed(&other, &format!("the reference contains {number}")));
        }
        let largest = theirs.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let difference =
            ours.iter().zip(&theirs).map(|(one, other)| if one == other { 0.0 } else { (one - other).abs() });
        let difference = difference
            .fold(0f32, |most, difference| if difference.is_nan() { f32::INFINITY } else { most.max(difference) });
        worst = worst.max(f64::from(difference / largest.max(f32::MIN_POSITIVE)));
    }
    Ok(worst)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
