//! Arguments: options with a value, and files.

use divi_cost::device::{self, Kind, MemorySpace};
use divi_files::{Inputs, check_distinct};
use std::path::Path;

/// What a command is called with.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) files: Vec<String>,
    options: Vec<(String, String)>,
    pub(crate) is_help: bool,
}

impl Arguments {
    /// Reads arguments of which these options are allowed: `--name=value`, `--name value` or, for `o`, `-o value`; `-q` has
    /// no value.
    pub(crate) fn read(arguments: &[String], allowed: &[&str]) -> Result<Self, String> {
        let mut read = Self::default();
        let mut rest = arguments.iter();
        let mut only_files = false;
        while let Some(argument) = rest.next() {
            if only_files || argument == "-" || !argument.starts_with('-') {
                read.files.push(argument.clone());
                continue;
            }
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (&argument[..], None),
            };
            match name {
                "--" if value.is_none() => {
                    only_files = true;
                    continue;
                }
                "--help" | "-h" if value.is_none() => {
                    read.is_help = true;
                    continue;
                }
                "-q" if value.is_none() && allowed.contains(&"q") => {
                    read.options.push(("q".to_owned(), String::new()));
                    continue;
                }
                _ => {}
            }
            let option = if name == "-o" { "o" } else { name.strip_prefix("--").unwrap_or(name) };
            if !allowed.contains(&option) || option == "q" {
                return Err(format!("unknown option '{name}' (see --help)"));
            }
            let value = value.or_else(|| rest.next().cloned()).ok_or_else(|| format!("{name} needs a value"))?;
            if read.option(option).is_some() {
                return Err(format!("{name} is given twice"));
            }
            read.options.push((option.to_owned(), value));
        }
        Ok(read)
    }

    /// Checks that outputs, each with its option, are neither among the files that are read nor the same.
    pub(crate) fn check_outputs(&self, outputs: &[&str], read: &[&str]) -> Result<(), String> {
        let mut inputs = Inputs::default();
        let named = read.iter().filter_map(|option| self.option(option));
        let files = self.files.iter().map(String::as_str).chain(named).filter(|file| *file != "-");
        files.for_each(|file| inputs.add("an input", Path::new(file)));
        let outputs: Vec<_> = outputs
            .iter()
            .filter_map(|option| Some((*option, Path::new(self.option(option).filter(|file| *file != "-")?))))
            .collect();
        outputs.iter().try_for_each(|(_, output)| inputs.check_file(output))?;
        check_distinct(&outputs)
    }

    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..])
    }

    /// The kind of device, if it is given.
    pub(crate) fn kind(&self) -> Result<Option<Kind>, String> {
        let Some(name) = self.option("device") else { return Ok(None) };
        let unknown = || format!("--device is '{name}', must be one of {}", device::names(|_| true));
        device::find(name).map(Some).ok_or_else(unknown)
    }

    /// A rate, which must be above zero.
    pub(crate) fn rate(&self, name: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.option(name) else { return Ok(None) };
        let rate = text.parse().ok().filter(|rate: &f64| *rate > 0.0 && rate.is_finite());
        rate.map(Some).ok_or_else(|| format!("--{name} is '{text}', must be a positive number"))
    }
}

/// The kind whose times of a table are meant where no option says so: the first with memory of its own.
pub(crate) fn kind_of_tables() -> Kind {
    let kinds = device::all();
    let accelerator = kinds.iter().find(|kind| kind.memory() == MemorySpace::Device);
    *accelerator.unwrap_or(&kinds[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Arguments, String> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Arguments::read(&arguments, &["o", "q", "device", "flops-per-s"])
    }

    #[test]
    fn options_and_files_mix() {
        let read =
            read(&["a.json", "--device=cpu", "-q", "-", "-o", "out", "--flops-per-s", "1e12", "--", "--b"]).unwrap();
        assert_eq!(read.files, ["a.json", "-", "--b"]);
        assert_eq!((read.kind(), read.option("o")), (Ok(Some(device::CPU)), Some("out")));
        assert_eq!((read.rate("flops-per-s"), read.option("q")), (Ok(Some(1e12)), Some("")));
    }

    #[test]
    fn errors_say_which_option() {
        let fails = |arguments: &[&str], expected: &str| assert_eq!(read(arguments).unwrap_err(), expected);
        fails(&["--frob"], "unknown option '--frob' (see --help)");
        fails(&["--q"], "unknown option '--q' (see --help)");
        fails(&["-q=1"], "unknown option '-q' (see --help)");
        fails(&["-o"], "-o needs a value");
        fails(&["-o", "a", "-o", "b"], "-o is given twice");
        let read = read(&["--device=tpu", "--flops-per-s=-1"]).unwrap();
        assert_eq!(read.kind().unwrap_err(), "--device is 'tpu', must be one of cpu, cuda");
        assert_eq!(read.rate("flops-per-s").unwrap_err(), "--flops-per-s is '-1', must be a positive number");
    }
}
