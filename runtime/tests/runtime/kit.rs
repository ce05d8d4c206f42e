//! Builder of test bundles with kernels compiled by `cc`.

use divi_runtime::{
    DType, Options, TensorData,
    bundle::{
        Action, Buffer, Bundle, Call, Constant, Device, FORMAT, File, Layout, Loss, Mode, Objective, Port, Source,
        Stage, Step, Task, Tensor, Value,
    },
    drivers::cpu::{self, SIGNATURES, Target},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

pub(crate) const CODE: &str = "kernels.so";
/// Number of elements of most values.
pub(crate) const SIZE: u64 = 64;

/// Temporary folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("divi-runtime-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Linear congruential generator.
pub(crate) struct Lcg(pub(crate) u64);

impl Lcg {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Returns true if the tests run under valgrind, which limits the number of requests.
pub(crate) fn is_under_valgrind() -> bool {
    std::env::var_os("DIVI_REQUESTS").is_some()
}

/// Returns the default options, without spinning under valgrind, which runs one thread at a time.
pub(crate) fn options() -> Options {
    Options { spin: is_under_valgrind().then_some(false), ..Options::default() }
}

/// Returns the shared object, which is compiled once.
fn code() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let folder = Folder::new();
        fs::write(folder.join("kernels.c"), include_str!("kernels.c").to_owned() + &signatures()).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-g", "-o"]).args([folder.join(CODE), folder.join("kernels.c")]);
        let status = compiler.status().unwrap();
        assert!(status.success());
        fs::read(folder.join(CODE)).unwrap()
    })
}

pub(crate) fn floats(shape: &[u64]) -> Tensor {
    let bytes = shape.iter().product::<u64>() * 4;
    Tensor { dtype: "float".into(), shape: shape.to_vec(), bytes, layout: Layout::RowMajor }
}

pub(crate) fn tensor(numbers: &[f32]) -> TensorData {
    TensorData::from_f32(&[numbers.len() as u64], numbers).unwrap()
}

pub(crate) fn full(number: f32) -> TensorData {
    tensor(&[number; SIZE as usize])
}

/// Returns the elements of an output.
pub(crate) fn numbers(outputs: &[(String, TensorData)], name: &str) -> Vec<f32> {
    let (_, tensor) = outputs.iter().find(|(known, _)| known == name).unwrap();
    assert_eq!(tensor.dtype(), DType::F32);
    tensor.to_f32().unwrap()
}

/// Builds a call of a kernel on `SIZE` numbers.
pub(crate) fn call(kernel: &str, buffers: &[Buffer]) -> Call {
    call_of(kernel, buffers, SIZE)
}

/// Builds a call on `count` numbers. Kernels write their first buffer; `scale` reads one number of its last one.
pub(crate) fn call_of(kernel: &str, buffers: &[Buffer], count: u64) -> Call {
    let mut bytes = vec![count * 4; buffers.len()];
    if let ("scale", Some(last)) = (kernel, bytes.last_mut()) {
        *last = 4;
    }
    let (kernel, buffers, extent) = (kernel.into(), buffers.to_vec(), count as i64);
    let (after, payload) = (vec![], Default::default());
    Call { kernel, buffers, bytes, writes: vec![0], extent, grain: 1, task: 0, after, payload }
}

/// Returns the signatures of all calls in the tests, as a C definition.
fn signatures() -> String {
    let mut text = format!("const char {SIGNATURES}[] =");
    for count in [4, 8, SIZE / 2, SIZE, 4 * SIZE] {
        for (kernel, operands) in [("add", 3), ("scale", 3), ("slow", 2), ("root", 2)] {
            let line = cpu::signature(&call_of(kernel, &vec![Buffer::Arena(0); operands], count));
            text += &format!("\n  \"{line}\\n\"");
        }
    }
    text + ";\n"
}

/// Builder of a bundle.
pub(crate) struct BundleBuilder {
    pub(crate) bundle: Bundle,
    pub(crate) weights: Vec<u8>,
    /// Programs without a node, with the same weights.
    pub(crate) without: Vec<(usize, Self)>,
}

