//! Compile time.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle, exported},
};

pub(super) fn compile(settings: &Settings) -> Result<(), String> {
    println!("seconds from a model to a bundle, with weights from a seed and with packed weights");
    println!("{:<20} {:>10} {:>10}", "model", "seed", "packed");
    let plan = Plan::single(1)?;
    let mut slowest = 0f64;
    for model in settings.models_or(&MODELS) {
        let (_, seed) = bundle(&model, "compile-seed", Weights::Seed, &plan)?;
        exported(&model)?;
        let (_, packed) = bundle(&model, "compile-packed", Weights::File, &plan)?;
        println!("{model:<20} {seed:>10.2} {packed:>10.2}");
        slowest = slowest.max(seed).max(packed);
    }
    println!("{:<20} {slowest:>10.2}", "slowest");
    Ok(())
}
