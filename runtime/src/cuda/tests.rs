//! Bundles with GPUs, on a stub of CUDA.

use super::{
    Cuda, Driver,
    driver::Fault,
    find, runs,
    stage::{TaskTime, fitted},
    stub::{Stub, square},
};
use crate::{
    Cold, ColdStart, DType, Error, MemoryUse, Options, Recording, Runtime, TensorData,
    bundle::{
        Action, Buffer, Bundle, Call, Constant, Convolution, Device, Epilogue, FORMAT, File, GpuCode, Launch, Library,
        LibraryCall, Link, Mode, Objective, Port, Source, Stage, Step, Target, Task, Tensor, Then, Value,
    },
    prepare::Expression,
};
use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const SIZE: u64 = 16;

/// A bundle that is being made, and the folder that it is written to.
struct Maker {
    bundle: Bundle,
    folder: PathBuf,
    ptx: &'static str,
}

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn floats(shape: &[u64]) -> Tensor {
    Tensor { dtype: "float".into(), shape: shape.to_vec(), bytes: shape.iter().product::<u64>() * 4 }
}

fn call(kernel: &str, buffers: &[Buffer], after: &[usize]) -> Call {
    let can_fail = kernel == "root";
    let launch = Launch { blocks: 1, threads: 32, can_fail, then: vec![], library: None, after: after.to_vec() };
    let (kernel, buffers) = (kernel.to_owned(), buffers.to_vec());
    Call { kernel, buffers, extent: SIZE as i64, grain: 1, task: 0, launch: Some(launch) }
}

impl Maker {
    /// For GPUs, and behind them a CPU.
    fn new(gpus: usize) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("divi-cuda-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let gpu = |index| {
            let arch = Some("sm_90".to_owned());
            Device {
                id: format!("gpu{index}"),
                kind: "cuda".into(),
                arch,
                threads: 1,
                memory: 1 << 30,
                ..Device::default()
            }
        };
        let cpu = Device { id: "cpu0".into(), kind: "cpu".into(), threads: 1, memory: 1 << 30, ..Device::default() };
        let bundle = Bundle {
            format: FORMAT.into(),
            model: "test".into(),
            target: Target { cpu: "x86-64-v3".into(), features: vec![], code: "kernels.so".into() },
            gpus: vec![GpuCode { arch: "sm_90".into(), code: "sm_90.ptx".into() }],
            objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
            devices: (0..gpus).map(gpu).chain([cpu]).collect(),
            files: vec![],
            values: vec![],
            inputs: vec![],
            outputs: vec![],
            constants: vec![],
            prepare: vec![],
            stages: vec![],
            steps: vec![],
            sha256: String::new(),
        };
        Self { bundle, folder, ptx: "// PTX" }
    }

    fn value(&mut self, name: &str, device: usize) -> usize {
        self.bundle.values.push(Value { name: name.into(), device, tensor: floats(&[SIZE]), constant: None });
        self.bundle.values.len() - 1
    }

    fn input(&mut self, name: &str, device: usize) -> usize {
        let value = self.value(name, device);
        self.bundle.inputs.push(Port { name: name.into(), value });
        value
    }

    fn output(&mut self, name: &str, value: usize) {
        self.bundle.outputs.push(Port { name: name.into(), value });
    }

    fn constant(&mut self, number: f32) -> usize {
        let digits = number.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.bundle.constants.push(Constant { bytes: 4, source: Source::Made(Expression::Bytes(digits)) });
        self.bundle.constants.len() - 1
    }

    fn step(&mut self, action: Action) {
        self.bundle.steps.push(Step { action, start_us: None, takes_us: None });
    }

    fn transfer(&mut self, input: usize, device: usize) -> usize {
        self.transfer_of(input, device, &[SIZE])
    }

    fn transfer_of(&mut self, input: usize, device: usize, shape: &[u64]) -> usize {
        let name = format!("{} on {device}", self.bundle.values[input].name);
        let output = self.value(&name, device);
        self.bundle.values[output].tensor = floats(shape);
        self.step(Action::Transfer { input, output });
        output
    }

    fn launch(&mut self, name: &str, calls: Vec<Call>, inputs: &[usize], outputs: &[usize]) {
        let tensor = |&value: &usize| self.bundle.values[value].tensor.clone();
        let tasks = calls.iter().map(|call| call.task).max().unwrap_or(0) + 1;
        let task = |index| Task { name: format!("{name} {index}"), ..Task::default() };
        self.bundle.stages.push(Stage {
            name: name.into(),
            device: self.bundle.values[outputs[0]].device,
            arena: 4096,
            inputs: inputs.iter().map(tensor).collect(),
            outputs: outputs.iter().map(tensor).collect(),
            tasks: (0..tasks).map(task).collect(),
            calls,
        });
        let stage = self.bundle.stages.len() - 1;
        self.step(Action::Launch { stage, inputs: inputs.to_vec(), outputs: outputs.to_vec() });
    }

    fn load(&mut self, stub: &Stub, options: Options) -> Result<Runtime, Error> {
        fs::write(self.folder.join("sm_90.ptx"), self.ptx).unwrap();
        self.bundle.files = vec![File::of(&self.folder, "sm_90.ptx").unwrap()];
        self.bundle.write(&self.folder).unwrap();
        Runtime::load_with(&self.folder, options, stub)
    }

    fn refusal(&mut self, stub: &Stub) -> String {
        let error = self.load(stub, Options::default()).err().unwrap().to_string();
        error.replace(self.folder.to_str().unwrap(), "FOLDER")
    }
}

