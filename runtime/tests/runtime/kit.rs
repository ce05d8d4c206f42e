//! Bundles for tests: real ones, with kernels that `cc` compiles, put together piece by piece.

use divi_runtime::{
    DType, Options, TensorData,
    bundle::{
        Action, Buffer, Bundle, Call, Constant, Device, FORMAT, File, Layout, Mode, Objective, Port, Source, Stage,
        Step, Task, Tensor, Value,
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
/// As many numbers as most values have.
pub(crate) const SIZE: u64 = 64;

/// A folder of its own, which goes when it is dropped.
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

/// Small numbers from a seed.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Valgrind's tests say how many requests are enough for them.
pub(crate) fn is_under_valgrind() -> bool {
    std::env::var_os("DIVI_REQUESTS").is_some()
}

/// The default; but valgrind runs one thread at a time, and threads that poll would keep the others from running.
pub(crate) fn options() -> Options {
    Options { spin: is_under_valgrind().then_some(false), ..Options::default() }
}

/// The shared object, compiled once.
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

/// The numbers of an output.
pub(crate) fn numbers(outputs: &[(String, TensorData)], name: &str) -> Vec<f32> {
    let (_, tensor) = outputs.iter().find(|(known, _)| known == name).unwrap();
    assert_eq!(tensor.dtype(), DType::F32);
    tensor.to_f32().unwrap()
}

/// A call of one of the kernels, on `SIZE` numbers.
pub(crate) fn call(kernel: &str, buffers: &[Buffer]) -> Call {
    call_of(kernel, buffers, SIZE)
}

/// A call on some numbers. Kernels write their first buffer; `scale` reads one number of its last.
pub(crate) fn call_of(kernel: &str, buffers: &[Buffer], count: u64) -> Call {
    let mut bytes = vec![count * 4; buffers.len()];
    if let ("scale", Some(last)) = (kernel, bytes.last_mut()) {
        *last = 4;
    }
    let (kernel, buffers, extent) = (kernel.into(), buffers.to_vec(), count as i64);
    let (after, payload) = (vec![], Default::default());
    Call { kernel, buffers, bytes, writes: vec![0], extent, grain: 1, task: 0, after, payload }
}

/// The signatures of all calls that tests make, as text in C.
fn signatures() -> String {
    let mut text = format!("const char {SIGNATURES}[] =");
    for count in [4, 8, SIZE] {
        for (kernel, operands) in [("add", 3), ("scale", 3), ("slow", 2), ("root", 2)] {
            let line = cpu::signature(&call_of(kernel, &vec![Buffer::Arena(0); operands], count));
            text += &format!("\n  \"{line}\\n\"");
        }
    }
    text + ";\n"
}

/// A bundle that is being made.
pub(crate) struct Maker {
    pub(crate) bundle: Bundle,
    pub(crate) weights: Vec<u8>,
}

impl Maker {
    /// For devices with one thread each.
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
            constants: vec![],
            prepare: vec![],
            prepare_executable: None,
            stages: vec![],
            steps: vec![],
            sha256: String::new(),
            is_unchecked: false,
        };
        Self { bundle, weights: vec![] }
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

    /// A number in `weights.bin`.
    pub(crate) fn packed(&mut self, number: f32) -> usize {
        let offset = self.weights.len() as u64;
        self.weights.extend(number.to_le_bytes());
        self.weights.resize(self.weights.len().next_multiple_of(64), 0);
        self.constant(4, Source::Packed { offset })
    }

    /// Adds a stage with these calls, and a launch of it on these values.
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
        self.bundle.steps.push(Step { action, start_us: None, takes_us: None });
    }

    /// A copy of a value on another device.
    pub(crate) fn transfer(&mut self, input: usize, device: usize) -> usize {
        let name = format!("{} on {device}", self.bundle.values[input].name);
        let output = self.value_of(&name, device, self.bundle.values[input].tensor.clone());
        self.step(Action::Transfer { input, output });
        output
    }

    /// Writes the bundle into a folder.
    pub(crate) fn write(self) -> Folder {
        self.write_into(Folder::new())
    }

    /// Writes the bundle into a folder that has its model's files.
    pub(crate) fn write_into(mut self, folder: Folder) -> Folder {
        fs::write(folder.join(CODE), code()).unwrap();
        fs::write(folder.join("weights.bin"), &self.weights).unwrap();
        let described = |name| File::of(folder.path(), name).unwrap();
        self.bundle.files.extend([described(CODE), described("weights.bin")]);
        self.bundle.describe_contents(folder.path()).unwrap();
        self.bundle.write(folder.path()).unwrap();
        folder
    }
}

/// `y = x * 3 + x`, on one device.
pub(crate) fn scale_and_add() -> Maker {
    let mut maker = Maker::new(Mode::Latency, 1);
    let three = maker.packed(3.0);
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(64), Buffer::Input(0), Buffer::Constant(three)]),
        call("add", &[Buffer::Output(0), Buffer::Arena(64), Buffer::Input(0)]),
    ];
    maker.launch("main", calls, &[x], &[y]);
    maker.output("y", y);
    maker
}

/// `y = (x * 2) * 10`, the second half on a second device; each half is slow if so asked.
pub(crate) fn two_devices(mode: Mode, is_slow: bool) -> Maker {
    let mut maker = Maker::new(mode, 2);
    let (two, ten) = (maker.packed(2.0), maker.packed(10.0));
    let (x, half, whole) = (maker.input("x", 0), maker.value("half", 0), maker.value("whole", 1));
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
    maker.launch("first", calls(two), &[x], &[half]);
    let there = maker.transfer(half, 1);
    maker.launch("second", calls(ten), &[there], &[whole]);
    let back = maker.transfer(whole, 0);
    maker.output("y", back);
    maker
}
