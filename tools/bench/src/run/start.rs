//! Time to load a bundle and run it for the first time.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle, program},
    launch::launch,
};
use std::{fs, time::Instant};

/// Number of starts, of which the minimum counts: files are in the page cache.
const STARTS: usize = 5;

pub(super) fn start(settings: &Settings) -> Result<(), String> {
    let size = fs::metadata(program("divi-run")?).map_err(|error| error.to_string())?.len() as f64 / 1e6;
    println!(
        "milliseconds from the start of divi-run ({size:.1} MB), weights in a file in the page cache; minimum of {STARTS}"
    );
    println!("{:<20} {:>10} {:>10} {:>10} {:>10}", "model", "load", "first run", "later run", "process");
    let plan = Plan::single(1)?;
    for model in settings.models_or(&MODELS) {
        let (folder, _) = bundle(&model, "start", Weights::File, &plan)?;
        let mut least = [f64::INFINITY; 3];
        for _ in 0..STARTS {
            let began = Instant::now();
            let launched = launch(&folder, &["--repeat=1".to_owned(), "--warmup=0".to_owned()])?;
            let process = began.elapsed().as_secs_f64() * 1e3;
            let times = [launched.number("/load_us")? / 1e3, launched.number("/latency_us/min")? / 1e3, process];
            least = std::array::from_fn(|i| least[i].min(times[i]));
        }
        let later = launch(&folder, &["--repeat=5".to_owned()])?.number("/latency_us/median")? / 1e3;
        println!("{model:<20} {:>10.2} {:>10.2} {later:>10.2} {:>10.2}", least[0], least[1], least[2]);
    }
    Ok(())
}
