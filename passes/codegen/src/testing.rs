//! Graphs for tests, compiled for this machine and run.

use crate::{
    cpu::CpuHooks,
    emit::Tiles,
    graph::{Constant, Graph, Id, Node, Value},
    half_precision,
    host::HostModule,
    kernels::Kernels,
    layout::StageLayouts,
    lowering::Lowered,
    machine_code,
    stage::{self, Boundary},
    target::Target,
};
use divi_onnx::{Attr, Attributes, DType, Op, Tensor};
use divi_runtime::{
    bundle::{Buffer, Call},
    prepare::Expression,
};
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

type Kernel = unsafe extern "C" fn(*const *mut u8, i64, i64) -> i32;

impl Graph {
    pub(crate) fn value(&mut self, dtype: DType, shape: &[i64]) -> Id {
        self.values.push(Value { dtype, shape: shape.to_vec(), constant: None });
        Id(self.values.len() - 1)
    }

    pub(crate) fn input(&mut self, dtype: DType, shape: &[i64]) -> Id {
        let id = self.value(dtype, shape);
        self.inputs.push(id);
        id
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, tensor: Tensor) -> Id {
        let id = self.value(tensor.dtype(), tensor.dims());
        self.values[id.0].constant = Some(Constant { source: Expression::bytes(tensor.bytes()), tensor: Some(tensor) });
        id
    }

    /// Adds a node with one result of the given type. Returns the result.
    pub(crate) fn apply(
        &mut self,
        op: &str,
        inputs: &[Id],
        attributes: &[(&str, Attr)],
        dtype: DType,
        shape: &[i64],
    ) -> Id {
        let output = self.value(dtype, shape);
        let attributes: Attributes = attributes.iter().map(|(name, attr)| (*name, attr.clone())).collect();
        self.nodes.push(Node {
            op: Op::from_name(op).expect("the table has the operator"),
            name: format!("node {}", self.nodes.len()),
            attributes,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![Some(output)],
            task: 0,
        });
        output
    }

    pub(crate) fn set_dtype(&mut self, id: Id, dtype: DType) {
        self.values[id.0].dtype = dtype;
    }

    /// Compiles and runs the graph. Each kernel is called in pieces, as the runtime's workers do.
    pub(crate) fn run(&self, cpu: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        self.run_on(&Target::named(cpu).unwrap(), &|_| {}, inputs)
    }

    /// As [`Self::run`], with emulated tile registers.
    pub(crate) fn run_with_emulated_tiles(&self, cpu: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        self.run_on(&Target::named(cpu).unwrap(), &|kernels| kernels.set_tiles(Tiles::Emulated), inputs)
    }

    /// As [`Self::run`], without the C library, like kernels of GPUs.
    pub(crate) fn run_without_library(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        self.run_on(&Target::named("x86-64-v3").unwrap(), &|kernels| kernels.has_library = false, inputs)
    }

    /// As [`Self::run`], on a device without memory for more than what the model needs.
    pub(crate) fn run_without_spare_memory(&self, cpu: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        self.run_on(&Target::named(cpu).unwrap(), &|kernels| kernels.has_spare_memory = false, inputs)
    }

    fn run_on(&self, target: &Target, set: &dyn Fn(&mut Kernels), inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let layouts = StageLayouts::row_major(self.inputs.len(), self.outputs.len());
        let boundary = Boundary { layouts: &layouts, is_streamed: &vec![false; self.outputs.len()] };
        let sizes = self.outputs.iter().map(|id| self.values[id.0].bytes() as usize);
        let lower = |host: &mut HostModule| {
            set(&mut host.kernels);
            let lowered = stage::lower(self.clone(), boundary, &CpuHooks, host, None);
            lowered.map(|stage| stage.calls).map_err(|error| error.to_string())
        };
        let inputs: Vec<&[u8]> = inputs.iter().map(|tensor| &tensor.bytes()[..]).collect();
        let outputs = run(target, half_precision::has_bf16(self), lower, &inputs, &sizes.collect::<Vec<_>>())?;
        let tensors = self.outputs.iter().zip(outputs).map(|(id, bytes)| {
            let Value { dtype, shape, .. } = &self.values[id.0];
            Tensor::new(*dtype, shape.clone(), bytes.into()).unwrap()
        });
        Ok(tensors.collect())
    }
}

