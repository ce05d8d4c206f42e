//! `divi-profile`: what was measured on machines, as profiles and as coefficients of the cost model.

mod arguments;
mod convert;
mod files;
mod fit;

use std::process::ExitCode;

const USAGE: &str = "\
usage: divi-profile convert TABLE.json [--device=cuda|cpu] [-o OUT]
       divi-profile fit FILE.json… [--device=cuda|cpu] [--graphs=TABLE.json] [--leave-out=MODEL,…]
                        [--flops-per-s=N] [--bytes-per-s=N] [-o MODEL.json]

convert   turns a table that was measured with PyTorch into a profile (divi-profile/1), or, if it is one of copies
          between host and device, into links of a system description. What has no form in ONNX is said.
fit       fits the cost model of a kind of device to profiles, or to tables of operators as they are.

  --device=KIND     whose times are meant: of a table, those of the GPU if nothing is said; a profile has one device
  --graphs=TABLE    times of whole models in captured graphs: what a launch in one costs is fitted, too
  --leave-out=NAMES models of the tables that are not fitted to, to see how well the others foretell them
  --flops-per-s=N   the peak rates of the device, if it is not an H200 or 16 cores of a Xeon
  --bytes-per-s=N
  -o FILE           where the result goes; - is standard output, which is the default. - is also standard input.
  --help            prints this
";

fn main() -> ExitCode {
    let arguments: Vec<String> = match std::env::args_os().skip(1).map(|argument| argument.into_string()).collect() {
        Ok(arguments) => arguments,
        Err(argument) => return fail(&format!("{} is not UTF-8", argument.to_string_lossy())),
    };
    let outcome = match arguments.split_first() {
        Some((first, _)) if first == "--help" || first == "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        Some((command, rest)) if command == "convert" => convert::run(rest),
        Some((command, rest)) if command == "fit" => fit::run(rest),
        Some((command, _)) => Err(format!("no command '{command}': there are convert and fit (see --help)")),
        None => Err("a command is missing: convert or fit (see --help)".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("divi-profile: error: {message}");
    ExitCode::FAILURE
}
