//! Loads a bundle, runs it on pseudo-random inputs and prints the first elements of each output.
//!
//!     cargo run -p divi-runtime --example run_bundle -- BUNDLE

use divi_runtime::{Options, Runtime, TensorData, random_input};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: run_bundle BUNDLE")?;
    let runtime = Runtime::load(folder, Options::default())?;

    // Inputs are dense and row-major, as ONNX defines them.
    let mut inputs: Vec<(String, TensorData)> = Vec::new();
    for (seed, (name, tensor)) in (1..).zip(runtime.inputs()) {
        inputs.push((name.to_owned(), random_input(name, tensor, seed)?));
    }
    let views: Vec<_> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.view())).collect();

    // Runs one request. `Runtime::submit` returns at once and keeps several requests in flight.
    for (name, output) in runtime.run(&views)? {
        let numbers = output.to_f32().unwrap_or_default();
        println!("{name} {:?}: {:.4?}", output.shape(), &numbers[..numbers.len().min(4)]);
    }
    Ok(())
}
