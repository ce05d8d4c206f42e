//! Command-line arguments.

use clap::{Parser, ValueEnum};
use divi_runtime::{ColdStartMode, Recording};
use std::{convert::Infallible, path::PathBuf, sync::LazyLock, time::Duration};

/// Versions of the tool and of the supported bundles.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\nbundles {}", env!("CARGO_PKG_VERSION"), divi_runtime::bundle::FORMAT));

/// Run a bundle and print its latency and throughput
#[derive(Parser)]
#[command(name = "divi-run", version, long_version = VERSION.as_str(), disable_version_flag = true, args_override_self = true)]
pub(crate) struct Arguments {
    /// Folder written by divi-opt --emit=bundle
    pub(crate) bundle: PathBuf,
    /// Input of the model; may be repeated
    ///
    /// NAME= may be omitted if the model has one input.
    #[arg(long = "input", value_name = "NAME=FILE.npy", value_parser = input)]
    pub(crate) inputs: Vec<Input>,
    /// Inputs by their names in a NumPy archive; may be repeated
    #[arg(long = "input-npz", value_name = "FILE.npz")]
    pub(crate) archives: Vec<PathBuf>,
    /// Generate the inputs that are not given
    ///
    /// Floating-point numbers are in -1..1, integers are 0 or 1. SEED defaults to 0.
    #[arg(long = "random-inputs", value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(crate) seed: Option<u64>,
    /// Folder for the outputs, as NAME.npy
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Folder of expected outputs, as NAME.npy; exit status 1 if an output of any run differs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) expected: Option<PathBuf>,
    /// Maximum error of floating-point outputs, as a fraction of the largest element
    ///
    /// Outputs of other types must be equal.
    #[arg(long, value_name = "X", default_value = "1e-4", value_parser = tolerance)]
    pub(crate) tolerance: f64,
    /// Print the errors of the outputs relative to another bundle or to arrays in files
    ///
    /// The other bundle runs on the same inputs. Files are a folder of NAME.npy or an archive with the names of the outputs. Errors are relative
    /// to the largest number of the reference. top-1 is the share of rows (along the last axis) with the same largest element, top-5 that of the
    /// five largest elements.
    #[arg(long, value_name = "BUNDLE|FOLDER|FILE.npz")]
    pub(crate) compare: Option<PathBuf>,
    /// Print the errors of the results of tasks, those that add most of the error first
    ///
    /// The bundles must return them as outputs (divi-opt --mark-outputs). The rms error of a result is the norm of its error relative to the norm of
    /// the reference. What a task adds is the root of the difference of squares of that of its result and the largest one that it reads.
    #[arg(long, requires = "compare")]
    pub(crate) by_task: bool,
    /// Number of measured runs
    #[arg(long, value_name = "N", default_value = "1", value_parser = divi_cli::positive::<usize>)]
    pub(crate) repeat: usize,
    /// Number of warm-up runs; by default 1 if several runs are measured, else 0
    #[arg(long, value_name = "N")]
    warmup: Option<usize>,
    /// Number of threads of each device, instead of the plan's; 0 for all cores
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Maximum number of inputs in flight; by default one more than a pipeline has stages and pairs of hosts with transfers, else 1
    #[arg(long, value_name = "N", value_parser = divi_cli::positive::<usize>)]
    pub(crate) in_flight: Option<usize>,
    /// Treat a rank that does not answer for this time as dead (mpirun); by default, ranks wait for each other
    #[arg(long, value_name = "SECONDS", value_parser = stall_timeout)]
    pub(crate) stall_timeout: Option<Duration>,
    /// Copy weights to GPUs during the first run instead of at load time, and print its time
    #[arg(long, value_name = "WHEN")]
    cold: Option<ColdStart>,
    /// File of the fastest algorithms of libraries and kernels on this GPU
    ///
    /// Missing ones are measured and added. Without the file, all are measured whenever a bundle is loaded.
    #[arg(long, value_name = "FILE")]
    pub(crate) choices: Option<PathBuf>,
    /// Allow weights in this folder, in addition to the bundle's and its model's; may be repeated
    #[arg(long = "allow-path", value_name = "FOLDER")]
    pub(crate) allowed_paths: Vec<PathBuf>,
    /// Map weights instead of reading them, so that processes share them
    ///
    /// The program crashes if a mapped file is truncated.
    #[arg(long = "map-weights")]
    pub(crate) maps_weights: bool,
    /// Write measured and predicted spans as a trace for Chrome or Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the times of tasks as a profile for planning
    ///
    /// GPUs run tasks in sequence for this, and a trace shows them.
    #[arg(long = "profile-out", value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Verify the hashes of all files, including those of the model, without running
    #[arg(long = "check")]
    pub(crate) is_check: bool,
    /// Describe the bundle; with inputs, also run it and print its memory usage
    #[arg(long = "info")]
    pub(crate) is_info: bool,
    /// Print measurements as JSON
    #[arg(long = "json")]
    pub(crate) is_json: bool,
    /// Print errors only
    #[arg(short = 'q')]
    pub(crate) is_quiet: bool,
    /// Print the versions of this tool and of the supported bundles
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Name, which may be empty, and file of an input.
pub(crate) type Input = (String, PathBuf);

#[derive(Clone, Copy, ValueEnum)]
enum ColdStart {
    /// Overlap copies with calls.
    Overlap,
    /// Copy all weights before the first call.
    CopyFirst,
}

impl Arguments {
    /// Returns the number of warm-up runs.
    pub(crate) fn warmup(&self) -> usize {
        self.warmup.unwrap_or(usize::from(self.repeat > 1))
    }

    pub(crate) fn cold(&self) -> Option<ColdStartMode> {
        self.cold.map(|cold| match cold {
            ColdStart::Overlap => ColdStartMode::Overlap,
            ColdStart::CopyFirst => ColdStartMode::CopyFirst,
        })
    }

    /// Returns true if any inputs are given or generated.
    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() || !self.archives.is_empty() || self.seed.is_some()
    }

    /// Returns the level of detail of the recording.
    pub(crate) fn recording(&self) -> Recording {
        match (&self.profile, &self.trace) {
            (Some(_), _) => Recording::Tasks,
            (None, Some(_)) => Recording::Steps,
            (None, None) => Recording::Off,
        }
    }
}

/// Parses `NAME=FILE`, or a file only. Names may contain `=`, files may not.
fn input(text: &str) -> Result<Input, Infallible> {
    Ok(match text.rsplit_once('=') {
        Some((name, file)) => (name.to_owned(), file.into()),
        None => (String::new(), text.into()),
    })
}

/// Parses a time in seconds. Shorter times than a millisecond are those of usual delays.
fn stall_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=1e9).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "must be a number of seconds from 0.001 to 1e9".to_owned())
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok().filter(|tolerance| *tolerance >= 0.0);
    tolerance.ok_or_else(|| "must be a non-negative number".to_owned())
}