/// `y = x * 3 + x`, with inputs and outputs on a device.
fn scale_and_add(ports: usize) -> Maker {
    let mut maker = Maker::new(1);
    let three = maker.constant(3.0);
    let mut x = maker.input("x", ports);
    if ports != 0 {
        x = maker.transfer(x, 0);
    }
    let mut y = maker.value("y", 0);
    let calls = vec![
        call("scale", &[Buffer::Arena(64), Buffer::Input(0), Buffer::Constant(three)], &[]),
        call("add", &[Buffer::Output(0), Buffer::Arena(64), Buffer::Input(0)], &[0]),
    ];
    maker.launch("main", calls, &[x], &[y]);
    if ports != 0 {
        y = maker.transfer(y, ports);
    }
    maker.output("y", y);
    maker
}

fn full(number: f32) -> TensorData {
    TensorData::from_f32(&[SIZE], &[number; SIZE as usize]).unwrap()
}

fn ask(runtime: &Runtime, number: f32) -> Result<Vec<f32>, Error> {
    let outputs = runtime.run(&[("x", full(number).view())])?;
    assert_eq!(outputs[0].1.dtype(), DType::F32);
    Ok(outputs[0].1.to_f32().unwrap())
}

#[test]
fn a_stage_is_captured_once_and_replayed() {
    for ports in [0, 1] {
        let stub = Stub::new();
        let runtime = scale_and_add(ports).load(&stub, Options::default()).unwrap();
        for round in 0..5 {
            assert_eq!(ask(&runtime, round as f32).unwrap(), [4.0 * round as f32; SIZE as usize]);
        }
        assert_eq!((stub.times("graph of 2 on 1"), stub.times("launch graph"), stub.times("kernel")), (1, 5, 10));
        drop(runtime);
        assert_eq!(stub.pieces(), 0);
    }
}

/// `y = x * 3 * 3`, where what is between the two stages goes by the host, or does not.
fn scale_twice(by_host: bool) -> Maker {
    let mut maker = Maker::new(1);
    let three = maker.constant(3.0);
    let scale = || vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(three)], &[])];
    let x = maker.input("x", 1);
    let (x, mut between, y) = (maker.transfer(x, 0), maker.value("between", 0), maker.value("y", 0));
    maker.launch("first", scale(), &[x], &[between]);
    if by_host {
        let here = maker.transfer(between, 1);
        between = maker.transfer(here, 0);
    }
    maker.launch("second", scale(), &[between], &[y]);
    let y = maker.transfer(y, 1);
    maker.output("y", y);
    maker
}

/// The stub does nothing before somebody waits for it: stages that are launched are on their way, not done.
#[test]
fn gpus_are_told_ahead() {
    let stub = Stub::new();
    let runtime = scale_twice(false).load(&stub, Options::default()).unwrap();
    assert_eq!(ask(&runtime, 1.0).unwrap(), [9.0; SIZE as usize]);
    let log = &stub.state.lock().log;
    let (last_launch, first_kernel) =
        (log.iter().rposition(|line| line == "launch graph"), log.iter().position(|line| line.starts_with("kernel")));
    assert!(last_launch < first_kernel && last_launch.is_some(), "{log:?}");
}

