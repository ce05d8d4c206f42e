//! `divi-plan convert`.

use divi_papers::convert::{Conversion, convert};
use lexopt::Parser;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan convert GRAPH [OPTIONS]

Turns a graph in EfficientMIP's JSON format (\"Efficient Algorithms for Device Placement of DNN Graph
Operators\", NeurIPS 2020) into a problem: maxSizePerFPGA, maxFPGAs, maxCPUs; nodes with id,
supportedOnFpga, cpuLatency and fpgaLatency (ms), size, colorClass, name; edges with sourceId, destId
and cost (ms between an accelerator and the CPU). Between accelerators a transfer takes twice its cost.

  -o FILE              where the problem goes; without it to stdout
  --name=NAME          its name; by default the file's
  --cpus=N             how many CPUs; by default one if the graph has any
  --no-colocation      leave out that nodes of one colorClass share a device
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut conversion = Conversion { name: String::new(), cpus: None, colocate: true };
    let parsed = parse(parser, USAGE, |name, parser| {
        match name {
            "name" => conversion.name = value(parser, name)?,
            "cpus" => conversion.cpus = Some(value(parser, name)?),
            "no-colocation" => conversion.colocate = false,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [graph] = arguments.files(["GRAPH"])?;
    if conversion.name.is_empty() {
        let stem = graph.file_stem().unwrap_or_default().to_string_lossy();
        conversion.name = if files::is_standard(graph) { "graph".to_owned() } else { stem.into_owned() };
    }
    let problem =
        convert(&files::read(graph)?, &conversion).map_err(|error| format!("{}: {error}", files::label(graph)))?;
    files::write(arguments.output.as_deref(), &problem.write())
}
