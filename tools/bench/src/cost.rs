//! `divi-bench cost`: cross-validation of the cost model against measured tables, leaving out one model at a time.

use divi_cost::device::CPU;
use divi_cost::fit::Target;
use divi_cost::pytorch::Operators;
use divi_cost::validate::{
    Comparison, ProfiledNetwork, Report, Summary, class_name, leave_one_network_out, leave_one_out,
};
use std::{fs, path::Path};

const TABLE: &str = "test/profiles/h200_xeon16_operators.json";

/// Compare the cost model with a measured table, each model left out of the fit in turn
#[derive(clap::Args)]
pub(crate) struct Cost {
    /// Table of operators measured with PyTorch
    #[arg(value_name = "TABLE.json", default_value = TABLE)]
    table: String,
}

impl Cost {
    pub(crate) fn run(self) -> Result<(), String> {
        let file = &self.table;
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let kinds = Operators::kinds(&text).map_err(|error| format!("{file}: {error}"))?;
        if kinds.is_empty() {
            return Err(format!("{file}: describes no device"));
        }
        // The CPUs of tables ran PyTorch.
        for (index, kind) in kinds.into_iter().filter(|kind| *kind != CPU).enumerate() {
            let table = Operators::read(&text, kind).map_err(|error| format!("{file}: {error}"))?;
            let report = leave_one_out(&table, &Target::of(kind)).map_err(|error| format!("{file}: {error}"))?;
            if index > 0 {
                println!();
            }
            print(&table, &report);
        }
        println!();
        networks()
    }
}

/// Prints the errors of the model of CPUs on whole networks.
fn networks() -> Result<(), String> {
    let networks = ProfiledNetwork::read_all(Path::new("test/profiles/cpu-1"), Path::new("test/profiles/cpu-2"))?;
    let totals = leave_one_network_out(&networks, &Target::of(CPU), 2).map_err(|error| error.to_string())?;
    println!(
        "{}: sums of estimates, by coefficients fitted to the other models on one thread",
        networks[0].single.device
    );
    println!("{:<18} {:>13} {:>13}", "model", "1 thread", "2 threads");
    let mut worst = 0.0f64;
    for (network, totals) in networks.iter().zip(&totals) {
        let errors = totals.map(|total| total.estimated / total.measured - 1.0);
        worst = errors.iter().fold(worst, |worst, error| worst.max(error.abs()));
        println!("{:<18} {:>+11.1} % {:>+11.1} %", network.name, errors[0] * 100.0, errors[1] * 100.0);
    }
    let mean = |index: usize| {
        totals.iter().map(|totals| (totals[index].estimated / totals[index].measured - 1.0).abs()).sum::<f64>()
            / totals.len() as f64
    };
    println!("{:<18} {:>11.1} % {:>11.1} %", "mean error", mean(0) * 100.0, mean(1) * 100.0);
    println!("{:<18} {:>11.1} %", "largest error", worst * 100.0);
    Ok(())
}

fn print(table: &Operators, report: &Report) {
    println!("{}: estimates of operators above 20 µs, by coefficients fitted to the other models", table.device);
    let batches = distinct(report.validated.iter().map(|it| it.batch));
    let columns: Vec<String> = batches.iter().map(|batch| format!("{:>6}", format!("b{batch}"))).collect();
    println!(
        "{:<16} {:>9} {:>12} {:>10}   sums by batch {}",
        "model",
        "operators",
        "median error",
        "sum",
        columns.join(" ")
    );
    for model in &table.models {
        let own = || report.validated.iter().filter(|it| it.model == model.name);
        let ratio = |batch: &u64| Summary::of(own().filter(|it| it.batch == *batch));
        let ratios: Vec<String> = batches.iter().map(|batch| deviation(ratio(batch))).collect();
        line(&model.name, own(), &format!("                 {}", ratios.join(" ")));
    }
    line("all", report.validated.iter(), "");
    println!();
    println!("{:<16} {:>9} {:>12} {:>10}", "class", "operators", "median error", "sum");
    for class in distinct(report.validated.iter().map(|it| it.class)) {
        line(class_name(class), report.validated.iter().filter(|it| it.class == class), "");
    }
    for class in distinct(report.unvalidated.iter().map(|it| it.class)) {
        let own = || report.unvalidated.iter().filter(|it| it.class == class);
        let model = own().next().map_or("", |it| &it.model);
        line(class_name(class), own(), &format!("   in {model} only, not evaluated: coefficients are assumed"));
    }
}

fn line<'a>(name: &str, comparisons: impl Iterator<Item = &'a Comparison>, note: &str) {
    let Some(Summary { count, median, ratio }) = Summary::of(comparisons) else { return };
    println!("{name:<16} {count:>9} {:>10.1} % {:>+8.1} %{note}", median * 100.0, (ratio - 1.0) * 100.0);
}

/// Formats the relative error of a sum of estimates.
fn deviation(summary: Option<Summary>) -> String {
    summary.map_or_else(|| format!("{:>6}", "-"), |it| format!("{:>+5.0}%", (it.ratio - 1.0) * 100.0))
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}
