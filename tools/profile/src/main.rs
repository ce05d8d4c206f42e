//! `divi-profile`: what was measured on machines, and measuring it, as profiles and as coefficients of the cost model.

mod arguments;
mod convert;
mod files;
mod fit;
mod measure;

use std::process::ExitCode;

const USAGE: &str = "\
usage: divi-profile convert TABLE.json [--device=cuda|cpu] [-o OUT]
       divi-profile fit FILE.json… [--device=cuda|cpu] [--graphs=TABLE.json] [--leave-out=MODEL,…]
                        [--flops-per-s=N] [--bytes-per-s=N] [-o MODEL.json]
       divi-profile measure MODEL.onnx… -o PROFILE.json [--system=NAME|FILE.toml] [--batch=N,…] [--weights=random:SEED]
                        [--weights-dir=DIR] [--cpu=NAME] [--time-limit=S] [--links=measure|keep] [--choices=FILE]
                        [--system-out=FILE.toml] [-q]

convert   turns a table that was measured with PyTorch into a profile (divi-profile/1), or, if it is one of copies
          between host and device, into links of a system description. What has no form in ONNX is said.
fit       fits the cost model of a kind of device to profiles, or to tables of operators as they are.
measure   compiles models for the devices of a system, runs them on this machine and writes what their tasks take as a
          profile, one for each number of threads and each kind of GPU; then measures the links between the devices.
          Tasks that the profile has already stay as they are, and models that have no other are skipped: whoever wants
          new times begins a new file.

  --device=KIND     whose times are meant: of a table, those of the GPU if nothing is said; a profile has one device
  --graphs=TABLE    times of whole models in captured graphs: what a launch in one costs is fitted, too
  --leave-out=NAMES models of the tables that are not fitted to, to see how well the others foretell them
  --flops-per-s=N   the peak rates of the device, if it is not an H200 or 16 cores of a Xeon
  --bytes-per-s=N
  --system=SYSTEM   a preset or a description; host, which is the default, is this machine, GPUs included
  --batch=SIZES     the batches to measure at; if nothing is said, a model's own, or 1 if it has none
  --weights=random:SEED   makes up the weights that are not there
  --weights-dir=DIR where weights are, if not beside the model
  --cpu=NAME        what code is made for: native (the default), x86-64-v3 or x86-64-v4
  --time-limit=S    for each model and batch, if its times are not stable before: 20 seconds if nothing is said
  --links=KEEP      keep: links stay as the system has them; measure, which is the default, measures them
  --choices=FILE    which algorithms of libraries and kernels are the fastest on a GPU: what the file does not know is
                    measured and added. Bundles that are run with it (divi-run --choices) take the same ways
  --system-out=FILE writes the system with what was measured: plan with it (divi-opt --system=FILE)
  -q                says nothing but errors
  -o FILE           where the result goes; - is standard output, which is the default. - is also standard input.
  --help            prints this
  --version         prints the version
";

fn main() -> ExitCode {
    // Without it, the next run for the same output removes what is left.
    let _ = divi_files::clean_up_on_signals();
    let arguments: Vec<String> = match std::env::args_os().skip(1).map(|argument| argument.into_string()).collect() {
        Ok(arguments) => arguments,
        Err(argument) => return fail(&format!("{} is not UTF-8", argument.to_string_lossy())),
    };
    let outcome = match arguments.split_first() {
        Some((first, _)) if first == "--help" || first == "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        Some((first, _)) if first == "--version" => {
            println!("divi-profile {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Some((command, rest)) if command == "convert" => convert::run(rest),
        Some((command, rest)) if command == "fit" => fit::run(rest),
        Some((command, rest)) if command == "measure" => measure::run(rest),
        Some((command, _)) => Err(format!("no command '{command}': there are convert, fit and measure (see --help)")),
        None => Err("a command is missing: convert, fit or measure (see --help)".to_owned()),
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