/// Compiles and runs a stage that `lower` lowers for a CPU. Returns the bytes of its outputs, whose sizes are `outputs`.
pub(crate) fn run(
    target: &Target,
    has_bf16: bool,
    lower: impl FnOnce(&mut HostModule) -> Result<Lowered, String>,
    inputs: &[&[u8]],
    outputs: &[usize],
) -> Result<Vec<Vec<u8>>, String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("divi-codegen-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut host = HostModule::new(target, has_bf16);
    let outcome = lower(&mut host).and_then(|lowered| run_in(&folder, target, &mut host, &lowered, inputs, outputs));
    fs::remove_dir_all(&folder).unwrap();
    outcome
}

fn run_in(
    folder: &Path,
    target: &Target,
    host: &mut HostModule,
    lowered: &Lowered,
    inputs: &[&[u8]],
    outputs: &[usize],
) -> Result<Vec<Vec<u8>>, String> {
    let library = folder.join("kernels.so");
    let target = host.kernels.target(target);
    if target.features.iter().any(|feature| !divi_runtime::cpu::is_permitted(feature)) {
        return Err(format!("the operating system does not permit code for {}", target.cpu));
    }
    machine_code::compile(&mut host.kernels, &target, "", folder, &library).map_err(|error| error.to_string())?;
    let prepare = std::mem::take(&mut host.pool.load_calls);
    // SAFETY: the library contains kernels only, without initializers.
    let library = unsafe { libloading::Library::new(&library) }.map_err(|error| error.to_string())?;
    let mut constants: Vec<Aligned> = host.pool.evaluate()?.into_iter().map(|bytes| Aligned::of(&bytes)).collect();
    let mut inputs: Vec<Aligned> = inputs.iter().map(|bytes| Aligned::of(bytes)).collect();
    let mut outputs: Vec<Aligned> = outputs.iter().map(|&size| Aligned::of(&vec![0xee; size])).collect();
    let mut arena = Aligned::of(&vec![0xdd; lowered.arena as usize]);
    let mut run = |call: &Call| {
        let buffers = call.buffers.iter().map(|buffer| match *buffer {
            Buffer::Input(i) => inputs[i].pointer(0),
            Buffer::Output(i) => outputs[i].pointer(0),
            Buffer::Arena(offset) => arena.pointer(offset as usize),
            Buffer::Constant(i) => constants[i].pointer(0),
        });
        let buffers: Vec<_> = buffers.collect();
        // SAFETY: kernels have this type.
        let kernel: libloading::Symbol<'_, Kernel> = unsafe { library.get(&call.kernel) }.unwrap();
        let pieces = if call.extent >= 2 * call.grain { 2 } else { 1 };
        let middle = call.extent / pieces;
        // SAFETY: the buffers have the sizes that the kernel was compiled for.
        let run = |begin, end| unsafe { kernel(buffers.as_ptr(), begin, end) };
        let first = run(0, middle);
        first.max(run(middle, call.extent))
    };
    for call in prepare.iter().chain(&lowered.calls) {
        check_writes(call)?;
        let status = run(call);
        if status != 0 {
            return Err(format!("status {status}"));
        }
    }
    Ok(outputs.iter().map(|output| output.bytes().to_vec()).collect())
}

/// Checks that no buffer in the arena that a call writes overlaps another buffer of the call, which loaders reject.
fn check_writes(call: &Call) -> Result<(), String> {
    let range = |i: usize| match call.buffers[i] {
        Buffer::Arena(offset) => offset..offset + call.bytes[i],
        _ => 0..0,
    };
    for &written in &call.writes {
        for other in (0..call.buffers.len()).filter(|&other| other != written) {
            let (a, b) = (range(written), range(other));
            if a.start.max(b.start) < a.end.min(b.end) {
                return Err(format!("a kernel writes buffer {written} ({a:?}), which overlaps buffer {other} ({b:?})"));
            }
        }
    }
    Ok(())
}

