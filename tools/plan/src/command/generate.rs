//! `divi-plan generate`.

use divi_planner::generate::{Kind, Regal, Rwnn, regal, rwnn};
use lexopt::Parser;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan generate rwnn|regal [OPTIONS]

Makes a problem from a seed: a randomly wired network (rwnn) on a CPU and two GPUs, or a synthetic
graph (regal) with the pipeline view. The same options give the same problem.

  -o FILE              where the problem goes; without it to stdout
  --seed=N             by default 1
  --kind=NAME          ER, WS, BA or SBM; by default ER
  --nodes=N            of a module (rwnn, by default 10) or in all (regal, by default 100)
only rwnn:
  --modules=N          one after the other; by default 1
  --channels=N         edges from a module to the next; by default 1
  --dep=sdep|wdep      channels are all of a module's inputs and outputs (sdep, the default) or join
                       any nodes (wdep)
  --ccr=X              time of transfers to time of tasks; by default 0.1
  --dominant           the fastest device is the fastest for every task
  --inputs=N           queued inputs, with batches of a quarter, half, three quarters and all; by default 1
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut network = Rwnn::default();
    let (mut seed, mut kind, mut nodes) = (1, Kind::ErdosRenyi, None);
    let mut only_network: Option<String> = None;
    let parsed = parse(parser, USAGE, |name, parser| {
        match name {
            "seed" => seed = value(parser, name)?,
            "kind" => kind = value(parser, name)?,
            "nodes" => nodes = Some(value(parser, name)?),
            "modules" => network.modules = value(parser, name)?,
            "channels" => network.channels = value(parser, name)?,
            "dep" => network.strong = dependence(&value::<String>(parser, name)?)?,
            "ccr" => network.communication = value(parser, name)?,
            "dominant" => network.dominant = true,
            "inputs" => network.inputs = value(parser, name)?,
            _ => return Ok(false),
        }
        if !["seed", "kind", "nodes"].contains(&name) {
            only_network.get_or_insert_with(|| name.to_owned());
        }
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [what] = arguments.files(["rwnn or regal"])?;
    let problem = match what.to_string_lossy().as_ref() {
        "rwnn" => rwnn(&Rwnn { seed, kind, nodes: nodes.unwrap_or(network.nodes), ..network }),
        "regal" => {
            if let Some(option) = only_network {
                return Err(format!("--{option} is for rwnn only"));
            }
            regal(&Regal { seed, kind, nodes: nodes.unwrap_or(Regal::default().nodes) })
        }
        other => return Err(format!("there is no kind of problem '{other}'; there are rwnn and regal")),
    };
    files::write(arguments.output.as_deref(), &problem.map_err(|error| error.to_string())?.write())
}

/// Whether modules depend strongly on each other.
fn dependence(name: &str) -> Result<bool, String> {
    match name {
        "sdep" => Ok(true),
        "wdep" => Ok(false),
        _ => Err(format!("--dep={name}: there are sdep and wdep")),
    }
}
