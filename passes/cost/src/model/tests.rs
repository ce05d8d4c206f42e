//! Tests of properties of all estimates.

use super::*;
use crate::{
    Geometry,
    device::{CPU, CUDA},
};
use divi_onnx::DType;

/// Deterministic generator (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number between 1 and `limit`; small numbers are more likely.
    fn size(&mut self, limit: u64) -> u64 {
        let largest = 1 + self.next() % limit;
        1 + self.next() % largest
    }
}

/// Random operator, for any batch size.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    class: Class,
    sizes: [u64; 6],
    has_bias: bool,
}

impl Sizes {
    fn random(random: &mut Random) -> Self {
        let (class, _) = CLASSES[(random.next() % CLASSES.len() as u64) as usize];
        let sizes = [512, 512, 4000, 49, 4, 60].map(|limit| random.size(limit));
        Self { class, sizes, has_bias: random.next().is_multiple_of(2) }
    }

    fn work(&self, batch: u64) -> Work {
        let [a, b, c, taps, stride, width] = self.sizes;
        let element = 4;
        let (flops, read, weights, written, geometry) = match self.class {
            Class::Conv => (
                2 * batch * a * b * c * taps,
                batch * a * c * stride,
                a * b * taps + if self.has_bias { b } else { 0 },
                batch * b * c,
                Geometry::Conv {
                    images: batch,
                    groups: 1,
                    in_channels: a,
                    out_channels: b,
                    pixels: c,
                    width,
                    taps,
                    stride,
                },
            ),
            Class::DepthwiseConv => (
                2 * batch * a * c * taps,
                batch * a * c * stride,
                a * taps,
                batch * a * c,
                Geometry::Conv {
                    images: batch,
                    groups: a,
                    in_channels: 1,
                    out_channels: 1,
                    pixels: c,
                    width,
                    taps,
                    stride,
                },
            ),
            Class::MatMul | Class::Recurrent => (
                2 * batch * a * b * c,
                batch * a * b,
                b * c,
                batch * a * c,
                Geometry::Product { count: stride, rows: batch * a, columns: c, depth: b },
            ),
            Class::MaxPool | Class::AveragePool | Class::Reduction | Class::Normalization | Class::Softmax => {
                let outer = batch * a * b;
                (outer * taps, outer * stride, 0, outer, Geometry::Reduce { outer, inner: taps })
            }
            _ => {
                let count = batch * a * c;
                (count * width, count, if self.has_bias { a } else { 0 }, count, Geometry::Elements { count })
            }
        };
        Work {
            class: self.class,
            flops,
            read: element * read,
            weights: element * weights,
            resident_weights: element * weights,
            written: element * written,
            scratch: 0,
            dtype: DType::F32,
            geometry,
        }
    }
}

/// Returns a chain of operators as one task, without the traffic of intermediate results.
fn cluster(works: &[Work]) -> Task {
    Task {
        read: works.first().map_or(0, |work| work.read),
        weights: works.iter().map(|work| work.weights).sum(),
        written: works.last().map_or(0, |work| work.written),
        members: works.to_vec(),
    }
}

/// Calls `check` with all models, launch modes, and many chains of operators as functions of the batch size.
fn for_all(mut check: impl FnMut(&Model, Launch, &dyn Fn(u64) -> Task)) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..400 {
        let chain: Vec<Sizes> = (0..1 + round % 4).map(|_| Sizes::random(&mut random)).collect();
        let task = |batch| cluster(&chain.iter().map(|sizes| sizes.work(batch)).collect::<Vec<_>>());
        for model in [CUDA.model(), CPU.model()] {
            for launch in [Launch::Eager, Launch::Captured] {
                check(model, launch, &task);
            }
        }
    }
}

#[test]
fn estimates_are_finite_and_above_the_roofline() {
    for_all(|model, launch, task| {
        let task = task(1);
        let micros = model.time(&model.rates, &task, launch).micros.0;
        let (floor, _) = model.roofline(&model.rates, &task);
        assert!(micros.is_finite() && micros > 0.0 && micros >= floor, "{micros} µs, at least {floor}: {task:?}");
    });
}

