//! `divi-plan generate`.

use divi_papers::generate::{Chain, Gpt3, Kind, Regal, Rwnn, chain, gpt3, regal, rwnn};
use lexopt::Parser;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan generate rwnn|regal|chain|gpt3 [OPTIONS]

Makes a problem from a seed: a randomly wired network (rwnn) on a CPU and two GPUs, a synthetic
graph (regal) with the pipeline view, or a chain of layers with the view of an edge network (chain);
or, without a seed, GPT-3 (gpt3) on nodes of two A100 and two T4 as in the preset gpt3-6x4. The same
options give the same problem.

  -o FILE              where the problem goes; without it to stdout
  --seed=N             by default 1
  --kind=NAME          ER, WS, BA or SBM; by default ER (not chain)
  --nodes=N            of a module (rwnn, by default 10) or in all (regal, by default 100; chain,
                       by default 49)
only rwnn:
  --modules=N          one after the other; by default 1
  --channels=N         edges from a module to the next; by default 1
  --dep=sdep|wdep      channels are all of a module's inputs and outputs (sdep, the default) or join
                       any nodes (wdep)
  --ccr=X              time of transfers to time of tasks; by default 0.1
  --dominant           the fastest device is the fastest for every task
  --inputs=N           queued inputs, with batches of a quarter, half, three quarters and all; by default 1
only chain:
  --machines=N         all alike; by default 4
  --splits=N           how often the machine may change, less than there are machines; by default 3
  --rate=X             of a machine, in 10^9 operations a second; by default 5
  --link=X             between any two, in megabytes a second; by default 10
  --ratios=A,B,C       of link speed to machine speed, in bytes an operation: from where on partitioning
                       helps, from where on links help no more, and from where on they rule out
                       nothing; by default the edge paper's 1.64e-3,9.52e-3,0.168
only gpt3:
  --blocks=N           by default 96
  --machines=N         nodes of four GPUs; by default 6
  --tokens=N           of one input; by default 20
  --inputs=N           queued inputs; by default 24, one a GPU
  --batch-sizes=N,…    by default 4,8,12,16
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let (mut network, mut edge, mut language) = (Rwnn::default(), Chain::default(), Gpt3::default());
    let (mut seed, mut kind, mut nodes) = (1, Kind::ErdosRenyi, None);
    let mut given: Vec<String> = Vec::new();
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
            "inputs" => {
                network.inputs = value(parser, name)?;
                language.inputs = network.inputs;
            }
            "machines" => {
                edge.machines = value(parser, name)?;
                language.machines = edge.machines;
            }
            "splits" => edge.splits = value(parser, name)?,
            "rate" => edge.rate = 1e3 * value::<f64>(parser, name)?,
            "link" => edge.link = value(parser, name)?,
            "ratios" => {
                [edge.improvement, edge.optimal, edge.complexity] = ratios(&value::<String>(parser, name)?)?;
            }
            "blocks" => language.blocks = value(parser, name)?,
            "tokens" => language.tokens = value(parser, name)?,
            "batch-sizes" => language.batch_sizes = sizes(&value::<String>(parser, name)?)?,
            _ => return Ok(false),
        }
        given.push(name.to_owned());
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [what] = arguments.files(["rwnn, regal, chain or gpt3"])?;
    let what = what.to_string_lossy();
    let known = ["rwnn", "regal", "chain", "gpt3"].contains(&what.as_ref());
    if let Some(option) = given.iter().find(|option| known && !takers(option).contains(&what.as_ref())) {
        return Err(format!("--{option} is for {} only", takers(option).join(" and ")));
    }
    let problem = match what.as_ref() {
        "rwnn" => rwnn(&Rwnn { seed, kind, nodes: nodes.unwrap_or(network.nodes), ..network }),
        "regal" => regal(&Regal { seed, kind, nodes: nodes.unwrap_or(Regal::default().nodes) }),
        "chain" => chain(&Chain { seed, layers: nodes.unwrap_or(edge.layers), ..edge }),
        "gpt3" => gpt3(&language),
        other => return Err(format!("there is no kind of problem '{other}'; there are rwnn, regal, chain and gpt3")),
    };
    files::write(arguments.output.as_deref(), &problem.map_err(|error| error.to_string())?.write())
}

/// The kinds of problems that an option is for.
fn takers(option: &str) -> &'static [&'static str] {
    match option {
        "seed" | "nodes" => &["rwnn", "regal", "chain"],
        "kind" => &["rwnn", "regal"],
        "machines" => &["chain", "gpt3"],
        "inputs" => &["rwnn", "gpt3"],
        "splits" | "rate" | "link" | "ratios" => &["chain"],
        "blocks" | "tokens" | "batch-sizes" => &["gpt3"],
        _ => &["rwnn"],
    }
}

/// Three numbers.
fn ratios(text: &str) -> Result<[f64; 3], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.parse().ok()).collect();
    let three = numbers.and_then(|numbers| numbers.try_into().ok());
    three.ok_or_else(|| format!("--ratios={text}: not three numbers with commas between them"))
}

/// Batch sizes, with commas between them.
fn sizes(text: &str) -> Result<Vec<u32>, String> {
    let size = |size: &str| size.trim().parse().map_err(|error| format!("--batch-sizes={text}: {size}: {error}"));
    text.split(',').map(size).collect()
}

/// Whether modules depend strongly on each other.
fn dependence(name: &str) -> Result<bool, String> {
    match name {
        "sdep" => Ok(true),
        "wdep" => Ok(false),
        _ => Err(format!("--dep={name}: there are sdep and wdep")),
    }
}
