//! Queues on devices of which none has memory for the whole model: plans with any number of launches compared with plans of
//! one launch, predicted and measured.

use super::{
    Settings,
    build::{Plan, Weights, bundle},
    launch::repeat,
    machine::Machine,
    mixed::{MEMORY, TURNS, beside, bounded, relative_error},
};
use crate::runs::median;
use std::path::PathBuf;

const MODELS: [&str; 2] = ["bert_base_128", "googlenet"];

/// Number of inputs in the queue.
const QUEUED: u32 = 16;
/// Batch sizes allowed for the queue.
const BATCHES: [u32; 5] = [1, 2, 4, 8, QUEUED];
/// Part of the message of `divi-opt` if no plan fits memory.
const NO_PLAN: &str = "no schedule found that fits";
/// Effort of each plan.
const SEARCH: &str = "--time-limit=10";

pub(super) fn queues(settings: &Settings) -> Result<(), String> {
    let machine = Machine::new(settings)?;
    let limited = if machine.has_accelerators() { "the last device" } else { "each device" };
    println!(
        "queues of {QUEUED} inputs, with the memory of {limited} limited to {:.0} % of what one device would need for all of it;\n\
         milliseconds for the queue, medians of {TURNS} alternations; predicted and measured speedup of any number of launches over\n\
         --launches=one; error relative to the outputs of a CPU",
        MEMORY * 100.0
    );
    println!(
        "{:<16} {:<8} {:>9} {:>9} {:>9} {:>8} {:>7} {:>7} {:>8}",
        "model", "launches", "bound", "predicted", "measured", "error", "gain", "meas.", "rel. err"
    );
    for model in settings.models_or(&MODELS) {
        Bench::new(&model, &machine)?.print(&model)?;
    }
    Ok(())
}

/// Plans of a model with any number of launches and with one, if there is such a plan, and a CPU bundle for reference outputs.
struct Bench<'a> {
    machine: &'a Machine,
    many: PathBuf,
    one: Result<PathBuf, String>,
    reference: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(model: &str, machine: &'a Machine) -> Result<Self, String> {
        let system = machine.measure(model, &BATCHES)?;
        let queue = |name: &str, system: &PathBuf, option: &str| {
            let options = vec![format!("--inputs={QUEUED}"), SEARCH.to_owned(), option.to_owned()];
            let plan = Plan { system: system.clone(), options };
            bundle(model, &format!("queue-{name}"), Weights::Seed, &plan).map(|(folder, _)| folder)
        };
        let roomy = machine.launch(&queue("roomy", &system, "--algorithm=single")?, &[])?;
        let taken: f64 = ["weights", "arena", "values"].map(|what| roomy.sum_of_devices(what)).iter().sum();
        let system = bounded(&system, (taken * MEMORY) as u64, !machine.has_accelerators())?;
        let mut reference = Plan::single(1)?;
        reference.options.push(format!("--batch={QUEUED}"));
        let (reference, _) = bundle(model, "queue-cpu", Weights::Seed, &reference)?;
        let many = queue("many", &system, "--launches=many")?;
        let one = queue("one", &system, "--launches=one");
        let one = match one {
            Err(error) if !error.contains(NO_PLAN) => return Err(error),
            one => one,
        };
        Ok(Self { machine, many, one, reference })
    }

    fn print(&self, model: &str) -> Result<(), String> {
        let mut plans = vec![("many", &self.many)];
        plans.extend(self.one.as_ref().ok().map(|one| ("one", one)));
        let seconds = self.machine.seconds / TURNS as f64;
        let runs = |folder: &PathBuf| repeat(folder, seconds / f64::from(QUEUED));
        let runs: Vec<String> = plans.iter().map(|(_, folder)| runs(folder)).collect::<Result<_, _>>()?;
        let (mut predicted, mut bound, mut measured) = ([0.0; 2], [0.0; 2], [vec![], vec![]]);
        for _ in 0..TURNS {
            for (index, (_, folder)) in plans.iter().enumerate() {
                let launched = self.machine.launch(folder, &[runs[index].clone(), "--warmup=2".to_owned()])?;
                measured[index].push(launched.number("/latency_us/median")?);
                predicted[index] = launched.number("/predicted_us")?;
                bound[index] = launched.number("/bound_us")?;
            }
        }
        let gains: Vec<f64> = measured[0].iter().zip(&measured[1]).map(|(many, one)| one / many).collect();
        let outputs = |folder: &PathBuf| {
            let output = beside(folder, "outputs");
            let launched = self.machine.launch(folder, &[format!("--output={}", output.display())]);
            launched.map(|_| output)
        };
        let expected = outputs(&self.reference)?;
        for (index, (name, folder)) in plans.iter().enumerate() {
            let time = median(&measured[index]);
            let gain = match index {
                0 if plans.len() > 1 => [predicted[1] / predicted[0], median(&gains)].map(|gain| format!("{gain:.2}x")),
                _ => ["", ""].map(str::to_owned),
            };
            println!(
                "{model:<16} {name:<8} {:>9.3} {:>9.3} {:>9.3} {:>+6.1} % {:>7} {:>7} {:>8.1e}",
                bound[index] / 1e3,
                predicted[index] / 1e3,
                time / 1e3,
                (predicted[index] / time - 1.0) * 100.0,
                gain[0],
                gain[1],
                relative_error(&outputs(folder)?, &expected)?
            );
        }
        if let Err(error) = &self.one {
            println!("{model:<16} {:<8} {error}", "one");
        }
        Ok(())
    }
}