#[test]
fn requests_overtake_nothing_they_need() {
    for by_host in [false, true] {
        let stub = Stub::new();
        let runtime = scale_twice(by_host).load(&stub, Options { in_flight: Some(3), ..Options::default() }).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let runtime = &runtime;
                scope.spawn(move || {
                    for round in 0..40 {
                        let number = (thread * 100 + round) as f32;
                        assert_eq!(ask(runtime, number).unwrap(), [9.0 * number; SIZE as usize]);
                    }
                });
            }
        });
        let tickets: Vec<_> =
            (0..2).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
        for (number, ticket) in tickets.into_iter().enumerate() {
            assert_eq!(ticket.wait().unwrap()[0].1.to_f32().unwrap(), [9.0 * number as f32; SIZE as usize]);
        }
    }
}

/// Tensors of callers that GPUs copy from and to by themselves are copied by nobody else.
#[test]
fn pinned_tensors_are_copied_once() {
    for ports in [0, 1] {
        let stub = Stub::new();
        let runtime = scale_and_add(ports).load(&stub, Options::default()).unwrap();
        // The room of the first output is there; the input is as long, and takes it.
        let input = Arc::new(runtime.adopt(full(2.0)).unwrap());
        let run = || runtime.run(&[("x", input.view())]).unwrap();
        drop(run());
        let pinned = stub.times("pin");
        for _ in 0..2 {
            assert_eq!(run()[0].1.to_f32().unwrap(), [8.0; SIZE as usize]);
        }
        assert_eq!(stub.times("pin"), pinned, "outputs take each other's places");
        // The input and the output are where they were copied from and to.
        let copied = |tensor: &TensorData| {
            let address = tensor.bytes().as_ptr().addr();
            stub.state.lock().copied.iter().filter(|(to, from)| *to == address || *from == address).count()
        };
        assert_eq!(copied(&input), 3);
        drop(runtime.submit_shared(&[("x", input.clone())]).unwrap().wait().unwrap());
        assert_eq!(copied(&input), 4);
        let kept = run();
        assert_eq!(copied(&kept[0].1), 5);
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize], "others are as good");
        assert_eq!(kept[0].1.to_f32().unwrap(), [8.0; SIZE as usize], "what is kept stays");
        let many: Vec<_> = (0..5).map(|_| run()).collect();
        let pieces = stub.pieces();
        drop(many);
        assert_eq!(stub.pieces(), pieces - 3, "two of a size are kept");
        let mut place = full(0.0);
        runtime.run_into(&[("x", full(3.0).view())], &mut [place.bytes_mut()]).unwrap();
        assert_eq!(place.to_f32().unwrap(), [12.0; SIZE as usize]);
        drop((runtime, kept, input));
        assert_eq!(stub.pieces(), 0);
    }
}

#[test]
fn each_slot_has_its_own_graph() {
    let stub = Stub::new();
    let mut maker = scale_and_add(1);
    let runtime = maker.load(&stub, Options { in_flight: Some(3), ..Options::default() }).unwrap();
    for _ in 0..4 {
        let asked: Vec<_> =
            (0..3).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
        for (number, ticket) in asked.into_iter().enumerate() {
            let outputs = ticket.wait().unwrap();
            assert_eq!(outputs[0].1.to_f32().unwrap(), [4.0 * number as f32; SIZE as usize]);
        }
    }
    assert!(stub.times("graph of") <= 3);
    assert_eq!(stub.times("launch graph"), 12);
}

#[test]
fn calls_that_do_not_wait_for_each_other_run_side_by_side() {
    let stub = Stub::new();
    let mut maker = Maker::new(1);
    let (two, three) = (maker.constant(2.0), maker.constant(3.0));
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(two)], &[]),
        call("scale", &[Buffer::Arena(256), Buffer::Input(0), Buffer::Constant(three)], &[]),
        call("add", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Arena(256)], &[0, 1]),
    ];
    maker.launch("main", calls, &[x], &[y]);
    maker.output("y", y);
    let runtime = maker.load(&stub, Options::default()).unwrap();
    assert_eq!(ask(&runtime, 2.0).unwrap(), [10.0; SIZE as usize]);
    assert_eq!(stub.times("graph of 3 on 2"), 1);
}

