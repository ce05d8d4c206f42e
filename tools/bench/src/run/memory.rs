//! Peak memory of a run.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle},
    launch::launch,
};

pub(super) fn memory(settings: &Settings) -> Result<(), String> {
    println!("peak resident memory of divi-run in megabytes, compared with planned weights, arenas and values");
    println!("{:<20} {:>10} {:>10} {:>10} {:>9}", "model", "weights", "others", "peak", "ratio");
    let plan = Plan::single(1)?;
    let mut worst = 0f64;
    for model in settings.models_or(&MODELS) {
        let (folder, _) = bundle(&model, "memory", Weights::File, &plan)?;
        let launched = launch(&folder, &["--repeat=3".to_owned()])?;
        let weights = launched.sum_of_devices("weights");
        let others = launched.sum_of_devices("arena") + launched.sum_of_devices("values");
        let peak = launched.number("/peak_memory_bytes")?;
        let ratio = peak / (weights + others);
        println!("{model:<20} {:>10.1} {:>10.1} {:>10.1} {ratio:>8.2}x", weights / 1e6, others / 1e6, peak / 1e6);
        worst = worst.max(ratio);
    }
    println!("{:<20} {:>10} {:>10} {:>10} {worst:>8.2}x", "worst", "", "", "");
    Ok(())
}
