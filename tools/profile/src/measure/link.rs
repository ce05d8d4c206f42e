//! Measurement of transfers by the runtime: a plan of two stages on two devices, and the time from the end of the first to the
//! start of the second.
//!
//! The CPU stage writes with non-temporal stores here, as all kernels that write whole cache lines do. Large copies of recently
//! cached data take about twice as long.

use super::{
    kind::{Kind, Processor},
    model,
    progress::Progress,
    rounds::{Rounds, lower_quartile},
    scratch::Scratch,
    settings::Settings,
};
use divi_cost::{
    pytorch::transfers,
    system::{
        System,
        units::{BytesPerSecond, Seconds},
    },
};
use divi_runtime::{
    Options, Runtime, Span,
    bundle::{Action, Bundle},
};
use std::{collections::HashMap, time::Duration};

/// Sizes of the copies: from 1 KiB to 64 MiB, in steps of four.
const BYTES: [u64; 9] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26];

/// Time limit for each size; copies become stable quickly.
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// Links between equal pairs of devices.
pub(super) struct Pair {
    /// Processors of the sending and the receiving devices.
    processors: [Processor; 2],
    /// Indices in the system.
    pub(super) links: Vec<usize>,
}

/// Linear model of a link: `latency + bytes / bandwidth`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) latency: Seconds,
    pub(crate) bandwidth: BytesPerSecond,
    /// Bytes of the copy with the largest deviation from the line, and the ratio of measured to fitted time.
    pub(crate) farthest: (f64, f64),
}

impl Line {
    /// Returns a line with a latency in seconds and a bandwidth in bytes per second.
    pub(crate) fn new(latency: f64, bandwidth: f64, farthest: (f64, f64)) -> Self {
        Self { latency: Seconds(latency), bandwidth: BytesPerSecond(bandwidth), farthest }
    }

    /// Returns the time of a copy in seconds.
    pub(crate) fn seconds(&self, bytes: f64) -> f64 {
        self.latency.0 + bytes / self.bandwidth.0
    }

    /// Fits copies, given as bytes and seconds. `None` if no line fits.
    pub(crate) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let (latency, bandwidth) = transfers::line(points)?;
        let apart = |&(bytes, seconds): &(f64, f64)| (bytes, seconds / (latency + bytes / bandwidth));
        let how_far = |(_, times): &(f64, f64)| times.ln().abs();
        let farthest = points.iter().map(apart).max_by(|a, b| how_far(a).total_cmp(&how_far(b)))?;
        Some(Self::new(latency, bandwidth, farthest))
    }
}

/// Returns the links to measure: those with an end in host memory. A bundle for two accelerators would need two of them.
pub(super) fn pairs(system: &System, kinds: &[Kind]) -> Vec<Pair> {
    let processor = |device| kinds.iter().find(|kind| kind.devices.contains(&device)).map(|kind| &kind.processor);
    let mut pairs: Vec<Pair> = vec![];
    for (index, link) in system.links.iter().enumerate() {
        let (Some(from), Some(to)) = (processor(link.from), processor(link.to)) else { continue };
        let processors = [from.clone(), to.clone()];
        if !processors.iter().any(Processor::is_on_host) {
            continue;
        }
        match pairs.iter_mut().find(|pair| pair.processors == processors) {
            Some(pair) => pair.links.push(index),
            None => pairs.push(Pair { processors, links: vec![index] }),
        }
    }
    pairs
}

/// Measures copies of all sizes and fits them; `None` if no line fits.
pub(super) fn measure(pair: &Pair, settings: &Settings, progress: &Progress) -> Result<Option<Line>, String> {
    let mut points = vec![];
    for (index, bytes) in BYTES.into_iter().enumerate() {
        let share = |of_size: f64| (index as f64 + of_size.min(1.0)) / BYTES.len() as f64;
        let text = format!("copies of {} KiB", bytes >> 10);
        progress.show(share(0.0), &text);
        let scratch = Scratch::new()?;
        let folder = scratch.join("bundle");
        model::compile_plan("copy", &plan(pair, bytes), &folder, &settings.compilation)?;
        let runtime = Runtime::load(folder, Options::default()).map_err(|error| error.to_string())?;
        drop(scratch);
        let read = |spans: &[Span]| vec![way(runtime.bundle(), spans)];
        let tell = |of_size: f64, micros: f64| progress.show(share(of_size), &format!("{text}: {micros:.1} µs"));
        let stable = Rounds::new(&runtime)?.until_stable(settings.time_limit.min(TIME_LIMIT), read, tell)?;
        points.extend(stable.times.iter().map(|micros| (bytes as f64, micros / 1e6)));
    }
    points.retain(|(_, seconds)| *seconds > 0.0);
    Ok(Line::of(&points))
}

