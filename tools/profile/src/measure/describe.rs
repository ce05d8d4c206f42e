//! Serialization of a system as a description (TOML).

use divi_cost::system::{Contention, Device, Execution, System};
use serde_json::json;
use std::{
    fmt::Write,
    path::{Component, Path, PathBuf},
};

/// Returns the description of a system; paths are relative to the folder of `file`.
pub(crate) fn toml(system: &System, file: &str) -> String {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut text = format!("# Written by divi-profile measure.\nname = {}\n", quoted(&system.name));
    if system.contention != Contention::Off {
        text += &format!("contention = {}\n", quoted(system.contention.name()));
    }
    for device in &system.devices {
        let mut fields = device_fields(device, folder);
        fields.push(("node", device.node.as_deref().map(quoted)));
        text += &table("[[device]]", &fields);
    }
    for link in &system.links {
        let (from, to) = (&system.devices[link.from].id, &system.devices[link.to].id);
        text += &table(
            "[[link]]",
            &[
                ("from", Some(quoted(from))),
                ("to", Some(quoted(to))),
                ("bandwidth", Some(quantity(link.bandwidth.0 / 1e9, "GB/s"))),
                ("latency", Some(quantity(link.latency.micros(), "us"))),
                ("bus", link.bus.as_deref().map(quoted)),
            ],
        );
    }
    text
}

/// Returns the keys of a device and their values, except for its node; paths are relative to the folder.
pub(crate) fn device_fields(device: &Device, folder: &Path) -> Vec<(&'static str, Option<String>)> {
    let rates = &device.rates;
    let flops = |rate: f64| Some(quantity(rate / 1e9, "GFLOP/s"));
    let path = |path: &Option<PathBuf>| Some(quoted(&relative(path.as_ref()?, folder).to_string_lossy()));
    vec![
        ("id", Some(quoted(&device.id))),
        ("kind", Some(quoted(device.kind.name()))),
        ("memory", Some(device.memory.0.to_string())),
        ("batch_sizes", Some(format!("{:?}", device.batch_sizes))),
        ("arch", device.arch.as_deref().map(quoted)),
        ("threads", device.threads.filter(|_| device.kind.uses_threads()).map(|threads| threads.to_string())),
        ("flops", flops(rates.f32.0)),
        ("flops_f64", flops(rates.f64.0)),
        ("flops_f16", flops(rates.f16.0)),
        ("flops_bf16", flops(rates.bf16.0)),
        ("flops_i8", flops(rates.i8.0)),
        ("bandwidth", Some(quantity(rates.bandwidth.0 / 1e9, "GB/s"))),
        ("launch", device.launch.map(|launch| quantity(launch.micros(), "us"))),
        ("execution", (device.execution == Execution::Captured).then(|| quoted("captured"))),
        ("profile", path(&device.profile)),
        ("cost_model", path(&device.cost_model)),
        ("weights", device.streams_weights.then(|| quoted("streamed"))),
    ]
}

/// Formats a table, given its header, of the keys that have values.
pub(crate) fn table(header: &str, fields: &[(&str, Option<String>)]) -> String {
    let mut text = format!("\n{header}\n");
    for (key, value) in fields {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

/// Quotes a string; TOML accepts JSON's escapes.
pub(crate) fn quoted(text: &str) -> String {
    json!(text).to_string()
}

/// Formats a number with six significant digits, more than the precision of measurements.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let digits = if value > 0.0 { 5 - value.log10().floor() as i32 } else { 0 };
    let scale = 10f64.powi(digits.clamp(-300, 300));
    quoted(&format!("{} {unit}", (value * scale).round() / scale))
}

/// Returns a path relative to a folder, if both exist.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let (Ok(path), Ok(folder)) = (path.canonicalize(), folder.join(".").canonicalize()) else { return path.to_owned() };
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_cost::system::presets::PRESETS;

    /// Tests that a description round-trips, up to rounding.
    #[test]
    fn presets_round_trip() {
        for preset in PRESETS {
            let system = System::parse(preset.name, preset.text).unwrap();
            let again = System::parse("again.toml", &toml(&system, "again.toml")).unwrap();
            let twice = System::parse("again.toml", &toml(&again, "again.toml")).unwrap();
            assert_eq!(again, twice, "{}", preset.name);
            assert_eq!((&again.name, again.contention), (&system.name, system.contention));
            for (a, b) in again.devices.iter().zip(&system.devices) {
                assert_eq!((&a.id, a.kind, a.memory, &a.batch_sizes), (&b.id, b.kind, b.memory, &b.batch_sizes));
                assert_eq!((&a.arch, a.threads, a.execution, &a.node), (&b.arch, b.threads, b.execution, &b.node));
                assert!((a.rates.i8.0 / b.rates.i8.0 - 1.0).abs() < 1e-5, "{}", preset.name);
            }
            for (a, b) in again.links.iter().zip(&system.links) {
                assert_eq!((a.from, a.to, &a.bus), (b.from, b.to, &b.bus));
                assert!((a.latency.0 - b.latency.0).abs() <= 1e-5 * b.latency.0, "{}", preset.name);
            }
        }
    }

    #[test]
    fn quantities_have_six_digits() {
        assert_eq!(quantity(10.0, "GB/s"), "\"10 GB/s\"");
        assert_eq!(quantity(12.300000001, "us"), "\"12.3 us\"");
        assert_eq!(quantity(1234567.8, "GFLOP/s"), "\"1234570 GFLOP/s\"");
        assert_eq!(quantity(0.0, "us"), "\"0 us\"");
    }
}