#[test]
fn what_cannot_be_captured_is_issued_as_it_is() {
    let stub = Stub::new();
    stub.state.lock().refuses_captures = true;
    let runtime = scale_and_add(0).load(&stub, Options::default()).unwrap();
    for round in 0..3 {
        assert_eq!(ask(&runtime, round as f32).unwrap(), [4.0 * round as f32; SIZE as usize]);
    }
    assert_eq!((stub.times("launch graph"), stub.times("kernel")), (0, 6));
}

#[test]
fn values_are_cut_and_put_together_on_the_gpu() {
    let stub = Stub::new();
    let mut maker = Maker::new(1);
    let x = maker.input("x", 0);
    let halves = [maker.value("front", 0), maker.value("back", 0)];
    for (index, &half) in halves.iter().enumerate() {
        maker.bundle.values[half].tensor = floats(&[SIZE / 2]);
        let positions = vec![1 - index as u64];
        maker.step(Action::Slice { input: x, output: half, positions, of: 2, axis: 0, outer: 1 });
    }
    let y = maker.value("y", 0);
    maker.step(Action::Gather { inputs: halves.to_vec(), output: y, of: vec![1, 1], axis: 0, outer: 1 });
    maker.output("y", y);
    let runtime = maker.load(&stub, Options::default()).unwrap();
    let numbers: Vec<f32> = (0..SIZE).map(|number| number as f32).collect();
    let input = TensorData::from_f32(&[SIZE], &numbers).unwrap();
    let outputs = runtime.run(&[("x", input.view())]).unwrap();
    let expected: Vec<f32> =
        numbers[SIZE as usize / 2..].iter().chain(&numbers[..SIZE as usize / 2]).copied().collect();
    assert_eq!(outputs[0].1.to_f32().unwrap(), expected);
}

#[test]
fn two_gpus_hand_values_over() {
    let mut maker = Maker::new(2);
    let ten = maker.constant(10.0);
    let x = maker.input("x", 2);
    let mut at = x;
    for gpu in 0..2 {
        let there = maker.transfer(at, gpu);
        at = maker.value("scaled", gpu);
        let calls = vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(ten)], &[])];
        maker.launch(&format!("stage {gpu}"), calls, &[there], &[at]);
    }
    maker.output("y", at);
    let stub = Stub { count: 2, ..Stub::new() };
    let runtime = maker.load(&stub, Options::default()).unwrap();
    assert_eq!(ask(&runtime, 1.5).unwrap(), [150.0; SIZE as usize]);
    let expected = "the bundle needs the CUDA device 'gpu1' (sm_90), and this machine has 1 GPU: plan for a system of \
                    CPUs, as --system=cpu-2";
    assert_eq!(maker.refusal(&Stub::new()), expected);
}

#[test]
fn tasks_are_measured_by_the_gpus_clock() {
    let stub = Stub::new();
    let mut maker = scale_and_add(0);
    maker.bundle.stages[0].calls[1].task = 1;
    maker.bundle.stages[0].tasks.push(Task { name: "second".into(), ..Task::default() });
    let runtime = maker.load(&stub, Options::default()).unwrap();
    runtime.record(Recording::Tasks);
    assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
    let (spans, _) = runtime.take_spans();
    let tasks: Vec<_> = spans.iter().filter(|span| span.task.is_some()).collect();
    assert_eq!(tasks.iter().map(|span| span.end_ns - span.begin_ns).collect::<Vec<_>>(), [10_000, 10_000]);
    assert_eq!(tasks[0].end_ns, tasks[1].begin_ns);
}

#[test]
fn what_tasks_take_adds_up_to_what_the_stage_takes() {
    let times = |ends: &[f64]| {
        let begins = std::iter::once(&0.0).chain(ends);
        begins.zip(ends).map(|(&begin_us, &end_us)| TaskTime { task: 0, begin_us, end_us }).collect::<Vec<_>>()
    };
    let took = |times: Vec<TaskTime>| times.iter().map(|time| time.end_us - time.begin_us).collect::<Vec<_>>();
    // Two microseconds of each are the events'.
    assert_eq!(took(fitted(times(&[10.0, 15.0]), 11.0)), [8.0, 3.0]);
    // Nothing is added, and something of each is kept.
    assert_eq!(took(fitted(times(&[10.0, 15.0]), 20.0)), [10.0, 5.0]);
    let shares = took(fitted(times(&[100.0, 101.0]), 50.0));
    assert!((shares.iter().sum::<f64>() - 50.0).abs() < 1e-9 && shares[1] > 0.0);
    assert!(fitted(vec![], 1.0).is_empty());
}