#[test]
fn estimates_increase_with_batch_size() {
    for_all(|model, launch, task| {
        let mut last = 0.0;
        for batch in [1, 2, 3, 4, 7, 8, 16, 31, 64, 65, 128, 1000] {
            let micros = model.time(&model.rates, &task(batch), launch).micros.0;
            assert!(micros >= last, "{last} µs, then {micros} at {batch}: {:?}", task(1));
            last = micros;
        }
    });
}

#[test]
fn estimates_decrease_with_rates() {
    for_all(|model, launch, task| {
        let (task, rates) = (task(4), model.rates);
        let micros = |rates| model.time(&rates, &task, launch).micros;
        let slower = micros(rates);
        assert!(micros(Rates { flops_per_s: 1.5 * rates.flops_per_s, ..rates }) <= slower);
        assert!(micros(Rates { bytes_per_s: 1.5 * rates.bytes_per_s, ..rates }) <= slower);
        assert!(micros(Rates { launch: Some(Micros(0.5)), ..rates }) <= slower);
    });
}

#[test]
fn a_cluster_is_between_its_members_and_their_sum() {
    for_all(|model, launch, task| {
        let task = task(4);
        let micros = model.time(&model.rates, &task, launch).micros.0;
        let alone = task.members.iter().map(|work| model.time(&model.rates, &Task::from(*work), launch).micros.0);
        let alone: Vec<f64> = alone.collect();
        let (sum, most) = (alone.iter().sum::<f64>(), alone.iter().copied().fold(0.0, f64::max));
        assert!(micros <= sum.max(model.roofline(&model.rates, &task).0), "{micros} µs of {alone:?}: {task:?}");
        if task.members.len() > 1 {
            assert!(micros >= most, "{micros} µs of {alone:?}: {task:?}");
        }
    });
}

fn elementwise(count: u64) -> Work {
    Sizes { class: Class::Elementwise, sizes: [count, 1, 1, 1, 1, 1], has_bias: false }.work(1)
}

fn conv(channels: u64, pixels: u64) -> Work {
    Sizes { class: Class::Conv, sizes: [channels, channels, pixels, 9, 1, 56], has_bias: false }.work(1)
}

#[test]
fn views_take_no_time() {
    let view = Work { class: Class::View, flops: 0, read: 0, written: 0, ..elementwise(1) };
    let (model, conv) = (CUDA.model(), conv(64, 3136));
    let time = |works: &[Work]| model.time(&model.rates, &cluster(works), Launch::Eager).micros;
    assert_eq!(time(&[view, view]), Micros::ZERO);
    assert_eq!(time(&[]), Micros::ZERO);
    let task = |members| Task { members, ..Task::from(conv) };
    let micros = |members| model.time(&model.rates, &task(members), Launch::Eager).micros;
    assert_eq!(micros(vec![view, conv, view]), micros(vec![conv]));
}

#[test]
fn fusing_saves_launches_and_traffic() {
    let model = CUDA.model();
    let relu = Work { read: conv(64, 3136).written, ..elementwise(64 * 3136) };
    let time = |task: &Task| model.time(&model.rates, task, Launch::Eager).micros.0;
    let (fused, first, second) =
        (time(&cluster(&[conv(64, 3136), relu])), time(&conv(64, 3136).into()), time(&relu.into()));
    assert!(fused < first + 0.5 * second, "{fused} of {first} + {second}");
}

#[test]
fn captured_launches_are_cheaper_and_can_be_overridden() {
    let (model, task) = (CUDA.model(), Task::from(elementwise(1)));
    let time = |launch, overhead| model.time(&Rates { launch: overhead, ..model.rates }, &task, launch);
    let (eager, captured) = (time(Launch::Eager, None), time(Launch::Captured, None));
    assert_eq!((eager.bound, captured.bound), (Bound::Launch, Bound::Launch));
    assert!((eager.micros.0 - model.eager.0).abs() < 0.1 && captured.micros < eager.micros, "{eager:?} {captured:?}");
    for launch in [Launch::Eager, Launch::Captured] {
        assert!((time(launch, Some(Micros(2.0))).micros.0 - 2.0).abs() < 0.1);
        assert!(time(launch, Some(Micros(f64::NAN))).micros.0.is_finite());
    }
    // Captured graphs were not measured on CPUs.
    assert_eq!(CPU.model().captured, None);
}