impl BundleBuilder {
    /// Builds a bundle for CPU devices with one thread each.
    pub(crate) fn new(mode: Mode, devices: usize) -> Self {
        let device = |index| Device {
            id: format!("cpu{index}"),
            kind: "cpu".into(),
            threads: 1,
            memory: 1 << 30,
            ..Device::default()
        };
        let bundle = Bundle {
            format: FORMAT.into(),
            model: "test".into(),
            executables: vec![Target { cpu: "x86-64-v3".into(), features: vec![] }.executable(CODE.into())],
            objective: Objective { mode, inputs: 1, predicted_us: None, bound_us: None },
            devices: (0..devices).map(device).collect(),
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
        Self { bundle, weights: vec![], without: vec![] }
    }

    pub(crate) fn value_of(&mut self, name: &str, device: usize, tensor: Tensor) -> usize {
        self.bundle.values.push(Value { name: name.into(), device, tensor, constant: None });
        self.bundle.values.len() - 1
    }

    pub(crate) fn value(&mut self, name: &str, device: usize) -> usize {
        self.value_of(name, device, floats(&[SIZE]))
    }

    pub(crate) fn input(&mut self, name: &str, device: usize) -> usize {
        let value = self.value(name, device);
        self.bundle.inputs.push(Port { name: name.into(), value });
        value
    }

    pub(crate) fn output(&mut self, name: &str, value: usize) {
        self.bundle.outputs.push(Port { name: name.into(), value });
    }

    pub(crate) fn constant(&mut self, bytes: u64, source: Source) -> usize {
        self.bundle.constants.push(Constant { bytes, source, crc32: None });
        self.bundle.constants.len() - 1
    }

    /// Adds a constant in `weights.bin`.
    pub(crate) fn packed(&mut self, number: f32) -> usize {
        let offset = self.weights.len() as u64;
        self.weights.extend(number.to_le_bytes());
        self.weights.resize(self.weights.len().next_multiple_of(64), 0);
        self.constant(4, Source::Packed { offset })
    }

    /// Adds a stage and a launch of it.
    pub(crate) fn launch(&mut self, name: &str, calls: Vec<Call>, inputs: &[usize], outputs: &[usize]) {
        let tensor = |&value: &usize| self.bundle.values[value].tensor.clone();
        let stage = Stage {
            constants: vec![],
            name: name.into(),
            device: self.bundle.values[outputs[0]].device,
            executable: 0,
            payload: Default::default(),
            arena: 4096,
            inputs: inputs.iter().map(tensor).collect(),
            outputs: outputs.iter().map(tensor).collect(),
            tasks: vec![Task { name: format!("{name} task"), predicted_us: Some(5.0), ..Task::default() }],
            calls,
        };
        self.bundle.stages.push(stage);
        let stage = self.bundle.stages.len() - 1;
        self.step(Action::Launch { stage, inputs: inputs.to_vec(), outputs: outputs.to_vec() });
    }

    pub(crate) fn step(&mut self, action: Action) {
        self.bundle.steps.push(Step::from(action));
    }

    /// Adds a transfer of a value to another device, and returns its result.
    pub(crate) fn transfer(&mut self, input: usize, device: usize) -> usize {
        let name = format!("{} on {device}", self.bundle.values[input].name);
        let output = self.value_of(&name, device, self.bundle.values[input].tensor.clone());
        self.step(Action::Transfer { input, output });
        output
    }

    /// Writes the bundle to a new folder.
    pub(crate) fn write(self) -> Folder {
        self.write_into(Folder::new())
    }

    /// Writes the bundle to a folder that contains its model's files.
    pub(crate) fn write_into(mut self, folder: Folder) -> Folder {
        fs::write(folder.join(CODE), code()).unwrap();
        fs::write(folder.join("weights.bin"), &self.weights).unwrap();
        let described = |name: &str| File::of(folder.path(), name).unwrap();
        self.bundle.files.extend([described(CODE), described("weights.bin")]);
        for (node, Self { mut bundle, weights, .. }) in self.without {
            assert_eq!(weights, self.weights);
            bundle.files.extend([described(CODE), described("weights.bin")]);
            bundle.describe_contents(folder.path()).unwrap();
            let file = bundle.write_without(folder.path(), node).unwrap();
            self.bundle.files.push(described(&file));
            self.bundle.losses.push(Loss { node, file: Some(file), reason: None });
        }
        self.bundle.describe_contents(folder.path()).unwrap();
        self.bundle.write(folder.path()).unwrap();
        folder
    }
}

/// Builds `y = x * 3 + x` on one device.
pub(crate) fn scale_and_add() -> BundleBuilder {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let three = builder.packed(3.0);
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(64), Buffer::Input(0), Buffer::Constant(three)]),
        call("add", &[Buffer::Output(0), Buffer::Arena(64), Buffer::Input(0)]),
    ];
    builder.launch("main", calls, &[x], &[y]);
    builder.output("y", y);
    builder
}

/// Builds `y = (x * 2) * 10`, with the second product on a second device. If `is_slow`, each stage takes at least 64 ms.
pub(crate) fn two_devices(mode: Mode, is_slow: bool) -> BundleBuilder {
    let mut builder = BundleBuilder::new(mode, 2);
    let (two, ten) = (builder.packed(2.0), builder.packed(10.0));
    let (x, half, whole) = (builder.input("x", 0), builder.value("half", 0), builder.value("whole", 1));
    let calls = |constant| {
        let mut calls = vec![
            call("slow", &[Buffer::Arena(0), Buffer::Input(0)]),
            call("scale", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Constant(constant)]),
        ];
        if !is_slow {
            calls[0] = call("add", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Arena(1024)]);
        }
        calls
    };
    builder.launch("first", calls(two), &[x], &[half]);
    let moved = builder.transfer(half, 1);
    builder.launch("second", calls(ten), &[moved], &[whole]);
    let back = builder.transfer(whole, 0);
    builder.output("y", back);
    builder
}
