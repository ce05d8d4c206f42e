//! `divi-plan convert`.

use std::path::PathBuf;

use divi_papers::convert::{Conversion, convert};

use crate::files;

/// Convert a graph in EfficientMIP's JSON format to a problem
///
/// The format is that of "Efficient Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020):
/// maxSizePerFPGA, maxFPGAs, maxCPUs; nodes with id, supportedOnFpga, cpuLatency and fpgaLatency (ms), size,
/// colorClass, name; edges with sourceId, destId and cost (ms between an accelerator and the CPU). A transfer
/// between accelerators takes twice its cost.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Convert {
    /// Graph to convert
    graph: PathBuf,
    /// File for the problem, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Name of the problem; by default that of the file
    #[arg(long)]
    name: Option<String>,
    /// Number of CPUs; by default one if the graph has any
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Allow nodes of one colorClass on different devices
    #[arg(long)]
    no_colocation: bool,
}

impl Convert {
    pub(super) fn run(self) -> Result<(), String> {
        files::check(&[&self.graph], &[("-o", self.output.as_deref())])?;
        let by_default = || match files::is_standard(&self.graph) {
            true => "graph".to_owned(),
            false => self.graph.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let name = self.name.filter(|name| !name.is_empty()).unwrap_or_else(by_default);
        let conversion = Conversion { name, cpus: self.cpus, colocate: !self.no_colocation };
        let problem = convert(&files::read(&self.graph)?, &conversion)
            .map_err(|error| format!("{}: {error}", files::label(&self.graph)))?;
        files::write(self.output.as_deref(), &problem.write())
    }
}