#[test]
fn bounds_are_the_dominant_component() {
    let model = CUDA.model();
    let bound = |work: Work| model.time(&model.rates, &work.into(), Launch::Captured).bound;
    assert_eq!(bound(conv(512, 1 << 16)), Bound::Compute);
    assert_eq!(bound(elementwise(1 << 28)), Bound::Memory);
    assert_eq!(bound(elementwise(1)), Bound::Launch);
}

#[test]
fn invalid_rates_yield_finite_times() {
    for rate in [0.0, -1.0, f64::NAN] {
        let rates = Rates { flops_per_s: rate, bytes_per_s: rate, launch: None, threads: 1 };
        let estimate = CUDA.model().time(&rates, &conv(64, 3136).into(), Launch::Eager);
        assert!(estimate.micros.0.is_finite(), "{estimate:?}");
    }
}

/// The measured networks include no transformers; their products and softmaxes must have plausible efficiencies.
#[test]
fn transformers_are_plausible() {
    let (model, rows, hidden) = (CUDA.model(), 128 * 128, 768);
    let product = Work {
        flops: 2 * rows * hidden * 4 * hidden,
        geometry: Geometry::Product { count: 1, rows, columns: 4 * hidden, depth: hidden },
        ..Sizes { class: Class::MatMul, sizes: [rows, hidden, 4 * hidden, 1, 1, 1], has_bias: false }.work(1)
    };
    let efficiency = |work: Work| {
        let (ideal, _) = model.roofline(&model.rates, &work.into());
        ideal / model.time(&model.rates, &work.into(), Launch::Captured).micros.0
    };
    assert!((0.4..0.9).contains(&efficiency(product)), "{}", efficiency(product));
    let scores = 128 * 12 * 128 * 128;
    let softmax = Work {
        class: Class::Softmax,
        geometry: Geometry::Reduce { outer: scores / 128, inner: 128 },
        flops: 18 * scores,
        ..elementwise(scores)
    };
    assert!((0.2..0.9).contains(&efficiency(softmax)), "{}", efficiency(softmax));
}

#[test]
fn files_round_trip() {
    for model in [CUDA.model(), CPU.model()] {
        let text = model.to_json();
        let read = Model::from_json(&text).unwrap();
        assert_eq!((&read, read.to_json()), (model, text));
    }
}

#[test]
fn broken_files_are_errors() {
    let text = CUDA.model().to_json();
    let fails = |from: &str, to: &str, expected: &str| {
        let error = Model::from_json(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    fails("divi-cost-model/1", "divi-cost-model/2", "format: must be 'divi-cost-model/1', is 'divi-cost-model/2'");
    fails("\"flops.3x3\"", "\"flops.4x4\"", "classes.Conv.terms.flops.4x4: unknown term; expected one of flops, ");
    fails("\"Softmax\"", "\"Softmin\"", "classes: unknown field 'Softmin'; expected one of Conv, ");
    fails("\"eager\": ", "\"eager\": -", "launch_us.eager: must be a positive number, is -");
    fails("\"units\"", "\"unit\"", "machine: unknown field 'unit'; expected one of units, rows, cache");
    fails("\"units\"", "\"scaling\": 1.5, \"units\"", "machine.scaling: must be at most 1, is 1.5");
}

/// Further threads add less than the first one if they share its core, memory or power.
#[test]
fn threads_scale_as_the_machine_does() {
    let mut model = CPU.model().clone();
    model.machine = Machine { fork: 0.0, scaling: 0.5, ..model.machine };
    assert_eq!(Model::from_json(&model.to_json()).unwrap(), model);
    let task = Task::from(conv(256, 3136));
    let time = |threads: u32| {
        let several = f64::from(threads);
        let Rates { flops_per_s, bytes_per_s, launch, .. } = model.rates;
        let rates = Rates { flops_per_s: flops_per_s * several, bytes_per_s: bytes_per_s * several, launch, threads };
        model.time(&rates, &task, Launch::Eager).micros.0
    };
    assert!((time(1) / time(2) - 1.5).abs() < 0.05, "{} {}", time(1), time(2));
    assert!((time(1) / time(4) - 2.5).abs() < 0.1, "{} {}", time(1), time(4));
}
