//! Bundles and helpers for these tests.

use crate::{
    DType, Error, Options, Runtime, TensorData,
    bundle::{
        Action, Buffer, Bundle, Call, Constant, Device, FORMAT, File, Layout, Mode, Objective, Port, Source, Stage,
        Step, Task, Tensor, Value,
    },
    drivers::{
        Drivers,
        cuda::{
            CudaDriver, SIGNATURE_COMMENT, Target,
            launch::{Launch, LibraryCall, LibraryOp},
            stub::{Stub, square},
        },
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

pub(super) const SIZE: u64 = 16;

/// Builder of a bundle, with the folder that it is written to.
pub(super) struct BundleBuilder {
    pub(super) bundle: Bundle,
    pub(super) folder: PathBuf,
    pub(super) ptx: &'static str,
}

impl Drop for BundleBuilder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn floats(shape: &[u64]) -> Tensor {
    let bytes = shape.iter().product::<u64>() * 4;
    Tensor { dtype: "float".into(), shape: shape.to_vec(), bytes, layout: Layout::RowMajor }
}

pub(super) fn call(kernel: &str, buffers: &[Buffer], after: &[usize]) -> Call {
    let can_fail = kernel == "root";
    let payload = Launch { blocks: 1, threads: 32, can_fail, then: vec![], library: None }.to_payload();
    let (kernel, buffers) = (kernel.to_owned(), buffers.to_vec());
    let bytes = buffers.iter().map(|buffer| if matches!(buffer, Buffer::Constant(_)) { 4 } else { SIZE * 4 }).collect();
    // Kernels write their first buffer, except for products, which write the last one.
    let writes = vec![if kernel == "product" { buffers.len() - 1 } else { 0 }];
    Call { kernel, buffers, bytes, writes, extent: SIZE as i64, grain: 1, task: 0, after: after.to_vec(), payload }
}

impl BundleBuilder {
    /// Builds a bundle for `gpus` GPUs, followed by a CPU.
    pub(super) fn new(gpus: usize) -> Self {
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
            executables: vec![Target { arch: "sm_90".into() }.executable("sm_90.ptx".into())],
            objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
            devices: (0..gpus).map(gpu).chain([cpu]).collect(),
            files: vec![],
            model_folder: String::new(),
            model_files: vec![],
            values: vec![],
            inputs: vec![],
            outputs: vec![],
            task_results: vec![],
            constants: vec![],
            prepare: vec![],
            prepare_executable: None,
            stages: vec![],
            steps: vec![],
            losses: vec![],
            sha256: String::new(),
            lacks_extents: false,
        };
        Self { bundle, folder, ptx: "// PTX" }
    }

    pub(super) fn value(&mut self, name: &str, device: usize) -> usize {
        self.bundle.values.push(Value { name: name.into(), device, tensor: floats(&[SIZE]), constant: None });
        self.bundle.values.len() - 1
    }

    pub(super) fn input(&mut self, name: &str, device: usize) -> usize {
        let value = self.value(name, device);
        self.bundle.inputs.push(Port { name: name.into(), value });
        value
    }

    pub(super) fn output(&mut self, name: &str, value: usize) {
        self.bundle.outputs.push(Port { name: name.into(), value });
    }

    pub(super) fn constant(&mut self, number: f32) -> usize {
        let digits = number.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.bundle.constants.push(Constant {
            bytes: 4,
            source: Source::Evaluated(Expression::Bytes(digits)),
            crc32: None,
        });
        self.bundle.constants.len() - 1
    }

    pub(super) fn step(&mut self, action: Action) {
        self.bundle.steps.push(Step::from(action));
    }

    pub(super) fn transfer(&mut self, input: usize, device: usize) -> usize {
        self.transfer_of(input, device, &[SIZE])
    }

    pub(super) fn transfer_of(&mut self, input: usize, device: usize, shape: &[u64]) -> usize {
        let name = format!("{} on {device}", self.bundle.values[input].name);
        let output = self.value(&name, device);
        self.bundle.values[output].tensor = floats(shape);
        self.step(Action::Transfer { input, output });
        output
    }

    pub(super) fn launch(&mut self, name: &str, calls: Vec<Call>, inputs: &[usize], outputs: &[usize]) {
        let tensor = |&value: &usize| self.bundle.values[value].tensor.clone();
        let tasks = calls.iter().map(|call| call.task).max().unwrap_or(0) + 1;
        let task = |index| Task { name: format!("{name} {index}"), ..Task::default() };
        self.bundle.stages.push(Stage {
            constants: vec![],
            name: name.into(),
            device: self.bundle.values[outputs[0]].device,
            executable: 0,
            payload: Default::default(),
            arena: 4096,
            inputs: inputs.iter().map(tensor).collect(),
            outputs: outputs.iter().map(tensor).collect(),
            tasks: (0..tasks).map(task).collect(),
            calls,
        });
        let stage = self.bundle.stages.len() - 1;
        self.step(Action::Launch { stage, inputs: inputs.to_vec(), outputs: outputs.to_vec() });
    }

    pub(super) fn load(&mut self, stub: &Stub, options: Options) -> Result<Runtime, Error> {
        let calls = self.bundle.stages.iter().flat_map(|stage| &stage.calls);
        let signatures = calls.flat_map(|call| Launch::of(call).unwrap().signatures(call));
        let comments = signatures.map(|line| format!("{SIGNATURE_COMMENT}{line}\n"));
        fs::write(self.folder.join("sm_90.ptx"), self.ptx.to_owned() + "\n" + &comments.collect::<String>()).unwrap();
        self.bundle.files = vec![File::of(&self.folder, "sm_90.ptx").unwrap()];
        self.bundle.write(&self.folder).unwrap();
        let driver = Arc::new(CudaDriver { api: Arc::new(stub.clone()) });
        Runtime::load(&self.folder, Options { drivers: Drivers::default().with(driver), ..options })
    }

    pub(super) fn load_error(&mut self, stub: &Stub) -> String {
        let error = self.load(stub, Options::default()).err().unwrap().to_string();
        error.replace(self.folder.to_str().unwrap(), "FOLDER")
    }
}

/// Builds `y = x * 3 + x` on the GPU, with the input and output on the device `ports`.
pub(super) fn scale_and_add(ports: usize) -> BundleBuilder {
    let mut builder = BundleBuilder::new(1);
    let three = builder.constant(3.0);
    let mut x = builder.input("x", ports);
    if ports != 0 {
        x = builder.transfer(x, 0);
    }
    let mut y = builder.value("y", 0);
    let calls = vec![
        call("scale", &[Buffer::Arena(64), Buffer::Input(0), Buffer::Constant(three)], &[]),
        call("add", &[Buffer::Output(0), Buffer::Arena(64), Buffer::Input(0)], &[0]),
    ];
    builder.launch("main", calls, &[x], &[y]);
    if ports != 0 {
        y = builder.transfer(y, ports);
    }
    builder.output("y", y);
    builder
}

pub(super) fn full(number: f32) -> TensorData {
    TensorData::from_f32(&[SIZE], &[number; SIZE as usize]).unwrap()
}

pub(super) fn run_full(runtime: &Runtime, number: f32) -> Result<Vec<f32>, Error> {
    let outputs = runtime.run(&[("x", full(number).view())])?;
    assert_eq!(outputs[0].1.dtype(), DType::F32);
    Ok(outputs[0].1.to_f32().unwrap())
}

/// Builds `y = x * 3 * 3` in two stages on the GPU. If `by_host`, the value between them is transferred to the host and back.
pub(super) fn scale_twice(by_host: bool) -> BundleBuilder {
    let mut builder = BundleBuilder::new(1);
    let three = builder.constant(3.0);
    let scale = || vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(three)], &[])];
    let x = builder.input("x", 1);
    let (x, mut between, y) = (builder.transfer(x, 0), builder.value("between", 0), builder.value("y", 0));
    builder.launch("first", scale(), &[x], &[between]);
    if by_host {
        let here = builder.transfer(between, 1);
        between = builder.transfer(here, 0);
    }
    builder.launch("second", scale(), &[between], &[y]);
    let y = builder.transfer(y, 1);
    builder.output("y", y);
    builder
}

/// Changes the launch of a call.
pub(super) fn change(call: &mut Call, change: impl FnOnce(&mut Launch)) {
    let mut launch = Launch::of(call).unwrap();
    change(&mut launch);
    call.payload = launch.to_payload();
}

pub(super) fn by(computation: LibraryOp) -> Option<LibraryCall> {
    Some(LibraryCall { computation, then: vec![] })
}

/// Builds the matrix product `y = x * x`.
pub(super) fn product() -> BundleBuilder {
    let mut builder = BundleBuilder::new(1);
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let mut call = call("product", &[Buffer::Input(0), Buffer::Input(0), Buffer::Output(0)], &[]);
    change(&mut call, |launch| launch.library = by(LibraryOp::MatMul(square(4))));
    builder.launch("main", vec![call], &[x], &[y]);
    builder.output("y", y);
    builder
}
