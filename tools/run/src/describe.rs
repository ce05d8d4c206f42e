//! Description of a bundle as text.

use divi_runtime::{
    MemoryUse,
    bundle::{Action, Bundle, Device, Mode},
};
use std::{fmt::Write as _, path::Path};

pub(crate) fn checked(folder: &Path, bundle: &Bundle, in_flight: Option<usize>) -> String {
    let files = || bundle.files.iter().chain(&bundle.model_files);
    let bytes = files().map(|file| file.bytes).fold(0, u64::saturating_add);
    let (files, folder) = (files().count(), folder.display());
    format!("{folder}: valid, {files} files, {}\n{}", size(bytes), memory(bundle, in_flight))
}

pub(crate) fn bundle(bundle: &Bundle, in_flight: Option<usize>) -> String {
    let code: Vec<_> = bundle.executables.iter().map(|it| format!("{} ({})", it.file, it.format)).collect();
    let mut text = format!("model     {}\ncode      {}\n", bundle.model, code.join(", "));
    let objective = &bundle.objective;
    let _ = write!(text, "objective {}", mode(objective.mode));
    if objective.inputs != 1 {
        let _ = write!(text, " of {} inputs", objective.inputs);
    }
    if let Some(predicted) = objective.predicted_us {
        let _ = write!(text, ", predicted {}", time(predicted));
    }
    if let Some(bound) = objective.bound_us {
        let _ = write!(text, ", bound {}", time(bound));
    }
    text.push('\n');
    for (ports, kind) in [(&bundle.inputs, "input    "), (&bundle.outputs, "output   ")] {
        for port in ports {
            let _ = writeln!(text, "{kind} {}: {}", port.name, bundle.values[port.value].tensor);
        }
    }
    let transfers = bundle.steps.iter().filter(|step| matches!(step.action, Action::Transfer { .. })).count();
    let tasks: usize = bundle.stages.iter().map(|stage| stage.tasks.len()).sum();
    let calls: usize = bundle.stages.iter().map(|stage| stage.calls.len()).sum();
    let (stages, constants) = (bundle.stages.len(), bundle.constants.len());
    let _ = writeln!(
        text,
        "stages    {stages} with {tasks} tasks in {calls} calls; {transfers} transfers, {constants} constants"
    );
    text + &memory(bundle, in_flight)
}

fn memory(bundle: &Bundle, in_flight: Option<usize>) -> String {
    let line = |(device, used): (&Device, MemoryUse)| {
        format!(
            "device    {}: {} of {}: weights {}, arena {}, values {}\n",
            device.id,
            size(used.total()),
            size(device.memory),
            size(used.weights),
            size(used.arena),
            size(used.values)
        )
    };
    bundle.devices.iter().zip(MemoryUse::planned(bundle, in_flight)).map(line).collect()
}

pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Latency => "latency",
        Mode::Batch => "batch",
        Mode::Pipeline => "pipeline",
    }
}

pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut number = bytes as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.2} {}", units[unit])
}

pub(crate) fn time(micros: f64) -> String {
    if micros < 1e4 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1e3) }
}
