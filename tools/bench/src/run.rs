//! `divi-bench run`: compiled models compared with ONNX Runtime and OpenVINO, pipelines compared with their predictions, and
//! compile time, startup time and memory.

pub(crate) mod build;
mod compile;
mod gpu;
pub(crate) mod launch;
mod machine;
mod memory;
mod mixed;
mod models;
pub(crate) mod pipeline;
mod predicted;
mod queues;
mod start;
mod trace;

use crate::parts::{in_turn, sorted};
use clap::{ArgAction, Parser, ValueEnum};

/// Models that are compared: all vision models, and two language models.
const MODELS: [&str; 17] = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "squeezenet1_1",
    "vgg16",
    "vit_b_16",
    "bert_base_128",
    "gpt2_small_1x128",
];

/// Compare compiled models with ONNX Runtime and OpenVINO, and pipelines with their predictions
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Run {
    /// Parts to run
    #[arg(value_name = "PART", default_value = "models")]
    parts: Vec<Part>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// Times compared with ONNX Runtime and OpenVINO, in alternating bursts in one process.
    Models,
    /// Throughput of two devices, predicted and measured, compared with one core.
    Pipeline,
    /// Compile time.
    Compile,
    /// Time to load a bundle and run it for the first time.
    Start,
    /// Peak memory of a run, compared with weights and planned activations.
    Memory,
    /// Times on a GPU compared with PyTorch, and outputs compared with those of CPUs.
    Gpu,
    /// Predicted and measured times of plans made with the measurements of divi-profile on this machine.
    #[value(alias = "foretold")]
    Predicted,
    /// Plans on several devices, for one input, a queue and a pipeline: predictions, times, overlap, outputs.
    Mixed,
    /// Queues on devices that are too small for the model: any number of launches compared with one.
    Queues,
}

// Options of all parts; not a doc comment, which would become help text.
#[derive(clap::Args, Debug, PartialEq)]
struct Settings {
    /// Models of test/models
    ///
    /// By default all vision models and bert_base_128; for pipelines resnet50 and googlenet.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', action = ArgAction::Set)]
    models: Vec<String>,
    /// Numbers of threads; by default 1 and the number of cores
    #[arg(
        long, value_name = "N,...", value_delimiter = ',', action = ArgAction::Set, default_values_t = threads(),
        hide_default_value = true, value_parser = divi_cli::positive::<usize>
    )]
    threads: Vec<usize>,
    /// Number of rounds, in which the engines alternate
    #[arg(long, value_name = "N", default_value = "15", value_parser = divi_cli::positive::<usize>)]
    rounds: usize,
    /// Time of each measurement of a pipeline or a plan, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = divi_cli::seconds)]
    seconds: f64,
    /// Precision of convolutions and matrix products in the models compared with ONNX Runtime and OpenVINO
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = ["f32", "bf16", "f16"])]
    precision: String,
    /// System to measure and plan for
    #[arg(long, value_name = "NAME", default_value = "host")]
    system: String,
}

/// Returns the default numbers of threads: one, and one per core.
fn threads() -> Vec<usize> {
    let mut threads = vec![1, std::thread::available_parallelism().map_or(1, |count| count.get())];
    threads.dedup();
    threads
}

impl Settings {
    fn models_or(&self, usual: &[&str]) -> Vec<String> {
        match self.models.is_empty() {
            true => usual.iter().map(|&name| name.to_owned()).collect(),
            false => self.models.clone(),
        }
    }
}

impl Run {
    pub(crate) fn run(self) -> Result<(), String> {
        if let Some(note) = busy() {
            eprintln!("divi-bench: {note}");
        }
        let settings = &self.settings;
        in_turn(sorted(&self.parts), |part| match part {
            Part::Models => models::models(settings),
            Part::Pipeline => pipeline::pipeline(settings),
            Part::Compile => compile::compile(settings),
            Part::Start => start::start(settings),
            Part::Memory => memory::memory(settings),
            Part::Gpu => gpu::gpu(settings),
            Part::Predicted => predicted::predicted(settings),
            Part::Mixed => mixed::mixed(settings),
            Part::Queues => queues::queues(settings),
        })
    }
}

/// Returns a warning if the machine is loaded.
fn busy() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let note = format!("warning: the load average is {load:.1}; other processes affect the times below");
    (load > 0.5).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(line: &str) -> Result<Run, String> {
        let words = ["run"].into_iter().chain(line.split_whitespace());
        divi_cli::try_parse_from(Run::command(), words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read() {
        let Run { settings, parts } = parsed("").unwrap();
        assert_eq!((settings.rounds, parts), (15, vec![Part::Models]));
        assert_eq!(settings.threads[0], 1);
        assert_eq!(settings.models_or(&["a"]), ["a"]);
        let models = vec!["resnet18".to_owned(), "vgg16".to_owned()];
        let expected = Settings {
            models,
            threads: vec![1, 2],
            rounds: 3,
            seconds: 0.5,
            precision: "f32".into(),
            system: "host".into(),
        };
        let line = "memory --models=resnet18,vgg16 --threads=1,2 --rounds=3 --seconds=0.5 compile";
        let Run { settings, parts } = parsed(line).unwrap();
        assert_eq!((settings, sorted(&parts)), (expected, vec![Part::Compile, Part::Memory]));
    }

    #[test]
    fn invalid_values_are_reported() {
        for (line, message) in [
            ("--threads=0", "invalid value '0' for '--threads <N,...>': must be a positive integer"),
            ("--threads=1,x", "invalid value 'x' for '--threads <N,...>': must be a positive integer"),
            ("--rounds=", "invalid value '' for '--rounds <N>': must be a positive integer"),
            ("--seconds=-1", "invalid value '-1' for '--seconds <S>': must be a non-negative number of seconds"),
            (
                "models memori",
                "invalid value 'memori' for '[PART]...'\n  [possible values: models, pipeline, compile, ",
            ),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
