//! Measured runs.

use crate::arguments::Arguments;
use divi_runtime::{
    ClockDifference, Error, Recording, ResilientRuntime, ResilientTicket, Span, TensorData, TensorRef, bundle::Mode,
};
use std::{collections::VecDeque, sync::Arc, time::Instant};

/// Outputs of a run, with their names.
pub(crate) type Outputs = [(String, TensorData)];
/// Function that is called with the outputs of each run.
pub(crate) type Check<'a> = &'a mut dyn FnMut(&Outputs);

pub(crate) struct Measured {
    /// Outputs of the last run.
    pub(crate) outputs: Vec<(String, TensorData)>,
    /// Latency of each run, in microseconds.
    pub(crate) latencies: Vec<f64>,
    /// Inputs per second.
    pub(crate) throughput: f64,
    /// Latency of the very first run, which copied the weights, in microseconds.
    pub(crate) cold: Option<f64>,
    pub(crate) spans: Vec<Span>,
    pub(crate) left_out: u64,
    /// Clocks of other ranks.
    pub(crate) clocks: Vec<ClockDifference>,
}

/// Maximum number of additional runs that are recorded for step times.
const RECORDED_RUNS: usize = 100;

pub(crate) fn measure(
    runtime: &ResilientRuntime,
    inputs: &[(String, Arc<TensorData>)],
    arguments: &Arguments,
    check: Check<'_>,
) -> Result<Measured, Error> {
    let inputs: Vec<(&str, Arc<TensorData>)> =
        inputs.iter().map(|(name, tensor)| (&name[..], tensor.clone())).collect();
    let current = runtime.current()?;
    let is_stream = current.bundle().objective.mode == Mode::Pipeline || current.in_flight() > 1;
    drop(current);
    let run = if is_stream { stream } else { one_by_one };
    let cold = match arguments.cold() {
        Some(_) => one_by_one(runtime, &inputs, 1, check)?.latencies.first().copied(),
        None => None,
    };
    if arguments.warmup() > 0 {
        run(runtime, &inputs, arguments.warmup(), check)?;
    }
    let mut measured = match arguments.recording() {
        Recording::Off => run(runtime, &inputs, arguments.repeat, check)?,
        recording => recorded(runtime, recording, || run(runtime, &inputs, arguments.repeat, check))?,
    };
    if arguments.is_json && arguments.recording() == Recording::Off {
        // Recorded in separate runs, since recording takes time.
        let runs = arguments.repeat.min(RECORDED_RUNS);
        let steps = recorded(runtime, Recording::Steps, || run(runtime, &inputs, runs, check))?;
        (measured.spans, measured.left_out, measured.clocks) = (steps.spans, steps.left_out, steps.clocks);
    }
    measured.cold = cold;
    Ok(measured)
}

fn recorded(
    runtime: &ResilientRuntime,
    recording: Recording,
    run: impl FnOnce() -> Result<Measured, Error>,
) -> Result<Measured, Error> {
    runtime.record(recording);
    let mut measured = run()?;
    runtime.record(Recording::Off);
    (measured.spans, measured.left_out, measured.clocks) = runtime.current()?.take_spans_and_clocks();
    Ok(measured)
}

fn one_by_one(
    runtime: &ResilientRuntime,
    inputs: &[(&str, Arc<TensorData>)],
    runs: usize,
    check: Check<'_>,
) -> Result<Measured, Error> {
    let inputs: Vec<(&str, TensorRef<'_>)> = inputs.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
    let mut latencies = Vec::with_capacity(runs);
    let mut outputs = Vec::new();
    let mut ticket = || {
        let start = Instant::now();
        outputs = runtime.run(&inputs)?;
        latencies.push(micros_since(start));
        check(&outputs);
        Ok(())
    };
    (0..runs).try_for_each(|_| ticket())?;
    let total: f64 = latencies.iter().sum();
    let throughput = inputs_of_request(runtime)? * runs as f64 / (total / 1e6);
    Ok(Measured { outputs, latencies, throughput, cold: None, spans: vec![], left_out: 0, clocks: vec![] })
}

/// Runs with as many requests in flight as the runtime admits.
fn stream(
    runtime: &ResilientRuntime,
    inputs: &[(&str, Arc<TensorData>)],
    runs: usize,
    check: Check<'_>,
) -> Result<Measured, Error> {
    let mut latencies = Vec::with_capacity(runs);
    let mut outputs = Vec::new();
    let mut ends = Vec::with_capacity(runs);
    let mut in_flight: VecDeque<(ResilientTicket<'_>, Instant)> = VecDeque::new();
    let start = Instant::now();
    let mut submitted = 0;
    while ends.len() < runs {
        if submitted < runs && in_flight.len() < runtime.current()?.in_flight() {
            let start = Instant::now();
            in_flight.push_back((runtime.submit_shared(inputs)?, start));
            submitted += 1;
        } else if let Some((ticket, start)) = in_flight.pop_front() {
            outputs = ticket.wait()?;
            latencies.push(micros_since(start));
            ends.push(Instant::now());
            check(&outputs);
        }
    }
    // The first run fills the pipeline and does not count.
    let throughput = match &ends[..] {
        [first, .., last] => (runs - 1) as f64 / (*last - *first).as_secs_f64(),
        _ => runs as f64 / start.elapsed().as_secs_f64(),
    };
    let throughput = throughput * inputs_of_request(runtime)?;
    Ok(Measured { outputs, latencies, throughput, cold: None, spans: vec![], left_out: 0, clocks: vec![] })
}

/// Returns the number of inputs of a request.
fn inputs_of_request(runtime: &ResilientRuntime) -> Result<f64, Error> {
    Ok(runtime.current()?.bundle().objective.inputs.max(1) as f64)
}

fn micros_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}
