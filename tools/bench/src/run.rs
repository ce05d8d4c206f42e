//! `divi-bench run`: compiled models against ONNX Runtime and OpenVINO, pipelines against their predictions, and what compiling,
//! starting and memory take.

mod build;
mod compile;
mod foretold;
mod gpu;
mod launch;
mod machine;
mod memory;
mod mixed;
mod models;
mod pipeline;
mod start;
mod trace;

use crate::arguments::{in_turn, part, seconds};

const USAGE: &str = "\
usage: divi-bench run [PART …] [--models=NAME,…] [--threads=N,…] [--rounds=N] [--seconds=S] [--system=NAME]

parts, by default the first:
  models        times against ONNX Runtime and OpenVINO, alternating calls in one process
  pipeline      two devices' throughput, predicted and measured, against one core's
  compile       how long it takes to compile
  start         how long it takes to load a bundle and run it for the first time
  memory        the most memory that a run takes, against weights and planned activations
  gpu           times on a GPU against PyTorch, and outputs against those of CPUs
  foretold      what plans promise that are made with what divi-profile measures on this machine, and what comes of it
  mixed         plans on several devices, for one input, a queue and a pipeline: promises, times, overlap, outputs

  --models=NAME,…   models of test/models, by default all vision models and bert_base_128; for pipelines
                    resnet50 and googlenet
  --threads=N,…     by default 1 and as many as there are cores
  --rounds=N        how often engines take turns, by default 15
  --seconds=S       for each measurement of a pipeline or a plan, by default 5
  --system=NAME     what is measured and planned for, by default host
";

/// What is compared: all models for images, and one for text.
const MODELS: [&str; 14] = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "vgg16",
    "vit_b_16",
    "bert_base_128",
];

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Settings {
    /// None where each part has its own.
    models: Vec<String>,
    threads: Vec<usize>,
    rounds: usize,
    seconds: f64,
    system: String,
}

impl Settings {
    fn models_or(&self, usual: &[&str]) -> Vec<String> {
        match self.models.is_empty() {
            true => usual.iter().map(|&name| name.to_owned()).collect(),
            false => self.models.clone(),
        }
    }
}

type Part = fn(&Settings) -> Result<(), String>;

const PARTS: &[(&str, Part)] = &[
    ("models", models::models),
    ("pipeline", pipeline::pipeline),
    ("compile", compile::compile),
    ("start", start::start),
    ("memory", memory::memory),
    ("gpu", gpu::gpu),
    ("foretold", foretold::foretold),
    ("mixed", mixed::mixed),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (settings, parts) = parse(arguments)?;
    if let Some(note) = busy() {
        eprintln!("divi-bench: {note}");
    }
    in_turn(PARTS.iter().filter(|(name, _)| parts.contains(name)), |part| part(&settings))
}

/// What to think of times on a machine that does other things.
fn busy() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let note = format!("other programs keep {load:.1} cores busy on average: times below are theirs, too");
    (load > 0.5).then_some(note)
}

fn parse(arguments: &[String]) -> Result<(Settings, Vec<&'static str>), String> {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut threads = vec![1, cores];
    threads.dedup();
    let mut settings = Settings { models: vec![], threads, rounds: 15, seconds: 5.0, system: "host".into() };
    let mut parts = Vec::new();
    let count = |argument: &str, text: &str| {
        text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{argument}: not a number above zero"))
    };
    for argument in arguments {
        if let Some(text) = argument.strip_prefix("--models=") {
            settings.models = text.split(',').map(str::to_owned).collect();
        } else if let Some(text) = argument.strip_prefix("--threads=") {
            settings.threads = text.split(',').map(|text| count(argument, text)).collect::<Result<_, _>>()?;
        } else if let Some(text) = argument.strip_prefix("--rounds=") {
            settings.rounds = count(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--seconds=") {
            settings.seconds = seconds(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--system=") {
            settings.system = text.to_owned();
        } else {
            parts.push(part(PARTS, argument, USAGE)?.0);
        }
    }
    if parts.is_empty() {
        parts.push(PARTS[0].0);
    }
    Ok((settings, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Settings, Vec<&'static str>), String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let (settings, parts) = parsed("").unwrap();
        assert_eq!((settings.rounds, parts), (15, vec!["models"]));
        assert_eq!(settings.threads[0], 1);
        assert_eq!(settings.models_or(&["a"]), ["a"]);
        let models = vec!["resnet18".to_owned(), "vgg16".to_owned()];
        let expected = Settings { models, threads: vec![1, 2], rounds: 3, seconds: 0.5, system: "host".into() };
        let line = "memory --models=resnet18,vgg16 --threads=1,2 --rounds=3 --seconds=0.5 compile";
        assert_eq!(parsed(line), Ok((expected, vec!["memory", "compile"])));
    }

    #[test]
    fn slips_are_named() {
        for (line, message) in [
            ("--threads=0", "--threads=0: not a number above zero"),
            ("--threads=1,x", "--threads=1,x: not a number above zero"),
            ("--rounds=", "--rounds=: not a number above zero"),
            ("--seconds=-1", "--seconds=-1: not a number of seconds"),
        ] {
            assert_eq!(parsed(line), Err(message.to_owned()));
        }
        assert!(parsed("models memori").unwrap_err().starts_with("there is no part or option 'memori'\nusage: "));
    }
}