#[test]
fn a_cold_start_is_foretold() {
    let mut maker = Maker::new(1);
    let (two, three) = (maker.constant(2.0), maker.constant(3.0));
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    let scale = |out, from, by| call("scale", &[out, from, Buffer::Constant(by)], &[]);
    let first = scale(Buffer::Arena(0), Buffer::Input(0), two);
    maker.launch("main", vec![first, scale(Buffer::Output(0), Buffer::Arena(0), three)], &[x], &[y]);
    let foretold = |maker: &Maker| ColdStart::predicted(&maker.bundle);
    assert_eq!(foretold(&maker), None);
    // A weight takes eight microseconds to be there.
    maker.bundle.devices[0].inward = Some(Link { bytes_per_s: 0.5e6, latency_us: 1.0 });
    for (takes, overlap_us, copy_first_us) in [(20.0, 29.0, 37.0), (4.0, 19.0, 21.0)] {
        maker.bundle.stages[0].tasks[0].predicted_us = Some(takes);
        assert_eq!(foretold(&maker), Some(ColdStart { overlap_us, copy_first_us }));
    }
}

fn by(way: Library) -> Option<LibraryCall> {
    Some(LibraryCall { way, then: vec![] })
}

/// `y = x * x`, as matrices.
fn product() -> Maker {
    let mut maker = Maker::new(1);
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    let mut call = call("product", &[Buffer::Input(0), Buffer::Input(0), Buffer::Output(0)], &[]);
    if let Some(launch) = &mut call.launch {
        launch.library = by(Library::Product(square(4)));
    }
    maker.launch("main", vec![call], &[x], &[y]);
    maker.output("y", y);
    maker
}

#[test]
fn the_fastest_way_is_chosen() {
    for (plans, chosen) in [
        (vec![], "kernel product"),
        (vec![(30.0, 0), (20.0, 64)], "kernel product"),
        (vec![(9.0, 64), (8.0, 512)], "library 8"),
    ] {
        let stub = Stub { plans, ..Stub::new() };
        let runtime = product().load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        assert_eq!((stub.times(chosen), stub.times("kernel") + stub.times("library")), (1, 1));
    }
}

#[test]
fn gpus_are_found() {
    let stub = Stub { count: 2, ..Stub::new() };
    let found: Vec<_> = find(&stub).unwrap().into_iter().map(|gpu| (gpu.name, gpu.arch)).collect();
    assert_eq!(found, vec![("stub".to_owned(), "sm_90".to_owned()); 2]);
    let stub = Stub { refusal: Some("no driver".into()), ..Stub::new() };
    assert_eq!(find(&stub).unwrap_err().to_string(), "no driver");
}

#[test]
fn choices_are_kept_for_other_bundles() {
    let maker = product();
    let path = maker.folder.join("choices.json");
    // What is loaded runs how many kernels and plans, and takes which in the end.
    let load = |plans: Vec<(f64, u64)>| {
        let stub = Stub { plans, ..Stub::new() };
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let runtime = product().load(&stub, options).unwrap();
        let tried = stub.times("kernel") + stub.times("library");
        stub.state.lock().log.clear();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        // What is known runs once: its code is loaded then.
        (tried > 1, if stub.times("kernel") > 0 { 0 } else { 1 })
    };
    assert_eq!(load(vec![]), (false, 0));
    assert!(!path.exists(), "nothing was measured");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (true, 1));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""library":"library 8""#), "{text}");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (false, 1), "it is known");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(load(vec![(30.0, 0)]), (true, 0), "that plan is not there any more");
    assert_eq!(load(vec![(30.0, 0)]), (false, 0));
    assert_eq!(load(vec![]), (false, 0));

    let fails = |text: &str, expected: &str| {
        fs::write(&path, text).unwrap();
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let message = product().load(&Stub::new(), options).err().unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    };
    fails("{", "choices.json");
    fails(r#"{"format": "divi-choices/7", "gpus": []}"#, "its format is 'divi-choices/7', not 'divi-choices/1'");
}

