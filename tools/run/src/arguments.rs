//! What was asked for.

use std::{fmt::Display, path::PathBuf, str::FromStr};

use crate::files;
use divi_runtime::{Cold, Recording};
use lexopt::{
    Parser,
    prelude::{Long, Short, Value, ValueExt},
};

const USAGE: &str = "\
usage: divi-run BUNDLE [OPTIONS]

  --input NAME=FILE.npy    an input; NAME= may be left out if the model has one
  --input-npz FILE.npz     inputs by their names in the archive
  --random-inputs[=SEED]   makes up the inputs that are not given: numbers in -1..1, integers 0 and 1
  --output FOLDER          where outputs go, as NAME.npy
  --expected FOLDER        compares outputs with NAME.npy there; exit status 1 if one differs
  --tolerance X            largest error of floating-point outputs, as a fraction of the largest element (1e-4); other types
                           must be equal
  --repeat N               how many runs are measured (1)
  --warmup N               how many runs come before them (1 if more than one is measured, else 0)
  --threads N              threads of each device, instead of what the plan says; 0 for all cores
  --in-flight N            how many inputs may be on their way at once; a pipeline's stages and one more, else 1
  --cold=overlap|copy-first  has the first run copy weights to GPUs, as calls need them or before all calls, and says how long
                           it took; else they are there before it
  --choices FILE           which algorithms of libraries and kernels are the fastest on this GPU: what the file does not know is
                           measured and added; without it, all of it is measured whenever a bundle is loaded
  --allow-path FOLDER      lets weights be in this folder, beside the bundle's and its model's; may be repeated
  --map-weights            maps weights instead of reading them, so that processes share them; if a file is truncated meanwhile,
                           the program ends
  --trace FILE             writes a trace for Chrome or Perfetto: measured and predicted spans
  --profile-out FILE       writes what tasks took as a profile, which planning can use. GPUs run tasks one after the other for that,
                           and a trace has them
  --check                  verifies the hashes of all files, those of the model among them, and runs nothing
  --info                   describes the bundle; with inputs, runs it too and says how much memory that took
  --json                   prints what was measured as JSON
  -q                       prints nothing but errors
  --version                prints the versions of this tool and of the bundles that it runs
";

#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) bundle: PathBuf,
    /// Names may be empty.
    pub(crate) inputs: Vec<(String, PathBuf)>,
    pub(crate) archives: Vec<PathBuf>,
    pub(crate) seed: Option<u64>,
    pub(crate) output: Option<PathBuf>,
    /// Folder with expected outputs.
    pub(crate) expected: Option<PathBuf>,
    pub(crate) tolerance: f64,
    pub(crate) repeat: usize,
    pub(crate) warmup: usize,
    pub(crate) threads: Option<usize>,
    pub(crate) in_flight: Option<usize>,
    pub(crate) cold: Option<Cold>,
    pub(crate) choices: Option<PathBuf>,
    pub(crate) allowed_paths: Vec<PathBuf>,
    pub(crate) maps_weights: bool,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) is_check: bool,
    pub(crate) is_info: bool,
    pub(crate) is_json: bool,
    pub(crate) is_quiet: bool,
}

