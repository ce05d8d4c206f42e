//! Plans for several devices, run: for one input and for a queue, if the model is too large for the fastest device, and for a
//! pipeline. What they promise and take, how long devices work at the same time, and how far outputs are from those of one CPU.

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

/// Inputs of a queue.
const QUEUED: u32 = 8;
/// Batches that a queue may be cut into.
const BATCHES: [u32; 4] = [1, 2, 4, QUEUED];
/// How much of the memory that the fastest device alone takes there is, so that one device is not enough.
const MEMORY: f64 = 0.6;
/// The plan and the one that it is compared with take turns so often.
const TURNS: usize = 5;

pub(super) fn mixed(settings: &Settings) -> Result<(), String> {
    println!(
        "plans on several devices: for one input and for {QUEUED} queued ones, if the last device has {:.0} % of the memory that it takes for\n\
         that alone, and for a pipeline, with all memory. Milliseconds for the input, the queue, or an input of the pipeline, medians of\n\
         {TURNS} turns; how many times as fast as --algorithm=single, which fills that device, or as a pipeline of one device, as promised\n\
         and as measured; for how much of the time two devices were at work; how far outputs are from those of a CPU",
        MEMORY * 100.0
    );
    println!(
        "{:<20} {:<9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>8} {:>8}",
        "model", "plan", "promised", "measured", "apart", "gain", "is", "at once", "off by"
    );
    let machine = Machine::new(settings)?;
    for model in settings.models_or(&MODELS) {
        let system = machine.measure(&model, &BATCHES)?;
        for kind in [Kind::Input, Kind::Queue, Kind::Pipeline] {
            let row = Bench::new(&model, kind, &system, &machine)?.row()?;
            println!(
                "{model:<20} {:<9} {:>9.3} {:>9.3} {:>+6.1} % {:>6.2}x {:>6.2}x {:>6.1} % {:>8.1e}",
                kind.name(),
                row.promised / 1e3,
                row.measured / 1e3,
                (row.promised / row.measured - 1.0) * 100.0,
                row.gain[0],
                row.gain[1],
                row.at_once * 100.0,
                row.off
            );
        }
    }
    Ok(())
}

/// What a plan is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Input,
    Queue,
    Pipeline,
}

/// Everything on one device, as long as there is room.
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

/// A plan for several devices beside one that is for a single one if there is room, and one for a CPU to compare outputs with.
struct Bench<'a> {
    kind: Kind,
    machine: &'a Machine,
    together: PathBuf,
    alone: PathBuf,
    reference: PathBuf,
}

struct Row {
    /// In microseconds.
    promised: f64,
    measured: f64,
    /// As many times as fast as the other plan, as promised and as measured.
    gain: [f64; 2],
    at_once: f64,
    off: f64,
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
                let system = bounded(system, (taken * MEMORY) as u64)?;
                (make("together", &system, &[])?, make("alone", &system, &[SINGLE])?)
            }
        };
        let mut plan = Plan::single(1)?;
        plan.options.extend((kind == Kind::Queue).then(|| format!("--batch={QUEUED}")));
        let (reference, _) = bundle(model, &format!("mixed-{}-cpu", kind.name()), Weights::Seed, &plan)?;
        Ok(Self { kind, machine, together, alone, reference })
    }

    fn row(&self) -> Result<Row, String> {
        let (mut measured, mut gains, mut promised) = (vec![], vec![], [0.0; 2]);
        let runs = [self.runs(&self.together)?, self.runs(&self.alone)?];
        for _ in 0..TURNS {
            let [together, alone] = [self.time(&self.together, &runs[0])?, self.time(&self.alone, &runs[1])?];
            promised = [together.0, alone.0];
            measured.push(together.1);
            gains.push(alone.1 / together.1);
        }
        let trace = self.together.join("trace.json");
        let mut options = self.flight();
        options.extend([
            "--repeat=20".to_owned(),
            format!("--trace={}", trace.display()),
            format!("--output={}", self.together.join("outputs").display()),
        ]);
        self.machine.launch(&self.together, &options)?;
        self.machine.launch(&self.reference, &[format!("--output={}", self.reference.join("outputs").display())])?;
        Ok(Row {
            promised: promised[0],
            measured: median(&measured),
            gain: [promised[1] / promised[0], median(&gains)],
            at_once: share_at_once(&read(&trace)?)?,
            off: off(&self.together.join("outputs"), &self.reference.join("outputs"))?,
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

    /// What the plan promises and what it takes, in microseconds.
    fn time(&self, bundle: &Path, runs: &[String]) -> Result<(f64, f64), String> {
        let launched = self.machine.launch(bundle, runs)?;
        let measured = match self.kind {
            Kind::Pipeline => 1e6 / launched.number("/throughput_per_s")?,
            Kind::Input | Kind::Queue => launched.number("/latency_us/median")?,
        };
        Ok((launched.number("/predicted_us")?, measured))
    }
}

/// A system whose last device has so many bytes of memory.
fn bounded(system: &Path, bytes: u64) -> Result<PathBuf, String> {
    let text = read(system)?;
    let last = text.rfind("[[device]]").ok_or("the system has no device")?;
    let start = last + text[last..].find("\nmemory = ").ok_or("a device has no memory")? + 1;
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    let name = format!("{}-bounded.toml", system.file_stem().unwrap_or_default().display());
    write(&name, &format!("{}memory = {bytes}{}", &text[..start], &text[end..]))
}

/// How far outputs are from others at most, relative to the largest number of each.
fn off(outputs: &Path, others: &Path) -> Result<f64, String> {
    let mut worst = 0f64;
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    for entry in fs::read_dir(others).map_err(|error| failed(others, &error))? {
        let other = entry.map_err(|error| failed(others, &error))?.path();
        let path = outputs.join(other.file_name().unwrap_or_default());
        let [ours, theirs] = [&path, &other].map(|path| {
            let bytes = fs::read(path).map_err(|error| failed(path, &error))?;
            let tensor = npy::read(&bytes).map_err(|error| failed(path, &error))?;
            tensor.to_f32().ok_or_else(|| failed(path, &"not of f32"))
        });
        let (ours, theirs) = (ours?, theirs?);
        if ours.len() != theirs.len() {
            return Err(failed(&path, &format!("{} numbers instead of {}", ours.len(), theirs.len())));
        }
        if let Some(number) = theirs.iter().find(|number| !number.is_finite()) {
            return Err(failed(&other, &format!("{number} is nothing to compare with")));
        }
        let largest = theirs.iter().fold(0f32, |largest, number| largest.max(number.abs()));
        let apart = ours.iter().zip(&theirs).map(|(one, other)| if one == other { 0.0 } else { (one - other).abs() });
        let apart = apart.fold(0f32, |most, apart| if apart.is_nan() { f32::INFINITY } else { most.max(apart) });
        worst = worst.max(f64::from(apart / largest.max(f32::MIN_POSITIVE)));
    }
    Ok(worst)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
