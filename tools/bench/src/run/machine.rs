//! Measurements of this machine by `divi-profile`, which plans are made with.

use super::{
    Settings,
    build::{WEIGHTS, original, output_of, program, write},
    launch::{Launched, launch},
};
use divi_cost::{device::MemorySpace, system::System};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// This machine, with its measured links.
pub(super) struct Machine {
    system: PathBuf,
    /// True if a device has its own memory, so that copies need none of the computing cores.
    has_accelerators: bool,
    pub(super) seconds: f64,
    choices: PathBuf,
}

impl Machine {
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        let (system, choices) = (write("host.toml", "")?, write("choices.json", "")?);
        let profile = system.with_extension("json");
        // Earlier measurements may be of another build; the files may be missing.
        [&choices, &profile].into_iter().for_each(|file| _ = std::fs::remove_file(file));
        let mut command = Command::new(program("divi-profile")?);
        command.arg("measure").arg("-q").arg("-o").arg(&profile);
        command.arg(format!("--system={}", settings.system)).arg(format!("--system-out={}", system.display()));
        output_of(command, "links")?;
        let known = System::load(&system.display().to_string()).map_err(|error| error.to_string())?;
        let has_accelerators = known.devices.iter().any(|device| device.kind.memory() == MemorySpace::Device);
        Ok(Self { system, has_accelerators, seconds: settings.seconds, choices })
    }

    /// Measures a model's tasks, for the given batch sizes if any, and returns the system with this profile.
    pub(super) fn measure(&self, model: &str, batches: &[u32]) -> Result<PathBuf, String> {
        let system = write(&format!("{model}-host.toml"), "")?;
        let profile = system.with_extension("json");
        let kinds = ["json", "sm_80.json", "sm_90.json"].map(|extension| profile.with_extension(extension));
        kinds.iter().for_each(|file| _ = std::fs::remove_file(file));
        let mut command = Command::new(program("divi-profile")?);
        command.arg("measure").arg(original(model)?).args(["-q", "--links=keep", "-o"]).arg(&profile);
        command.arg(format!("--weights={WEIGHTS}")).arg(format!("--time-limit={}", self.seconds));
        command.arg(format!("--system={}", self.system.display()));
        command.arg(format!("--system-out={}", system.display()));
        command.arg(format!("--choices={}", self.choices.display()));
        if !batches.is_empty() {
            let sizes: Vec<String> = batches.iter().map(u32::to_string).collect();
            command.arg(format!("--batch={}", sizes.join(",")));
        }
        output_of(command, model)?;
        Ok(system)
    }

    /// Returns true if a device has its own memory.
    pub(super) fn has_accelerators(&self) -> bool {
        self.has_accelerators
    }

    /// Returns the `--pipeline-cost` option for this machine.
    pub(super) fn pipeline_cost(&self) -> &'static str {
        if self.has_accelerators { "--pipeline-cost=overlap" } else { "--pipeline-cost=serial" }
    }

    /// Runs a bundle, on GPUs with the algorithms that were measured.
    pub(super) fn launch(&self, bundle: &Path, options: &[String]) -> Result<Launched, String> {
        let choices = format!("--choices={}", self.choices.display());
        launch(bundle, &[options, &[choices]].concat())
    }
}