#[test]
fn kernels_behind_finish_what_was_begun() {
    for (plans, expected) in
        [(vec![], ["kernel product", "kernel add"]), (vec![(1.0, 0)], ["library 1", "kernel scale"])]
    {
        let mut maker = product();
        let then = |kernel: &str| vec![Then { kernel: kernel.into(), blocks: 1, threads: 32, extent: SIZE as i64 }];
        if let Some(launch) = &mut maker.bundle.stages[0].calls[0].launch {
            launch.then = then("add");
            launch.library = Some(LibraryCall { way: Library::Product(square(4)), then: then("scale") });
        }
        let stub = Stub { plans, ..Stub::new() };
        let runtime = maker.load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        ask(&runtime, 1.0).unwrap();
        assert_eq!(expected.map(|line| stub.times(line)), [1, 1]);
        assert_eq!(stub.times("kernel") + stub.times("library"), 2);
    }
}

#[test]
fn weights_can_stay_on_the_host() {
    for cold in [None, Some(Cold::Overlap)] {
        let stub = Stub::new();
        let mut maker = Maker::new(1);
        let (two, three) = (maker.constant(2.0), maker.constant(3.0));
        let (x, y) = (maker.input("x", 0), maker.value("y", 0));
        let scale = |from, to, by| call("scale", &[to, from, Buffer::Constant(by)], &[]);
        let (first, last) = (Buffer::Arena(0), Buffer::Output(0));
        let mut calls = vec![scale(Buffer::Input(0), first, two), scale(first, Buffer::Arena(64), three)];
        calls.push(scale(Buffer::Arena(64), last, two));
        for (index, call) in calls.iter_mut().enumerate() {
            call.task = index;
        }
        maker.launch("main", calls, &[x], &[y]);
        maker.output("y", y);
        let tasks = &mut maker.bundle.stages[0].tasks;
        // The second's weight stays, the first's is copied for the third.
        (tasks[0].has_host_weights, tasks[1].has_host_weights) = (true, true);
        let runtime = maker.load(&stub, Options { cold, ..Options::default() }).unwrap();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [12.0; SIZE as usize]);
        let weights = stub.state.lock().log.iter().filter(|line| *line == "copy 256" || *line == "copy 4").count();
        assert_eq!(weights, 1, "{:?}", stub.state.lock().log);
    }
}

#[test]
fn weights_that_do_not_fit_pass_through() {
    for (window, is_measured, copies) in [(1024, false, 0), (512, false, 3), (512, true, 9), (256, false, 4)] {
        let stub = Stub::new();
        let mut maker = Maker::new(1);
        let (x, y) = (maker.input("x", 0), maker.value("y", 0));
        let numbers = [2.0, 3.0, 5.0].map(|number| maker.constant(number));
        let scale = |from, to, by| call("scale", &[to, from, Buffer::Constant(by)], &[]);
        let [a, b, c] = [0, 64, 128].map(Buffer::Arena);
        let calls = vec![
            scale(Buffer::Input(0), a, numbers[0]),
            scale(a, b, numbers[1]),
            scale(b, c, numbers[1]),
            scale(c, a, numbers[2]),
            scale(a, Buffer::Output(0), numbers[1]),
        ];
        maker.launch("main", calls, &[x], &[y]);
        maker.output("y", y);
        maker.bundle.devices[0].streams_weights = true;
        let others = MemoryUse::planned(&maker.bundle, None)[0];
        maker.bundle.devices[0].memory = others.total() - others.weights + window;
        let runtime = maker.load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        runtime.record(if is_measured { Recording::Tasks } else { Recording::Off });
        assert_eq!(ask(&runtime, 1.0).unwrap(), [270.0; SIZE as usize]);
        assert_eq!(ask(&runtime, 2.0).unwrap(), [540.0; SIZE as usize]);
        let log = &stub.state.lock().log;
        assert_eq!(log.iter().filter(|line| *line == "copy 4").count(), 2 * copies, "{log:?}");
    }
}

