//! Validated arguments.

use super::Measure;
use super::{kind::Kind, model::Compilation};
use crate::files;
use divi_codegen::Target;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Batch sizes.
pub(super) type Batches = Vec<u32>;

pub(super) struct Settings {
    pub(super) models: Vec<PathBuf>,
    pub(super) system: String,
    /// Sorted. Empty if models keep their own batch size, which is 1 if dynamic.
    pub(super) batches: Vec<u32>,
    pub(super) compilation: Compilation,
    output: PathBuf,
    pub(super) system_output: Option<String>,
    /// Keeps the links of the system.
    pub(super) keeps_links: bool,
    /// Time limit for each model and batch size, and for each size of a copy.
    pub(super) time_limit: Duration,
    /// File of the fastest algorithms on GPUs.
    pub(super) choices: Option<PathBuf>,
    pub(super) is_quiet: bool,
}

impl Settings {
    /// Checks the arguments before anything is measured.
    pub(super) fn of(arguments: Measure) -> Result<Self, String> {
        let Measure { models, output, system, system_out, choices, .. } = arguments;
        let Some(output) = output else {
            return Err("measure needs -o PROFILE.json, the profile to extend".to_owned());
        };
        if output == "-" {
            return Err("-o must be a file: measure extends an existing profile".to_owned());
        }
        if models.is_empty() && system_out.is_none() {
            return Err("measure needs a model, or --system-out to measure links only (see --help)".to_owned());
        }
        if system_out.as_ref() == Some(&output) {
            return Err(format!("{output}: -o and --system-out name the same file"));
        }
        let outputs =
            [("-o", Some(&output[..])), ("--system-out", system_out.as_deref()), ("--choices", choices.as_deref())];
        files::check(models.iter().chain([&system]).map(String::as_str), &outputs)?;
        for file in [Some(&output), system_out.as_ref()].into_iter().flatten() {
            files::check_folder(file)?;
        }
        for model in &models {
            std::fs::File::open(model).map_err(|error| format!("{model}: {error}"))?;
        }
        Ok(Self {
            models: models.into_iter().map(PathBuf::from).collect(),
            system,
            batches: arguments.batch.unwrap_or_default(),
            compilation: Compilation {
                seed: arguments.weights,
                weights_dir: arguments.weights_dir,
                target: Target::named(&arguments.cpu).map_err(|error| error.to_string())?,
            },
            output: output.into(),
            system_output: system_out,
            keeps_links: arguments.links == "keep",
            time_limit: arguments.time_limit,
            choices: choices.map(PathBuf::from),
            is_quiet: arguments.quiet,
        })
    }

    /// Returns the path of the profile of a kind of device: `profile.json`, then `profile.4-threads.json` or `profile.sm_90.json`.
    pub(super) fn profile(&self, index: usize, kind: &Kind) -> PathBuf {
        if index == 0 {
            return self.output.clone();
        }
        let mut name = self.output.file_stem().map(OsString::from).unwrap_or_default();
        name.push(format!(".{}", kind.text().replace(' ', "-")));
        if let Some(extension) = self.output.extension() {
            name.push(".");
            name.push(extension);
        }
        self.output.with_file_name(name)
    }

    /// Returns the factors by which plans may multiply a model's smallest batch size and find measured times.
    pub(super) fn factors(&self) -> Vec<u32> {
        let Some(&least) = self.batches.first() else { return vec![1] };
        self.batches.iter().filter(|batch| batch.is_multiple_of(least)).map(|batch| batch / least).collect()
    }
}

/// Parses batch sizes; returns them sorted.
pub(super) fn batches(text: &str) -> Result<Batches, String> {
    let size = |size: &str| size.parse().ok().filter(|size| (1..=1 << 30).contains(size));
    let sizes: Option<Batches> = text.split(',').map(size).collect();
    let mut sizes = sizes.ok_or_else(|| "must be positive sizes, for instance 1,4".to_owned())?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    seed.ok_or_else(|| "must be random:SEED, as in random:1".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(divi_cli::seconds(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::kind::{Processor, Variant};
    use super::*;
    use clap::CommandFactory;
    use divi_cost::device::CPU;
    use std::path::Path;

    fn settings(options: &[&str]) -> Result<Settings, String> {
        let words = ["measure", "-o", "p.json", "--system-out=s.toml"].iter().chain(options);
        let measure = divi_cli::try_parse_from(Measure::command(), words);
        Settings::of(measure.map_err(|error| error.to_string())?)
    }

    #[test]
    fn batches_are_sorted_and_factors_are_relative_to_the_first() {
        let of = |options: &[&str]| settings(options).map(|settings| (settings.batches.clone(), settings.factors()));
        assert_eq!(of(&[]), Ok((vec![], vec![1])));
        assert_eq!(of(&["--batch=4,1,4"]), Ok((vec![1, 4], vec![1, 4])));
        assert_eq!(of(&["--batch=8,2,3"]), Ok((vec![2, 3, 8], vec![1, 4])));
    }

    #[test]
    fn each_kind_has_a_profile() {
        let settings = settings(&["--cpu=x86-64-v3"]).unwrap();
        let processor = Processor { kind: CPU, variant: Variant::Threads(4) };
        let product = "Xeon".to_owned();
        let kind = Kind { processor, product, devices: vec![1], memory: 1, is_beside_accelerators: false };
        assert_eq!(settings.profile(0, &kind), Path::new("p.json"));
        assert_eq!(settings.profile(1, &kind), Path::new("p.4-threads.json"));
        assert!(settings.compilation.runtime().ends_with(", x86-64-v3"));
    }

    #[test]
    fn invalid_values_are_reported() {
        let fails = |option: &str, expected: &str| {
            let error = settings(&[option]).err().unwrap();
            assert!(error.contains(expected), "{error}");
        };
        fails("--batch=1,0", "invalid value '1,0' for '--batch <N,...>': must be positive sizes, for instance 1,4\n");
        fails("--weights=7", "invalid value '7' for '--weights <random:SEED>': must be random:SEED, as in random:1\n");
        fails("--links=no", "invalid value 'no' for '--links <NAME>'\n  [possible values: measure, keep]\n");
        fails(
            "--time-limit=-1",
            "invalid value '-1' for '--time-limit <S>': must be a non-negative number of seconds\n",
        );
        fails("--time-limit=1e30", "invalid value '1e30' for '--time-limit <S>': ");
        fails("none.onnx", "none.onnx: No such file or directory (os error 2)");
    }
}
