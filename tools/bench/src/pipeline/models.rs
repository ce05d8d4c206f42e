//! Pipelines of real models on homogeneous and heterogeneous devices.

use std::fmt::Write;
use std::fs;

use divi_planner::plan::Limit;
use divi_planner::{Objective, Options};

use super::Settings;
use crate::models::problem;
use crate::runs::{geometric_mean, run_with};

/// Models of `test/models` with static shapes that fit on every system; openllama_3b is too large for cpu-2.
const MODELS: [&str; 17] = [
    "alexnet",
    "bert_base_128",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "gpt2_large_1x128",
    "gpt2_small_1x128",
    "inception_v3",
    "llama_2l_1x128",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "vgg16",
    "vit_b_16",
];

/// Two equal devices, eight equal devices, and three different ones.
const SYSTEMS: [&str; 3] = ["cpu-2", EIGHT, "diviml"];
const EIGHT: &str = "target/bench/cpu-8.toml";
const EQUALS: usize = 8;

pub(super) fn models(settings: &Settings) -> Result<(), String> {
    println!(
        "pipelines of models, auto with {} s: milliseconds per stage, and speedup over the best device",
        settings.seconds
    );
    fs::create_dir_all("target/bench").and_then(|()| fs::write(EIGHT, equals())).map_err(|error| error.to_string())?;
    for system in SYSTEMS {
        println!();
        let name = system.trim_start_matches("target/bench/").trim_end_matches(".toml");
        println!("{name:<20} {:>10} {:>10} {:>8} {:>8} {:>9}", "stage", "bound", "gap", "gain", "seconds");
        let (mut gaps, mut gains) = (Vec::new(), Vec::new());
        for model in MODELS {
            let problem = problem(model, system, 1)?;
            let options = Options { limit: Some(Limit::Seconds(settings.seconds)), ..Options::default() };
            let run = run_with(&problem, Objective::Pipeline, "auto", options.clone())?;
            let single = Options { stages: Some(1), ..options };
            // There is no gain if the model does not fit on one device.
            let single = divi_planner::solve(&problem, Objective::Pipeline, "auto", &single);
            let gain = single.ok().map(|single| single.value / run.plan.value);
            let shown = gain.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}x"));
            let (value, bound, gap) = (run.plan.value / 1e3, run.plan.bound / 1e3, run.plan.gap * 100.0);
            println!("{model:<20} {value:>10.3} {bound:>10.3} {gap:>6.2} % {shown:>8} {:>7.2} s", run.seconds);
            gaps.push(run.plan.gap);
            gains.extend(gain);
        }
        let worst = gaps.iter().copied().fold(0.0, f64::max) * 100.0;
        let all = "worst gap, mean gain";
        println!("{all:<20} {:>10} {:>10} {worst:>6.2} % {:>7.2}x", "", "", geometric_mean(&gains));
    }
    Ok(())
}

/// Describes equal devices, fully connected, with the links of the preset cpu-2.
fn equals() -> String {
    let mut text = "name = \"cpu-8\"\n".to_owned();
    for device in 0..EQUALS {
        let _ = write!(text, "\n[[device]]\nid = \"cpu{device}\"\nkind = \"cpu\"\nmemory = \"16 GiB\"\nthreads = 1\n");
    }
    for (from, to) in (0..EQUALS).flat_map(|from| (from + 1..EQUALS).map(move |to| (from, to))) {
        let _ = write!(text, "\n[[link]]\nfrom = \"cpu{from}\"\nto = \"cpu{to}\"\nbandwidth = \"10 GB/s\"\n");
        text += "latency = \"5 us\"\nduplex = \"full\"\n";
    }
    text
}
