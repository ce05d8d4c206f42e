//! Pipelines on ranks with a core each, compared with the same plan in one process and with the prediction.

use super::Mpi;
use crate::{
    run::{
        build::{Plan, Weights, bundle, write},
        launch::{launch, repeat},
        pipeline::profile,
    },
    runs::median,
};
use std::path::PathBuf;

pub(super) fn pipelines(settings: &Mpi) -> Result<(), String> {
    let Mpi { ranks, rounds, .. } = settings;
    println!("pipelines on {ranks} nodes of one core each; inputs per second, medians of {rounds} rounds");
    println!(
        "{:<20} {:>10} {:>12} {:>10} {:>11} {:>9}",
        "model", "predicted", "one process", "ranks", "difference", "ratio"
    );
    for model in &settings.models {
        let row = measure(settings, model)?;
        println!(
            "{model:<20} {:>10.2} {:>12.2} {:>10.2} {:>+9.1} % {:>8.3}x",
            row.predicted,
            row.one_process,
            row.ranks,
            (row.ranks / row.predicted - 1.0) * 100.0,
            row.ratio
        );
    }
    Ok(())
}

struct Row {
    predicted: f64,
    one_process: f64,
    ranks: f64,
    /// Median over the rounds of the ratio of the ranks' throughput to that of one process.
    ratio: f64,
}

fn measure(settings: &Mpi, model: &str) -> Result<Row, String> {
    let bundle = match &settings.bundles {
        Some(folder) => folder.join(format!("{model}-{}-nodes", settings.ranks)),
        None => compile(settings, model)?,
    };
    let options = [repeat(&bundle, settings.seconds)?];
    let (mut predicted, mut one_process, mut ranks) = (0.0, vec![], vec![]);
    for _ in 0..settings.rounds {
        let here = launch(&bundle, &options)?;
        predicted = here.number("/predicted_throughput_per_s")?;
        one_process.push(here.number("/throughput_per_s")?);
        ranks.push(settings.launch(settings.ranks, &bundle, &options)?.number("/throughput_per_s")?);
    }
    let ratios: Vec<f64> = ranks.iter().zip(&one_process).map(|(ranks, one)| ranks / one).collect();
    Ok(Row { predicted, one_process: median(&one_process), ranks: median(&ranks), ratio: median(&ratios) })
}

/// Compiles a pipeline on nodes of one core, planned with times measured on one core.
fn compile(settings: &Mpi, model: &str) -> Result<PathBuf, String> {
    let profile = match &settings.profiles {
        Some(folder) => folder.join(format!("{model}.json")).display().to_string(),
        None => {
            let (single, _) = bundle(model, "one-core", Weights::Seed, &Plan::single(1)?)?;
            profile(model, &single, settings.seconds)?
        }
    };
    let name = format!("{}-nodes", settings.ranks);
    let system = write(&format!("{model}-{name}.toml"), &system(settings.ranks, &profile))?;
    let options = ["--objective=pipeline".to_owned(), format!("--k={}", settings.ranks)].to_vec();
    Ok(bundle(model, &name, Weights::Seed, &Plan { system, options })?.0)
}

/// Nodes of one core, on one host: messages are copies in memory.
fn system(nodes: usize, profile: &str) -> String {
    format!(
        "name = \"nodes\"\n\n[[node]]\nid = \"n\"\ncount = {nodes}\n\n[[node.device]]\nid = \"cpu\"\nkind = \"cpu\"\n\
         memory = \"4 GiB\"\nthreads = 1\nprofile = '{profile}'\n\n[network]\nbandwidth = \"10 GB/s\"\n\
         latency = \"20 us\"\nbus = \"net\"\nduplex = \"full\"\n"
    )
}