impl Arguments {
    /// None where help was asked for and given.
    pub(crate) fn parse() -> Result<Option<Self>, String> {
        let mut parser = Parser::from_env();
        let mut arguments = Self { repeat: 1, tolerance: 1e-4, ..Self::default() };
        let (mut bundle, mut warmup) = (None, None);
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                Short('h') | Long("help") => return files::print(USAGE).map(|()| None),
                Long("version") => {
                    return files::print(&versions()).map(|()| None);
                }
                Short('q') => arguments.is_quiet = true,
                Long("check") => arguments.is_check = true,
                Long("info") => arguments.is_info = true,
                Long("json") => arguments.is_json = true,
                Long("input") => arguments.inputs.push(input(&value::<String>(&mut parser, "input")?)),
                Long("input-npz") => arguments.archives.push(path(&mut parser)?),
                Long("random-inputs") => {
                    let seed = parser.optional_value().map(|seed| seed.string()).transpose();
                    let seed = seed.map_err(|error| error.to_string())?;
                    let seed = seed.map(|seed| number(&seed, "random-inputs")).transpose()?;
                    arguments.seed = Some(seed.unwrap_or(0));
                }
                Long("output") | Short('o') => arguments.output = Some(path(&mut parser)?),
                Long("expected") => arguments.expected = Some(path(&mut parser)?),
                Long("tolerance") => arguments.tolerance = tolerance(value(&mut parser, "tolerance")?)?,
                Long("repeat") => arguments.repeat = at_least_one(value(&mut parser, "repeat")?, "repeat")?,
                Long("warmup") => warmup = Some(value(&mut parser, "warmup")?),
                Long("threads") => arguments.threads = Some(value(&mut parser, "threads")?),
                Long("in-flight") => {
                    arguments.in_flight = Some(at_least_one(value(&mut parser, "in-flight")?, "in-flight")?);
                }
                Long("cold") => arguments.cold = Some(cold(&value::<String>(&mut parser, "cold")?)?),
                Long("choices") => arguments.choices = Some(path(&mut parser)?),
                Long("allow-path") => arguments.allowed_paths.push(path(&mut parser)?),
                Long("map-weights") => arguments.maps_weights = true,
                Long("trace") => arguments.trace = Some(path(&mut parser)?),
                Long("profile-out") => arguments.profile = Some(path(&mut parser)?),
                Value(folder) if bundle.is_none() => bundle = Some(PathBuf::from(folder)),
                other => return Err(format!("{}; see divi-run --help", other.unexpected())),
            }
        }
        arguments.warmup = warmup.unwrap_or(usize::from(arguments.repeat > 1));
        arguments.bundle = bundle.ok_or_else(|| format!("no bundle\n{USAGE}"))?;
        Ok(Some(arguments))
    }

    /// Whether there is anything to run with.
    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty() || !self.archives.is_empty() || self.seed.is_some()
    }

    /// How closely runs are looked at.
    pub(crate) fn recording(&self) -> Recording {
        match (&self.profile, &self.trace) {
            (Some(_), _) => Recording::Tasks,
            (None, Some(_)) => Recording::Steps,
            (None, None) => Recording::Off,
        }
    }
}

/// Versions of the tool and of the bundles that it runs.
fn versions() -> String {
    format!("divi-run {}\nbundles {}\n", env!("CARGO_PKG_VERSION"), divi_runtime::bundle::FORMAT)
}

/// `NAME=FILE`, or a file alone. Names may have `=` in them, files that end with `.npy` may not.
fn input(text: &str) -> (String, PathBuf) {
    match text.rsplit_once('=') {
        Some((name, file)) => (name.to_owned(), file.into()),
        None => (String::new(), text.into()),
    }
}

fn cold(text: &str) -> Result<Cold, String> {
    match text {
        "overlap" => Ok(Cold::Overlap),
        "copy-first" => Ok(Cold::CopyFirst),
        _ => Err(format!("--cold={text}: it is 'overlap' or 'copy-first'")),
    }
}

fn path(parser: &mut Parser) -> Result<PathBuf, String> {
    parser.value().map(PathBuf::from).map_err(|error| error.to_string())
}

fn value<T: FromStr<Err: Display>>(parser: &mut Parser, name: &str) -> Result<T, String> {
    let text = parser.value().and_then(|value| value.string()).map_err(|error| error.to_string())?;
    number(&text, name)
}

fn number<T: FromStr<Err: Display>>(text: &str, name: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("--{name}={text}: {error}"))
}

fn tolerance(number: f64) -> Result<f64, String> {
    if number >= 0.0 { Ok(number) } else { Err(format!("--tolerance={number}: it must be 0 or more")) }
}

fn at_least_one(number: usize, name: &str) -> Result<usize, String> {
    if number > 0 { Ok(number) } else { Err(format!("--{name} must be at least 1")) }
}
