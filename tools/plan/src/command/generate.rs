//! `divi-plan generate`.

use std::path::PathBuf;

use clap::ValueEnum;
use divi_papers::generate::{Chain, Gpt3, Kind, Regal, Rwnn, chain, gpt3, regal, rwnn};

use crate::files;

/// Generate a problem from a seed; the same options give the same problem
#[derive(clap::Args)]
pub(crate) struct Generate {
    /// Family of the problem
    #[arg(value_name = "KIND")]
    family: Family,
    /// File for the problem, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seed of the random number generator; by default 1 (not gpt3)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Random graph model; by default ER (rwnn, regal)
    #[arg(long, value_name = "NAME", ignore_case = true, value_parser = divi_cli::named::<Kind>(Kind::ALL.map(Kind::name)))]
    kind: Option<Kind>,
    /// Nodes of a module (rwnn, by default 10) or of the graph (regal, by default 100; chain, by default 49)
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Number of modules in sequence; by default 1 (rwnn)
    #[arg(long, value_name = "N")]
    modules: Option<usize>,
    /// Number of edges from a module to the next; by default 1 (rwnn)
    #[arg(long, value_name = "N")]
    channels: Option<usize>,
    /// Nodes that channels connect: inputs and outputs of modules (sdep, the default), or any nodes (wdep) (rwnn)
    #[arg(long, value_name = "NAME")]
    dep: Option<Dependence>,
    /// Communication-to-computation ratio: transfer time to task time; by default 0.1 (rwnn)
    #[arg(long, value_name = "X")]
    ccr: Option<f64>,
    /// Make the A100 the fastest device for every task (rwnn)
    #[arg(long)]
    dominant: bool,
    /// Number of queued inputs; by default 1 (rwnn) or 24 (gpt3)
    ///
    /// Batch sizes of rwnn are a quarter, a half, three quarters and all of them.
    #[arg(long, value_name = "N")]
    inputs: Option<u32>,
    /// Number of equal machines, by default 4 (chain); of nodes with four GPUs, by default 6 (gpt3)
    #[arg(long, value_name = "N")]
    machines: Option<usize>,
    /// Maximum number of cuts, less than the number of machines; by default 3 (chain)
    #[arg(long, value_name = "N")]
    splits: Option<usize>,
    /// Speed of a machine, in 10^9 operations per second; by default 5 (chain)
    #[arg(long, value_name = "X")]
    rate: Option<f64>,
    /// Bandwidth between any two machines, in megabytes per second; by default 10 (chain)
    #[arg(long, value_name = "X")]
    link: Option<f64>,
    /// Boundary ratios of link speed to machine speed, in bytes per operation (chain)
    ///
    /// Above the first, partitioning helps; above the second, faster links do not improve the optimum; above the third,
    /// links exclude no placement. By default those of the edge paper: 1.64e-3,9.52e-3,0.168.
    #[arg(long, value_name = "A,B,C", value_parser = ratios, verbatim_doc_comment)]
    ratios: Option<[f64; 3]>,
    /// Number of transformer blocks; by default 96 (gpt3)
    #[arg(long, value_name = "N")]
    blocks: Option<usize>,
    /// Tokens of one input; by default 20 (gpt3)
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,
    /// Batch sizes; by default 4,8,12,16 (gpt3)
    #[arg(long, value_name = "N,...", value_parser = sizes)]
    batch_sizes: Option<Sizes>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Family {
    /// A randomly wired network on a CPU and two GPUs.
    Rwnn,
    /// A synthetic graph with the pipeline view.
    Regal,
    /// A chain of layers with the edge-network view.
    Chain,
    /// GPT-3 on nodes of two A100 and two T4 as in the preset gpt3-6x4; needs no seed.
    Gpt3,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::Rwnn => "rwnn",
            Self::Regal => "regal",
            Self::Chain => "chain",
            Self::Gpt3 => "gpt3",
        }
    }
}

/// Dependence between consecutive modules.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Dependence {
    Sdep,
    Wdep,
}

type Sizes = Vec<u32>;

