//! The command line.

use clap::{Parser, ValueEnum};
use divi_runtime::{Cold, Recording};
use std::{convert::Infallible, path::PathBuf, sync::LazyLock};

/// Versions of the tool and of the bundles that it runs.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\nbundles {}", env!("CARGO_PKG_VERSION"), divi_runtime::bundle::FORMAT));

/// Run a bundle, and print how long it took
#[derive(Parser)]
#[command(name = "divi-run", version, long_version = VERSION.as_str(), disable_version_flag = true, args_override_self = true)]
pub(crate) struct Arguments {
    /// Folder that divi-opt --emit=bundle has written
    pub(crate) bundle: PathBuf,
    /// Input of the model; may be repeated
    ///
    /// NAME= may be left out if the model has one input.
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = input)]
    pub(crate) inputs: Vec<Input>,
    /// Inputs by their names in a NumPy archive; may be repeated
    #[arg(long = "input-npz", value_name = "FILE.npz")]
    pub(crate) archives: Vec<PathBuf>,
    /// Generate the inputs that are not given
    ///
    /// Numbers are in -1..1, integers 0 and 1. SEED is 0 if left out.
    #[arg(long = "random-inputs", value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) seed: Option<u64>,
    /// Folder for the outputs, as NAME.npy
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Folder of expected outputs, as NAME.npy; exit status 1 if an output differs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) expected: Option<PathBuf>,
    /// Maximum error of floating-point outputs, as a fraction of the largest element
    ///
    /// Outputs of other types must be equal.
    #[arg(long, value_name = "X", default_value = "1e-4", value_parser = tolerance)]
    pub(crate) tolerance: f64,
    /// Number of measured runs
    #[arg(long, value_name = "N", default_value = "1", value_parser = divi_cli::positive::<usize>)]
    pub(crate) repeat: usize,
    /// Number of runs before those; by default 1 if several are measured, else 0
    #[arg(long, value_name = "N")]
    warmup: Option<usize>,
    /// Threads of each device, instead of the plan's; 0 for all cores
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Maximum number of inputs in flight; by default one more than a pipeline has stages, else 1
    #[arg(long, value_name = "N", value_parser = divi_cli::positive::<usize>)]
    pub(crate) in_flight: Option<usize>,
    /// Copy weights to GPUs in the first run, not before it, and print how long it took
    #[arg(long, value_name = "WHEN")]
    cold: Option<ColdStart>,
    /// File of the fastest algorithms of libraries and kernels on this GPU
    ///
    /// Those that it does not have are measured and added. Without it, all are measured whenever a bundle is loaded.
    #[arg(long, value_name = "FILE")]
    pub(crate) choices: Option<PathBuf>,
    /// Allow weights in this folder, beside the bundle's and its model's; may be repeated
    #[arg(long = "allow-path", value_name = "FOLDER")]
    pub(crate) allowed_paths: Vec<PathBuf>,
    /// Map weights instead of reading them, so that processes share them
    ///
    /// If a mapped file is truncated, the program ends.
    #[arg(long = "map-weights")]
    pub(crate) maps_weights: bool,
    /// Write measured and predicted spans as a trace for Chrome or Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the times of tasks as a profile, which planning can use
    ///
    /// GPUs run tasks one after the other for that, and a trace has them.
    #[arg(long = "profile-out", value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Verify the hashes of all files, those of the model among them, and run nothing
    #[arg(long = "check")]
    pub(crate) is_check: bool,
    /// Describe the bundle; with inputs, run it too and print how much memory that took
    #[arg(long = "info")]
    pub(crate) is_info: bool,
    /// Print measurements as JSON
    #[arg(long = "json")]
    pub(crate) is_json: bool,
    /// Print nothing but errors
    #[arg(short = 'q')]
    pub(crate) is_quiet: bool,
    /// Print the versions of this tool and of the bundles that it runs
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// File of an input, and its name, which may be empty.
pub(crate) type Input = (String, PathBuf);

#[derive(Clone, Copy, ValueEnum)]
enum ColdStart {
    /// As calls need them.
    Overlap,
    /// Before all calls.
    CopyFirst,
}

impl Arguments {
    /// Number of runs that are not measured.
    pub(crate) fn warmup(&self) -> usize {
        self.warmup.unwrap_or(usize::from(self.repeat > 1))
    }

    pub(crate) fn cold(&self) -> Option<Cold> {
        self.cold.map(|cold| match cold {
            ColdStart::Overlap => Cold::Overlap,
            ColdStart::CopyFirst => Cold::CopyFirst,
        })
    }

    /// Returns true if there is anything to run with.
    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() || !self.archives.is_empty() || self.seed.is_some()
    }

    /// Detail in which runs are recorded.
    pub(crate) fn recording(&self) -> Recording {
        match (&self.profile, &self.trace) {
            (Some(_), _) => Recording::Tasks,
            (None, Some(_)) => Recording::Steps,
            (None, None) => Recording::Off,
        }
    }
}

/// Parses `NAME=FILE`, or a file alone. Names may have `=` in them, files that end with `.npy` may not.
fn input(text: &str) -> Result<Input, Infallible> {
    Ok(match text.rsplit_once('=') {
        Some((name, file)) => (name.to_owned(), file.into()),
        None => (String::new(), text.into()),
    })
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok().filter(|tolerance| *tolerance >= 0.0);
    tolerance.ok_or_else(|| "must be a number from 0 on".to_owned())
}