/// Returns the time from the end of the first launch to the start of the second, in microseconds.
fn way(bundle: &Bundle, spans: &[Span]) -> f64 {
    let launches = bundle.steps.iter().enumerate().filter(|(_, step)| matches!(step.action, Action::Launch { .. }));
    let launches: Vec<usize> = launches.map(|(index, _)| index).collect();
    let &[first, .., last] = &launches[..] else { return 0.0 };
    let mut ends = HashMap::new();
    let mut starts = vec![];
    for span in spans.iter().filter(|span| span.task.is_none()) {
        if span.step == first {
            ends.insert(span.request, span.end_ns);
        } else if span.step == last {
            starts.push((span.request, span.begin_ns));
        }
    }
    let way = |(request, start): (u64, u64)| Some(start.saturating_sub(*ends.get(&request)?) as f64 / 1e3);
    lower_quartile(starts.into_iter().filter_map(way).collect())
}

/// Builds a plan with a stage on each of two devices, and a transfer between them.
fn plan(pair: &Pair, bytes: u64) -> String {
    let ty = format!("tensor<1x{}xf32>", bytes / 4);
    let stage = |name: &str, device: &str| {
        format!(
            "func.func private @{name}(%x: {ty}) -> {ty} attributes {{divi.device = @{device}}} {{\n\
             %y = \"onnx.Relu\"(%x) : ({ty}) -> {ty}\nreturn %y : {ty}\n}}"
        )
    };
    let [from, to] = &pair.processors;
    // Model inputs are on the host.
    let has_inputs = from.is_on_host();
    let (first, bring) = match has_inputs {
        true => ("%x", String::new()),
        false => ("%i", format!("%i = divi.transfer %x from @to to @from : {ty}\n")),
    };
    let link =
        |from: &str, to: &str| format!("divi.link @{from} -> @{to} {{bandwidth = 1.0e10 : f64, latency = 0.0 : f64}}");
    let (from, to) = (from.declared("from"), to.declared("to"));
    let (there, back) = (link("from", "to"), link("to", "from"));
    let (send, receive) = (stage("send", "from"), stage("receive", "to"));
    format!(
        "{from}\n{to}\n{there}\n{back}\n{send}\n{receive}\n\
         func.func @main(%x: {ty} {{onnx.name = \"x\"}}) -> ({ty} {{onnx.name = \"y\"}}) {{\n\
         {bring}%0 = divi.launch @send({first}) on @from : ({ty}) -> {ty}\n\
         %1 = divi.transfer %0 from @from to @to : {ty}\n\
         %2 = divi.launch @receive(%1) on @to : ({ty}) -> {ty}\n\
         return %2 : {ty}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Measure, kind::Variant};
    use super::*;
    use clap::Parser;
    use divi_cost::device::{CPU, CUDA};

    #[test]
    fn deviations_from_the_line_are_reported() {
        let straight = [(1e3, 2e-6), (2e3, 3e-6), (4e3, 5e-6)];
        let line = Line::of(&straight).unwrap();
        assert!((line.bandwidth.0 / 1e9 - 1.0).abs() < 1e-9 && (line.latency.micros() - 1.0).abs() < 1e-9);
        assert!((line.farthest.1 - 1.0).abs() < 1e-9);
        let bent = Line::of(&[straight[0], (2e3, 6e-6), straight[2], (8e3, 9e-6)]).unwrap();
        assert!(bent.farthest.0 == 2e3 && bent.farthest.1 > 1.3, "{:?}", bent.farthest);
        assert!(Line::of(&[]).is_none());
    }

    /// Tests that the plans compile for all pairs, including GPUs.
    #[test]
    fn plans_compile_for_all_pairs() {
        let line = ["measure", "-o", "p.json", "--system-out=s.toml", "--cpu=x86-64-v3"];
        let settings = Settings::of(Measure::try_parse_from(line).unwrap()).unwrap();
        let cpu = Processor { kind: CPU, variant: Variant::Threads(1) };
        let gpu = Processor { kind: CUDA, variant: Variant::Arch("sm_90".into()) };
        for processors in [[cpu.clone(), cpu.clone()], [cpu.clone(), gpu.clone()], [gpu, cpu]] {
            let scratch = Scratch::new().unwrap();
            let folder = scratch.join("bundle");
            model::compile_plan(
                "copy",
                &plan(&Pair { processors, links: vec![] }, 1024),
                &folder,
                &settings.compilation,
            )
            .unwrap();
            let steps = Bundle::read(&folder).unwrap().steps;
            assert!(matches!(steps[steps.len() - 2].action, Action::Transfer { .. }));
        }
    }
}