impl Generate {
    pub(super) fn run(self) -> Result<(), String> {
        files::check(&[], &[("-o", self.output.as_deref())])?;
        self.check_options()?;
        let (network, synthetic, edge, language) =
            (Rwnn::default(), Regal::default(), Chain::default(), Gpt3::default());
        let (seed, kind) = (self.seed.unwrap_or(1), self.kind.unwrap_or(Kind::ErdosRenyi));
        let problem = match self.family {
            Family::Rwnn => rwnn(&Rwnn {
                seed,
                kind,
                nodes: self.nodes.unwrap_or(network.nodes),
                modules: self.modules.unwrap_or(network.modules),
                channels: self.channels.unwrap_or(network.channels),
                strong: self.dep.map_or(network.strong, |dependence| dependence == Dependence::Sdep),
                communication: self.ccr.unwrap_or(network.communication),
                dominant: self.dominant,
                inputs: self.inputs.unwrap_or(network.inputs),
            }),
            Family::Regal => regal(&Regal { seed, kind, nodes: self.nodes.unwrap_or(synthetic.nodes) }),
            Family::Chain => {
                let [improvement, optimal, complexity] =
                    self.ratios.unwrap_or([edge.improvement, edge.optimal, edge.complexity]);
                chain(&Chain {
                    seed,
                    layers: self.nodes.unwrap_or(edge.layers),
                    machines: self.machines.unwrap_or(edge.machines),
                    splits: self.splits.unwrap_or(edge.splits),
                    rate: self.rate.map_or(edge.rate, |rate| 1e3 * rate),
                    link: self.link.unwrap_or(edge.link),
                    improvement,
                    optimal,
                    complexity,
                })
            }
            Family::Gpt3 => gpt3(&Gpt3 {
                blocks: self.blocks.unwrap_or(language.blocks),
                machines: self.machines.unwrap_or(language.machines),
                tokens: self.tokens.unwrap_or(language.tokens),
                inputs: self.inputs.unwrap_or(language.inputs),
                batch_sizes: self.batch_sizes.unwrap_or(language.batch_sizes),
            }),
        };
        files::write(self.output.as_deref(), &problem.map_err(|error| error.to_string())?.write())
    }

    /// Checks that the given options apply to the family of the problem.
    fn check_options(&self) -> Result<(), String> {
        use Family::{Chain, Gpt3, Regal, Rwnn};
        let options: [(&str, bool, &[Family]); 17] = [
            ("seed", self.seed.is_some(), &[Rwnn, Regal, Chain]),
            ("kind", self.kind.is_some(), &[Rwnn, Regal]),
            ("nodes", self.nodes.is_some(), &[Rwnn, Regal, Chain]),
            ("modules", self.modules.is_some(), &[Rwnn]),
            ("channels", self.channels.is_some(), &[Rwnn]),
            ("dep", self.dep.is_some(), &[Rwnn]),
            ("ccr", self.ccr.is_some(), &[Rwnn]),
            ("dominant", self.dominant, &[Rwnn]),
            ("inputs", self.inputs.is_some(), &[Rwnn, Gpt3]),
            ("machines", self.machines.is_some(), &[Chain, Gpt3]),
            ("splits", self.splits.is_some(), &[Chain]),
            ("rate", self.rate.is_some(), &[Chain]),
            ("link", self.link.is_some(), &[Chain]),
            ("ratios", self.ratios.is_some(), &[Chain]),
            ("blocks", self.blocks.is_some(), &[Gpt3]),
            ("tokens", self.tokens.is_some(), &[Gpt3]),
            ("batch-sizes", self.batch_sizes.is_some(), &[Gpt3]),
        ];
        match options.iter().find(|(_, is_given, families)| *is_given && !families.contains(&self.family)) {
            Some((option, _, families)) => {
                let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
                Err(format!("--{option} is for {} only", names.join(" and ")))
            }
            None => Ok(()),
        }
    }
}

/// Parses three numbers.
fn ratios(text: &str) -> Result<[f64; 3], String> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.parse().ok()).collect();
    let three = numbers.and_then(|numbers| numbers.try_into().ok());
    three.ok_or_else(|| "must be three numbers separated by commas".to_owned())
}

/// Parses batch sizes separated by commas.
fn sizes(text: &str) -> Result<Sizes, String> {
    let size = |size: &str| size.trim().parse().map_err(|error| format!("{size}: {error}"));
    text.split(',').map(size).collect()
}
