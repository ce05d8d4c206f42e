//! Command lines of divi's tools: parsing with `clap`, errors, shell completions and manual pages.
//!
//! Common conventions of all tools: errors begin with the name of the tool and give exit status 1, help and versions go to
//! standard output, and the value of an option may begin with `-`.

mod generate;

use clap::{
    Arg, Command, FromArgMatches,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt::Display,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    str::FromStr,
};

/// Undocumented first argument of every tool: writes its completions and manual pages into the folder given next.
const GENERATE: &str = "--generate";

/// Parses the arguments of this process. The error is the exit status if the process is done: help, the version or an error
/// was printed.
pub fn parse<T: FromArgMatches>(command: Command) -> Result<T, ExitCode> {
    let name = command.get_name().to_owned();
    let fail = |message: &dyn Display| {
        eprintln!("{name}: error: {message}");
        ExitCode::FAILURE
    };
    let mut arguments = env::args_os().skip(1);
    if let (Some(first), Some(folder), None) = (arguments.next(), arguments.next(), arguments.next())
        && first == GENERATE
    {
        let written = generate::write(command, Path::new(&folder));
        return Err(written.map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS));
    }
    let error = match try_parse_from(command, env::args_os()) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    if error.use_stderr() {
        eprint!("{name}: {error}");
        return Err(ExitCode::FAILURE);
    }
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "{error}").and_then(|()| stdout.flush());
    Err(printed.map_or_else(|error| fail(&format_args!("stdout: {error}")), |()| ExitCode::SUCCESS))
}

/// Parses `arguments`, the first of which is the name of the program.
pub fn try_parse_from<T: FromArgMatches>(
    command: Command,
    arguments: impl IntoIterator<Item: Into<OsString> + Clone>,
) -> Result<T, clap::Error> {
    // A missing command is an error that lists the commands, not a request for help.
    let mut command = allow_hyphen_values(command).arg_required_else_help(false);
    let matches = command.try_get_matches_from_mut(arguments);
    let parsed = matches.and_then(|mut matches| T::from_arg_matches_mut(&mut matches));
    parsed.map_err(|mut error| {
        if error.kind() == ErrorKind::InvalidSubcommand {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let note = format!("available commands: {}", names.join(", "));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![note.into()]));
        }
        error
    })
}

/// Allows values of options to begin with `-`, as in `-o -`. Positional arguments need `--` for that.
fn allow_hyphen_values(command: Command) -> Command {
    let allow = |arg: Arg| {
        let is_option = !arg.is_positional() && arg.get_action().takes_values();
        if is_option { arg.allow_hyphen_values(true) } else { arg }
    };
    command.mut_args(allow).mut_subcommands(allow_hyphen_values)
}

/// Returns a parser of named values, which `T` can parse too.
pub fn named<T>(names: impl IntoIterator<Item: Into<PossibleValue>>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Parses a number of seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| "must be a non-negative number of seconds".to_owned())
}

/// Parses an integer that is at least 1.
pub fn positive<T: FromStr + PartialOrd + Default>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number > T::default());
    number.ok_or_else(|| "must be a positive integer".to_owned())
}

#[cfg(test)]
mod tests;