/// Bytes with the alignment of the runtime's buffers.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn of(bytes: &[u8]) -> Self {
        let memory = vec![0; bytes.len() + 128];
        let start = memory.as_ptr().align_offset(64);
        let mut aligned = Self { memory, start, length: bytes.len() };
        aligned.memory[start..start + bytes.len()].copy_from_slice(bytes);
        aligned
    }

    fn pointer(&mut self, offset: usize) -> *mut u8 {
        self.memory[self.start + offset..].as_mut_ptr()
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

pub(crate) fn floats(shape: &[i64], values: &[f64]) -> Tensor {
    Tensor::from_floats(DType::F32, shape.to_vec(), values).unwrap()
}

pub(crate) fn ints(dtype: DType, shape: &[i64], values: &[i64]) -> Tensor {
    Tensor::from_ints(dtype, shape.to_vec(), values).unwrap()
}

/// Applies an operator to inputs followed by constants. Results have the given types. Asserts that the results for this machine and for
/// `x86-64-v3` agree.
pub(crate) fn evaluate(
    op: &str,
    inputs: &[Tensor],
    constants: &[Tensor],
    attributes: &[(&str, Attr)],
    results: &[(DType, &[i64])],
) -> Result<Vec<Tensor>, String> {
    let mut graph = Graph::default();
    let mut operands: Vec<_> = inputs.iter().map(|tensor| graph.input(tensor.dtype(), tensor.dims())).collect();
    operands.extend(constants.iter().map(|tensor| graph.constant(tensor.clone())));
    let outputs: Vec<_> = results.iter().map(|(dtype, shape)| graph.value(*dtype, shape)).collect();
    graph.nodes.push(Node {
        op: Op::from_name(op).expect("the table has the operator"),
        name: String::new(),
        attributes: attributes.iter().map(|(name, attr)| (*name, attr.clone())).collect(),
        inputs: operands.into_iter().map(Some).collect(),
        outputs: outputs.iter().copied().map(Some).collect(),
        task: 0,
    });
    graph.outputs = outputs;
    let (wide, narrow) = (graph.run("native", inputs)?, graph.run("x86-64-v3", inputs)?);
    assert_eq!(wide.len(), narrow.len());
    for (wide, narrow) in wide.iter().zip(&narrow) {
        match (wide.floats(), narrow.floats()) {
            (Some(a), Some(b)) => assert_close(&a, &b, if wide.dtype().bits() == 16 { 1e-2 } else { 1e-5 }),
            _ => assert_eq!(wide, narrow, "{op}"),
        }
    }
    Ok(wide)
}

/// Compares numbers with a mixed absolute and relative tolerance; NaN equals NaN.
#[track_caller]
pub(crate) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{found:?} against {expected:?}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let is_same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(is_same, "element {i} is {a}, not {b}: {found:?} against {expected:?}");
    }
}

#[test]
fn a_graph_is_compiled_and_run() {
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &[2, 3]);
    let y = graph.constant(floats(&[3], &[10.0, 20.0, 30.0]));
    let sum = graph.apply("Add", &[x, y], &[], DType::F32, &[2, 3]);
    let transposed = graph.apply("Transpose", &[sum], &[], DType::F32, &[3, 2]);
    let flat = graph.apply("Reshape", &[transposed], &[], DType::F32, &[6]);
    let relu = graph.apply("Relu", &[flat], &[], DType::F32, &[6]);
    graph.outputs = vec![relu, flat, x];
    for cpu in ["native", "x86-64-v3"] {
        let input = floats(&[2, 3], &[-100.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let outputs = graph.run(cpu, std::slice::from_ref(&input)).unwrap();
        assert_eq!(outputs[1].floats().unwrap(), [-90.0, 14.0, 22.0, 25.0, 33.0, 36.0]);
        assert_eq!(outputs[0].floats().unwrap(), [0.0, 14.0, 22.0, 25.0, 33.0, 36.0]);
        assert_eq!(outputs[2], input);
    }
}

#[test]
fn hot_functions_are_accurate() {
    let values: Vec<f64> = (-4000..4000).map(|i| f64::from(i) * 0.003).collect();
    type Reference = fn(f64) -> f64;
    let cases: [(&str, Reference); 3] =
        [("Exp", f64::exp), ("Tanh", f64::tanh), ("Sigmoid", |x| 1.0 / (1.0 + (-x).exp()))];
    for (op, reference) in cases {
        let mut graph = Graph::default();
        let x = graph.input(DType::F32, &[values.len() as i64]);
        let y = graph.apply(op, &[x], &[], DType::F32, &[values.len() as i64]);
        graph.outputs = vec![y];
        let input = floats(&[values.len() as i64], &values);
        let outputs = graph.run("native", std::slice::from_ref(&input)).unwrap();
        for (x, y) in input.floats().unwrap().into_iter().zip(outputs[0].floats().unwrap()) {
            let expected = reference(x);
            assert!((y - expected).abs() <= 6e-7 * expected.abs() + 1e-37, "{op}({x}) is {y}, not {expected}");
        }
    }
}