#[test]
fn weights_are_copied_by_the_first_request() {
    let modes = [Cold::Overlap, Cold::CopyFirst].map(|cold| [false, true].map(|refuses| (cold, refuses)));
    for (cold, refuses_captures) in modes.into_iter().flatten() {
        let stub = Stub::new();
        stub.state.lock().refuses_captures = refuses_captures;
        let mut maker = Maker::new(1);
        let (two, three) = (maker.constant(2.0), maker.constant(3.0));
        let (x, y) = (maker.input("x", 0), maker.value("y", 0));
        let calls = vec![
            call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(two)], &[]),
            call("scale", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Constant(three)], &[0]),
        ];
        maker.launch("main", calls, &[x], &[y]);
        maker.output("y", y);
        let runtime = maker.load(&stub, Options { cold: Some(cold), ..Options::default() }).unwrap();
        stub.state.lock().log.clear();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [6.0; SIZE as usize]);
        let graphs = usize::from(!refuses_captures);
        assert_eq!(stub.times("launch graph"), graphs);
        let mut log = std::mem::take(&mut stub.state.lock().log);
        log.retain(|line| line.starts_with("copy") || line.starts_with("kernel"));
        // The first copy is that of the input, the last that of the output.
        assert_eq!(log, ["copy 64", "copy 512", "kernel scale", "kernel scale", "copy 64"]);
        assert_eq!(ask(&runtime, 2.0).unwrap(), [12.0; SIZE as usize]);
        assert_eq!((stub.times("graph of"), stub.times("launch graph")), (0, graphs), "it was captured before");
        drop(runtime);
        assert_eq!(stub.pieces(), 0);
    }
}

#[test]
fn a_constant_may_be_an_output() {
    for cold in [None, Some(Cold::Overlap)] {
        let stub = Stub::new();
        let mut maker = scale_and_add(0);
        let value = maker.value("c", 0);
        let constant = maker.constant(7.0);
        maker.bundle.values[value] =
            Value { name: "c".into(), device: 0, tensor: floats(&[1]), constant: Some(constant) };
        maker.output("c", value);
        let there = maker.transfer_of(value, 1, &[1]);
        maker.output("c there", there);
        let runtime = maker.load(&stub, Options { cold, ..Options::default() }).unwrap();
        let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
        let numbers = |index: usize| outputs[index].1.to_f32().unwrap();
        assert_eq!(
            (&numbers(0)[..], &numbers(1)[..], &numbers(2)[..]),
            (&[4.0; SIZE as usize][..], &[7.0][..], &[7.0][..])
        );
    }
}

#[test]
fn a_kernel_that_fails_ends_its_request() {
    let stub = Stub::new();
    let mut maker = Maker::new(1);
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    maker.launch("roots", vec![call("root", &[Buffer::Output(0), Buffer::Input(0)], &[])], &[x], &[y]);
    maker.output("y", y);
    let runtime = maker.load(&stub, Options::default()).unwrap();
    for _ in 0..2 {
        let text = ask(&runtime, -1.0).unwrap_err().to_string();
        assert_eq!(text, "stage 'roots' failed: an operand has a value that the operator is not defined for");
        assert_eq!(ask(&runtime, 3.0).unwrap(), [9.0; SIZE as usize]);
    }
}

#[test]
fn a_gpu_that_is_lost_says_so() {
    let stub = Stub::new();
    let runtime = scale_and_add(1).load(&stub, Options::default()).unwrap();
    assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
    stub.state.lock().crashes = Some("add".to_owned());
    let expected = "value 'y' did not get from 'gpu0' to 'cpu0': an illegal memory access was encountered in stage 'main'; CUDA \
                    does nothing more on this GPU in this process: start it again";
    assert_eq!(ask(&runtime, 1.0).unwrap_err().to_string(), expected);
    assert!(ask(&runtime, 1.0).unwrap_err().to_string().contains("an illegal memory access was encountered"));
}

#[test]
fn code_runs_on_newer_architectures() {
    assert!(runs("sm_90", 90) && runs("sm_80", 90) && runs("sm_90", 120) && runs("sm_90a", 90));
    assert!(!runs("sm_90", 80) && !runs("sm_90a", 100) && !runs("gfx90", 90) && !runs("sm_", 90));
}

#[test]
fn the_real_driver_is_found_or_missed() {
    if let Err(fault) = Cuda.count() {
        assert!(matches!(&fault, Fault::Driver(text) if text.contains("driver")), "{fault}");
    }
}

