//! Named systems.

/// Name of the detected system, the default.
pub const HOST: &str = "host";

/// Description that is compiled in.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name of the preset.
    pub name: &'static str,
    /// Text of the description.
    pub text: &'static str,
}

/// All presets except [`HOST`].
pub const PRESETS: &[Preset] = &[
    Preset { name: "cpu-2", text: include_str!("../../presets/cpu-2.toml") },
    Preset { name: "cpu-2x1", text: include_str!("../../presets/cpu-2x1.toml") },
    Preset { name: "cpu-6x4", text: include_str!("../../presets/cpu-6x4.toml") },
    Preset { name: "cpu+h200", text: include_str!("../../presets/cpu+h200.toml") },
    Preset { name: "diviml", text: include_str!("../../presets/diviml.toml") },
    Preset { name: "v100-dgx", text: include_str!("../../presets/v100-dgx.toml") },
    Preset { name: "v100-hetero", text: include_str!("../../presets/v100-hetero.toml") },
    Preset { name: "a6000", text: include_str!("../../presets/a6000.toml") },
    Preset { name: "gpt3-6x4", text: include_str!("../../presets/gpt3-6x4.toml") },
];

/// Finds a preset by name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns the names that `--system` accepts besides paths.
pub fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(HOST).chain(PRESETS.iter().map(|preset| preset.name))
}

#[cfg(test)]
mod tests;
