//! What was asked for.

use super::kind::Kind;
use crate::arguments::Arguments;
use divi_codegen::Target;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

pub(super) const OPTIONS: &[&str] =
    &["o", "q", "system", "batch", "weights", "weights-dir", "cpu", "system-out", "time-limit", "choices", "links"];

/// Most models are stable long before.
const TIME_LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Settings {
    pub(super) models: Vec<PathBuf>,
    pub(super) system: String,
    /// Ascending. None where models keep their own, which is 1 where it is open.
    pub(super) batches: Vec<u32>,
    /// What weights are made from that are not there.
    pub(super) seed: Option<u64>,
    /// The folder of weights, if not the model's.
    pub(super) weights_dir: Option<PathBuf>,
    pub(super) target: Target,
    output: PathBuf,
    pub(super) system_output: Option<String>,
    /// Whether links stay as the system has them.
    pub(super) keeps_links: bool,
    /// For each model and batch, and each size of a copy.
    pub(super) time_limit: Duration,
    /// The file of what is the fastest on GPUs.
    pub(super) choices: Option<PathBuf>,
    pub(super) is_quiet: bool,
}

impl Settings {
    /// What can be found wrong at once is: measuring takes its time.
    pub(super) fn of(arguments: &Arguments) -> Result<Self, String> {
        let output = arguments.option("o").filter(|output| *output != "-");
        let output = output.ok_or("measure needs -o FILE: what is there already is not measured again")?;
        let system_output = arguments.option("system-out").map(str::to_owned);
        if arguments.files.is_empty() && system_output.is_none() {
            return Err("measure needs a model, or --system-out for links alone (see --help)".to_owned());
        }
        if system_output.as_deref() == Some(output) {
            return Err(format!("{output}: is where the profile goes: give --system-out another name"));
        }
        arguments.check_outputs(&["o", "system-out", "choices"], &["system"])?;
        for file in [Some(output), system_output.as_deref()].into_iter().flatten() {
            check_folder(file)?;
        }
        for model in &arguments.files {
            std::fs::File::open(model).map_err(|error| format!("{model}: {error}"))?;
        }
        Ok(Self {
            models: arguments.files.iter().map(PathBuf::from).collect(),
            system: arguments.option("system").unwrap_or("host").to_owned(),
            batches: arguments.option("batch").map_or(Ok(vec![]), batches)?,
            seed: arguments.option("weights").map(seed).transpose()?,
            weights_dir: arguments.option("weights-dir").map(PathBuf::from),
            target: Target::named(arguments.option("cpu").unwrap_or("native")).map_err(|error| error.to_string())?,
            output: output.into(),
            system_output,
            keeps_links: match arguments.option("links") {
                None | Some("measure") => false,
                Some("keep") => true,
                Some(other) => return Err(format!("--links is '{other}', must be measure or keep")),
            },
            time_limit: arguments.option("time-limit").map_or(Ok(TIME_LIMIT), seconds)?,
            choices: arguments.option("choices").map(PathBuf::from),
            is_quiet: arguments.option("q").is_some(),
        })
    }

    /// Where the profile of a kind of device goes: `profile.json`, then `profile.4-threads.json` or `profile.sm_90.json`.
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

    /// What the profile says has run the tasks: code for another processor takes other times.
    pub(super) fn runtime(&self) -> String {
        format!("divi {}, {}", env!("CARGO_PKG_VERSION"), self.target.cpu)
    }

    /// By how much plans for a model at the smallest batch may multiply it and find what was measured.
    pub(super) fn factors(&self) -> Vec<u32> {
        let Some(&least) = self.batches.first() else { return vec![1] };
        self.batches.iter().filter(|batch| batch.is_multiple_of(least)).map(|batch| batch / least).collect()
    }
}

fn check_folder(file: &str) -> Result<(), String> {
    let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() { Ok(()) } else { Err(format!("{file}: '{}' is no folder", folder.display())) }
}

fn batches(text: &str) -> Result<Vec<u32>, String> {
    let size = |size: &str| size.parse().ok().filter(|size| (1..=1 << 30).contains(size));
    let mut sizes: Vec<u32> = text
        .split(',')
        .map(size)
        .collect::<Option<_>>()
        .ok_or_else(|| format!("--batch is '{text}', must be sizes above zero, as in 1,4"))?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn seed(text: &str) -> Result<u64, String> {
    let seed = text.strip_prefix("random:").and_then(|seed| seed.parse().ok());
    seed.ok_or_else(|| format!("--weights is '{text}', must be random:SEED, as in random:1"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let limit = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.ok_or_else(|| format!("--time-limit is '{text}', must be a number of seconds from 0 on"))
}

#[cfg(test)]
mod tests {
    use super::super::kind::{Processor, Variant};
    use super::*;
    use divi_cost::device::CPU;

    fn settings(options: &[&str]) -> Result<Settings, String> {
        let line: Vec<String> =
            ["-o", "p.json", "--system-out=s.toml"].iter().chain(options).map(|word| (*word).to_owned()).collect();
        Settings::of(&Arguments::read(&line, OPTIONS).unwrap())
    }

    #[test]
    fn batches_ascend_and_are_multiples_of_the_first() {
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
        assert!(settings.runtime().ends_with(", x86-64-v3"));
    }

    #[test]
    fn slips_are_named() {
        let fails = |option: &str, expected: &str| assert_eq!(settings(&[option]).err().as_deref(), Some(expected));
        fails("--batch=1,0", "--batch is '1,0', must be sizes above zero, as in 1,4");
        fails("--weights=7", "--weights is '7', must be random:SEED, as in random:1");
        fails("--links=no", "--links is 'no', must be measure or keep");
        fails("--time-limit=-1", "--time-limit is '-1', must be a number of seconds from 0 on");
        fails("none.onnx", "none.onnx: No such file or directory (os error 2)");
    }
}
