//! Predicted and measured times of plans made with the measurements of `divi-profile` on this machine: the latency of one
//! input, the throughput of pipelines compared with the best single device, and, on GPUs, cold starts.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle},
    launch::{Launched, repeat},
    machine::Machine,
};
use crate::runs::median;
use std::path::{Path, PathBuf};

/// Number of launches of a plan for one input.
const TURNS: usize = 3;
/// Number of alternations between compared plans, so that other load affects all of them equally. CPU stages of pipelines
/// are delayed for seconds if other processes use their cores.
const PIPELINE_TURNS: usize = 7;
/// Number of launches of a cold start, each with one run.
const COLD_TURNS: usize = 9;

/// Warm-up of pipelines: first requests meet sleeping threads and cold caches.
const WARM_UP: &str = "--warmup=100";

/// Minimum predicted gain of several devices, about the error of predictions.
const LEAST_GAIN: &str = "--min-gain=0.03";

pub(super) fn predicted(settings: &Settings) -> Result<(), String> {
    println!(
        "planned with the measurements of divi-profile on this machine. Latency in milliseconds; throughput of pipelines in inputs per\n\
         second, and gain over a single device; milliseconds saved in a cold start by overlapping copies. Medians of {TURNS} launches,\n\
         {PIPELINE_TURNS} for pipelines and {COLD_TURNS} for cold starts"
    );
    println!(
        "{:<20} {:>9} {:>9} {:>8}  {:>9} {:>9} {:>8} {:>7} {:>7}  {:>7} {:>7}",
        "model", "latency", "measured", "error", "pipeline", "measured", "error", "gain", "meas.", "cold", "meas."
    );
    let machine = Machine::new(settings)?;
    let (mut latencies, mut pipelines) = (vec![], vec![]);
    let usual: Vec<&str> = MODELS.into_iter().chain(["gpt2_small_1x128"]).collect();
    for model in settings.models_or(&usual) {
        let bench = Bench::new(&model, &machine)?;
        let (latency, pipeline) = (bench.latency()?, bench.pipeline()?);
        latencies.push(latency.error().abs());
        pipelines.push(pipeline.error().abs());
        let [predicted, measured] = pipeline.gain.map(|gain| format!("{gain:.2}x"));
        let [cold, warm] = match bench.cold()? {
            Some(gains) => gains.map(|gain| format!("{gain:.2}")),
            None => ["".to_owned(), "".to_owned()],
        };
        println!(
            "{model:<20} {:>9.3} {:>9.3} {:>+6.1} %  {:>9.1} {:>9.1} {:>+6.1} % {predicted:>7} {measured:>7}  {cold:>7} {warm:>7}",
            latency.predicted,
            latency.measured,
            latency.error() * 100.0,
            pipeline.predicted,
            pipeline.measured,
            pipeline.error() * 100.0
        );
    }
    let mean = |error: &[f64]| error.iter().sum::<f64>() / error.len().max(1) as f64 * 100.0;
    println!(
        "mean absolute error: latency {:.1} %, throughput of pipelines {:.1} %",
        mean(&latencies),
        mean(&pipelines)
    );
    Ok(())
}

struct Latency {
    predicted: f64,
    measured: f64,
}

impl Latency {
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

struct Pipeline {
    predicted: f64,
    measured: f64,
    /// Predicted and measured ratio to the throughput of a single device.
    gain: [f64; 2],
}

impl Pipeline {
    fn error(&self) -> f64 {
        self.measured / self.predicted - 1.0
    }
}

/// Bundles of a model: for one input, and for a pipeline with all devices and with one.
struct Bench<'a> {
    machine: &'a Machine,
    latency: PathBuf,
    pipeline: PathBuf,
    single: PathBuf,
}

impl<'a> Bench<'a> {
    /// Measures the model's tasks, and compiles the bundles.
    fn new(model: &str, machine: &'a Machine) -> Result<Self, String> {
        let system = machine.measure(model, &[])?;
        let cost = machine.pipeline_cost();
        let plans: [(&str, &[&str]); 3] = [
            ("latency", &[LEAST_GAIN]),
            ("predicted-pipeline", &["--objective=pipeline", cost, LEAST_GAIN]),
            ("predicted-single", &["--objective=pipeline", cost, "--k=1"]),
        ];
        let make = |(name, options): (&str, &[&str])| {
            let options = options.iter().map(|&option| option.to_owned()).collect();
            bundle(model, name, Weights::Seed, &Plan { system: system.clone(), options }).map(|(folder, _)| folder)
        };
        // Nothing is measured during compilation.
        let [latency, pipeline, single] = std::thread::scope(|scope| {
            let threads = plans.map(|plan| scope.spawn(move || make(plan)));
            threads.map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
        });
        Ok(Self { machine, latency: latency?, pipeline: pipeline?, single: single? })
    }

    fn latency(&self) -> Result<Latency, String> {
        let runs = [repeat(&self.latency, self.machine.seconds / TURNS as f64)?];
        let launched = (0..TURNS).map(|_| self.machine.launch(&self.latency, &runs)).collect::<Result<Vec<_>, _>>()?;
        let measured = numbers(&launched, "/latency_us/median")?;
        let predicted = launched[0].number("/predicted_us")?;
        Ok(Latency { predicted: predicted / 1e3, measured: median(&measured) / 1e3 })
    }

    fn pipeline(&self) -> Result<Pipeline, String> {
        let of = |bundle: &Path| {
            let runs = repeat(bundle, self.machine.seconds / PIPELINE_TURNS as f64)?;
            Ok::<_, String>([runs, "--in-flight=4".into(), WARM_UP.into()])
        };
        let (many, one) = (of(&self.pipeline)?, of(&self.single)?);
        let (mut together, mut alone) = (vec![], vec![]);
        for _ in 0..PIPELINE_TURNS {
            together.push(self.machine.launch(&self.pipeline, &many)?);
            alone.push(self.machine.launch(&self.single, &one)?);
        }
        let (measured, of_one) = (numbers(&together, "/throughput_per_s")?, numbers(&alone, "/throughput_per_s")?);
        let predicted = together[0].number("/predicted_throughput_per_s")?;
        let gains: Vec<f64> = measured.iter().zip(&of_one).map(|(both, one)| both / one).collect();
        let gain = [predicted / alone[0].number("/predicted_throughput_per_s")?, median(&gains)];
        Ok(Pipeline { predicted, measured: median(&measured), gain })
    }

    /// Returns the predicted and measured time saved by overlapping copies and computation; `None` without a GPU.
    fn cold(&self) -> Result<Option<[f64; 2]>, String> {
        let (mut gains, mut saved) = (vec![], None);
        for _ in 0..COLD_TURNS {
            let [overlap, first] =
                ["overlap", "copy-first"].map(|mode| self.machine.launch(&self.latency, &[format!("--cold={mode}")]));
            let (overlap, first) = (overlap?, first?);
            let predicted = |mode: &str| overlap.number(&format!("/predicted_cold_us/{mode}"));
            let (Ok(short), Ok(long)) = (predicted("overlap"), predicted("copy-first")) else { return Ok(None) };
            saved = Some((long - short) / 1e3);
            gains.push((first.number("/cold_us")? - overlap.number("/cold_us")?) / 1e3);
        }
        Ok(saved.map(|saved| [saved, median(&gains)]))
    }
}

fn numbers(launched: &[Launched], place: &str) -> Result<Vec<f64>, String> {
    launched.iter().map(|launched| launched.number(place)).collect()
}