#[test]
fn machines_that_cannot_run_it_are_told() {
    let refused = |stub: &Stub| scale_and_add(1).refusal(stub);
    let expected = |reason: &str| {
        format!(
            "the bundle needs the CUDA device 'gpu0' (sm_90), and {reason}: plan for a system of CPUs, as --system=cpu-2"
        )
    };
    let none = "this machine has no CUDA driver (libcuda.so.1)";
    assert_eq!(refused(&Stub { refusal: Some(none.into()), ..Stub::new() }), expected(none));
    assert_eq!(refused(&Stub { count: 0, ..Stub::new() }), expected("this machine has 0 GPUs"));
    let old = Stub { capability: (8, 0), ..Stub::new() };
    assert_eq!(refused(&old), expected("this machine's stub is sm_80"));
    assert!(scale_and_add(1).load(&Stub { capability: (10, 0), ..Stub::new() }, Options::default()).is_ok());
}

#[test]
fn what_does_not_fit_is_named() {
    let stub = Stub::new();
    stub.state.lock().free = 2000;
    let text = scale_and_add(0).refusal(&stub);
    assert!(text.starts_with("there is not enough memory for the arena of 'gpu0' (stub, "), "{text}");
    assert!(text.ends_with(" bytes free): it takes 4096 bytes"), "{text}");
    assert_eq!(stub.pieces(), 0);
}

#[test]
fn code_that_cannot_be_loaded() {
    let mut maker = scale_and_add(0);
    maker.ptx = "nonsense";
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: stub: a PTX JIT compilation failed: line 1; fatal: \
                    unexpected end";
    assert_eq!(maker.refusal(&Stub::new()), expected);
    let mut maker = scale_and_add(0);
    maker.bundle.stages[0].calls[0].kernel = "divide".into();
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: it has no kernel 'divide'";
    assert_eq!(maker.refusal(&Stub::new()), expected);
}

#[test]
fn launches_that_make_no_sense() {
    type Change = fn(&mut Launch);
    let cases: [(Change, &str); 6] = [
        (|it| it.blocks = 0, "0 blocks of 32 threads"),
        (|it| it.threads = 2048, "1 blocks of 2048 threads"),
        (|it| it.after = vec![0], "it comes after call 0, which is not before it"),
        (
            |it| it.library = by(Library::Product(square(9))),
            "the library's buffer 0 has 324 bytes, more than the 64 there are",
        ),
        (
            |it| {
                let product = crate::bundle::Product { has_bias: true, epilogue: Epilogue::Relu, ..square(4) };
                it.library = by(Library::Product(product));
            },
            "it has 3 buffers, and the library 4",
        ),
        (
            |it| {
                let [input, filters, output] = [[1, 4, 2, 2], [2, 3, 1, 1], [1, 2, 2, 2]];
                let convolution = Convolution {
                    input,
                    filters,
                    output,
                    image_strides: [16, 8, 8],
                    padding: [0, 0],
                    strides: [1, 1],
                    dilations: [1, 1],
                    groups: 1,
                    has_residual: false,
                    epilogue: Epilogue::None,
                };
                it.library = by(Library::Convolution(convolution));
            },
            "the library's filters [2, 3, 1, 1] do not lead from [1, 4, 2, 2] to [1, 2, 2, 2] in 1 groups",
        ),
    ];
    for (change, expected) in cases {
        let mut maker = product();
        change(maker.bundle.stages[0].calls[0].launch.as_mut().unwrap());
        maker.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
        assert_eq!(maker.bundle.validate().unwrap_err(), format!("stage 'main': kernel 'product': {expected}"));
    }
    let mut maker = product();
    maker.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
    maker.bundle.stages[0].calls[0].launch = None;
    assert_eq!(
        maker.bundle.validate().unwrap_err(),
        "stage 'main': kernel 'product': it does not say how a GPU runs it"
    );
    let mut maker = product();
    assert_eq!(maker.bundle.validate().unwrap_err(), "the code 'sm_90.ptx' is not one of the files of the bundle");
    maker.bundle.gpus.clear();
    assert_eq!(maker.bundle.validate().unwrap_err(), "there is no code for 'sm_90', which device 'gpu0' is");
}
