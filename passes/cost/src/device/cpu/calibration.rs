//! Cost model that was fitted to this machine's processor, in the user's cache directory.

use super::Processor;
use std::{env, path::PathBuf};

/// Returns the file of the cost model for this machine's processor and this version of divi, whose kernels it describes: below
/// `$XDG_CACHE_HOME`, or `~/.cache`. `None` if there is neither.
pub fn calibrated_model() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("divi").join(file_name(&Processor::of_this_machine())))
}

fn file_name(processor: &Processor) -> String {
    let name: String = processor.name.chars().map(|letter| letter.to_ascii_lowercase()).collect();
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("cpu-model-{}-{}-{}.json", env!("CARGO_PKG_VERSION"), processor.arch(), words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        let mut processor = Processor::of_this_machine();
        processor.name = "Intel(R) Xeon(R) @ 2.50GHz/../x".to_owned();
        let name = file_name(&processor);
        assert!(name.ends_with("-intel-r-xeon-r-2-50ghz-x.json") && !name.contains('/'), "{name}");
    }
}
