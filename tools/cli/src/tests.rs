//! Tests of command-line parsing.
use super::{env, generate, io, named, positive, seconds, try_parse_from};
use clap::{CommandFactory, Parser};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

/// Counts and copies.
#[derive(Debug, Parser)]
#[command(name = "my-tool", version, long_version = "1\nlibrary 2", disable_help_subcommand = true)]
enum Arguments {
    /// Counts.
    Count {
        #[arg(long, value_parser = positive::<u32>)]
        number: u32,
        #[arg(long, value_parser = seconds)]
        limit: Option<f64>,
        #[arg(long, value_parser = named::<Colour>(["red", "green"]), ignore_case = true)]
        colour: Option<Colour>,
    },
    /// Copies.
    Copy { file: PathBuf },
}

#[derive(Clone, Debug, PartialEq)]
enum Colour {
    Red,
    Green,
}

impl FromStr for Colour {
    type Err = io::Error;

    fn from_str(name: &str) -> Result<Self, io::Error> {
        Ok(if name.eq_ignore_ascii_case("red") { Self::Red } else { Self::Green })
    }
}

fn parsed(line: &str) -> Result<Arguments, String> {
    let words = ["my-tool"].into_iter().chain(line.split_whitespace());
    try_parse_from(Arguments::command(), words).map_err(|error| error.to_string())
}

fn fails(line: &str, expected: &str) {
    let error = parsed(line).unwrap_err();
    assert!(error.starts_with("error: ") && error.contains(expected), "{error}");
}

#[test]
fn values_are_parsed() {
    let Ok(Arguments::Count { number: 3, limit: Some(0.5), colour: Some(Colour::Red) }) =
        parsed("count --number 3 --limit=0.5 --colour RED")
    else {
        panic!("the line is valid")
    };
    assert!(matches!(parsed("copy -"), Ok(Arguments::Copy { file }) if file == Path::new("-")));
    assert!(matches!(parsed("copy -- -x"), Ok(Arguments::Copy { file }) if file == Path::new("-x")));
}

/// Tests that errors name the option, its value and the expected values.
#[test]
fn errors_name_the_remedy() {
    fails("count --number 0", "invalid value '0' for '--number <NUMBER>': must be a positive integer");
    fails("count --number -1", "invalid value '-1' for '--number <NUMBER>': must be a positive integer");
    fails(
        "count --number 1 --limit inf",
        "invalid value 'inf' for '--limit <LIMIT>': must be a non-negative number of seconds",
    );
    fails("count --number 1 --colour blue", "[possible values: red, green]");
    fails("count --numbr 1", "a similar argument exists: '--number'");
    fails("coumt", "a similar subcommand exists: 'count'");
    fails("list", "unrecognized subcommand 'list'\n\n  tip: available commands: count, copy\n");
    fails("", "[subcommands: count, copy]");
}

#[test]
fn completions_and_manual_pages_are_written() {
    let folder = env::temp_dir().join(format!("divi-cli-{}", std::process::id()));
    generate::write(Arguments::command(), &folder).unwrap();
    for (file, text) in [
        ("bash-completion/completions/my-tool.bash", "--number"),
        ("zsh/site-functions/_my-tool", "#compdef my-tool"),
        ("fish/vendor_completions.d/my-tool.fish", "complete -c my-tool"),
        ("man/man1/my-tool.1", concat!("\"my-tool ", env!("CARGO_PKG_VERSION"), "\" ")),
        ("man/man1/my-tool.1", "Counts and copies"),
        ("man/man1/my-tool-count.1", "number"),
    ] {
        let written = fs::read_to_string(folder.join(file)).unwrap();
        assert!(written.contains(text), "{file}: {written}");
    }
    // Bash passes the command, the current word and the previous word.
    let script = r#"source "$1"; COMP_WORDS=(my-tool count --num); COMP_CWORD=2
        $(complete -p my-tool | sed 's/.*-F \([^ ]*\).*/\1/') my-tool --num count; echo "${COMPREPLY[@]}""#;
    let path = folder.join("bash-completion/completions/my-tool.bash");
    let output = Command::new("bash").args(["-c", script, "bash"]).arg(path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--number\n", "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(folder).unwrap();
}
