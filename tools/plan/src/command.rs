//! The commands: arguments in, one call, output out.

mod bound;
mod convert;
mod generate;
mod region;
mod solve;
mod verify;

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use lexopt::Parser;
use lexopt::prelude::{Long, Short, Value, ValueExt};

use crate::files;

pub(crate) fn run(name: &str, arguments: &mut Parser) -> Result<(), String> {
    match name {
        "solve" => solve::run(arguments),
        "verify" => verify::run(arguments),
        "bound" => bound::run(arguments),
        "convert" => convert::run(arguments),
        "generate" => generate::run(arguments),
        "region" => region::run(arguments),
        _ => Err(format!("there is no command '{name}'; there are solve, verify, bound, convert, generate, region")),
    }
}

/// What all commands take: files by position, `-o`, `--help`, and options of their own.
struct Arguments {
    files: Vec<PathBuf>,
    output: Option<PathBuf>,
}

/// Reads a command's arguments. Options of its own go to `option`, which says whether it knows them. None where help was
/// asked for and given.
fn parse(
    parser: &mut Parser,
    usage: &str,
    mut option: impl FnMut(&str, &mut Parser) -> Result<bool, String>,
) -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { files: Vec::new(), output: None };
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Short('h') | Long("help") => {
                files::print(usage)?;
                return Ok(None);
            }
            Short('o') => arguments.output = Some(parser.value().map_err(|error| error.to_string())?.into()),
            Value(file) => arguments.files.push(file.into()),
            Long(name) => {
                let name = name.to_owned();
                if !option(&name, parser)? {
                    return Err(format!("there is no option --{name}; see --help"));
                }
            }
            Short(letter) => {
                if !option(&letter.to_string(), parser)? {
                    return Err(format!("there is no option -{letter}; see --help"));
                }
            }
        }
    }
    Ok(Some(arguments))
}

impl Arguments {
    /// The files by position; each is wanted, and no more.
    fn files<const COUNT: usize>(&self, wanted: [&str; COUNT]) -> Result<[&PathBuf; COUNT], String> {
        if let Some(extra) = self.files.get(COUNT) {
            return Err(format!("one argument too many: {}", extra.display()));
        }
        if let Some(missing) = wanted.get(self.files.len()) {
            return Err(format!("{missing} is missing"));
        }
        if self.files.iter().filter(|file| files::is_standard(file)).count() > 1 {
            return Err("stdin can be only one of the files".to_owned());
        }
        self.check_outputs(&[])?;
        Ok(std::array::from_fn(|index| &self.files[index]))
    }

    /// Checks that `-o` and outputs of other options are neither files that are read nor the same.
    fn check_outputs(&self, others: &[(&str, &PathBuf)]) -> Result<(), String> {
        let mut inputs = divi_files::Inputs::default();
        self.files.iter().filter(|file| !files::is_standard(file)).for_each(|file| inputs.add("an input", file));
        let all = self.output.iter().map(|output| ("-o", output)).chain(others.iter().copied());
        let outputs: Vec<_> =
            all.filter(|(_, path)| !files::is_standard(path)).map(|(o, path)| (o, path.as_path())).collect();
        outputs.iter().try_for_each(|(_, output)| inputs.check_file(output))?;
        divi_files::check_distinct(&outputs)
    }
}

/// An option's value.
fn value<T: FromStr<Err: Display>>(parser: &mut Parser, name: &str) -> Result<T, String> {
    let text = parser.value().and_then(|value| value.string()).map_err(|error| error.to_string())?;
    text.parse().map_err(|error| format!("--{name}={text}: {error}"))
}
