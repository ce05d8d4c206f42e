use super::streamed_outputs;
use crate::{
    Options, Program, StageProgram, Target,
    bundle::write,
    graph::{Graph, Id},
    program::tensor,
};
use divi_cost::device;
use divi_onnx::{Attr, DType, Tensor};
use divi_runtime::{
    Runtime, TensorData,
    bundle::{self, Action, Device, Layout, Mode, Objective, Port, Step, Task, Value},
};
use std::{fs, path::Path};

const IMAGE: [i64; 4] = [1, 3, 9, 11];

fn conv(graph: &mut Graph, x: Id, filters: i64, kernel: i64) -> Id {
    let [n, channels, h, w] = <[i64; 4]>::try_from(&graph.values[x.0].shape[..]).unwrap();
    let shape = vec![filters, channels, kernel, kernel];
    let numbers = (0..shape.iter().product()).map(|i: i64| ((i * 37 % 101) as f32 - 50.0) / 100.0);
    let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
    let weights = graph.constant(Tensor::new(DType::F32, shape, bytes.into()).unwrap());
    let attributes = [("kernel_shape", Attr::Ints(vec![kernel; 2])), ("pads", Attr::Ints(vec![kernel / 2; 4]))];
    graph.apply("Conv", &[x, weights], &attributes, DType::F32, &[n, filters, h, w])
}

/// Adds two convolutions. Returns the result of the first, and the concatenation of both.
fn front(graph: &mut Graph, x: Id) -> [Id; 2] {
    let a = conv(graph, x, 40, 3);
    let b = conv(graph, a, 20, 1);
    let both = graph.apply("Concat", &[a, b], &[("axis", Attr::Int(1))], DType::F32, &[1, 60, 9, 11]);
    [a, both]
}

/// Adds a convolution, a max pooling, and a cumulative sum, whose kernel reads row-major operands.
fn back(graph: &mut Graph, [a, both]: [Id; 2]) -> [Id; 3] {
    let d = conv(graph, a, 24, 3);
    let window = [("kernel_shape", Attr::Ints(vec![3, 3])), ("pads", Attr::Ints(vec![1; 4]))];
    let e = graph.apply("MaxPoolSingleOut", &[both], &window, DType::F32, &[1, 60, 9, 11]);
    let f = graph.apply("CumSum", &[a], &[], DType::F32, &[1, 40, 9, 11]);
    let axis = graph.constant(Tensor::new(DType::I64, vec![], 3_i64.to_le_bytes().to_vec().into()).unwrap());
    graph.nodes.last_mut().unwrap().inputs.push(Some(axis));
    [d, e, f]
}

fn stage(name: &str, device: usize, graph: Graph) -> StageProgram {
    StageProgram { name: name.into(), device, graph, tasks: vec![Task { name: name.into(), ..Task::default() }] }
}

/// Returns a program of a chain of stages, each on its own device: all outputs of a stage are transferred to the next one.
fn program(stages: Vec<StageProgram>) -> Program {
    let device =
        |i| Device { id: format!("cpu{i}"), kind: "cpu".into(), threads: 1, memory: 1 << 30, ..Device::default() };
    let mut values = vec![];
    let mut value = |graph: &Graph, id: Id, device| {
        let tensor = tensor(&graph.values[id.0]);
        values.push(Value { name: format!("v{}", values.len()), device, tensor, constant: None });
        values.len() - 1
    };
    let step = Step::from;
    let input = value(&stages[0].graph, stages[0].graph.inputs[0], 0);
    let (mut steps, mut results) = (vec![], vec![input]);
    for (i, stage) in stages.iter().enumerate() {
        let transferred = stage.graph.inputs.iter().zip(&results).map(|(&id, &from)| {
            if i == 0 {
                return from;
            }
            let to = value(&stage.graph, id, i);
            steps.push(step(Action::Transfer { input: from, output: to }));
            to
        });
        let inputs: Vec<_> = transferred.collect();
        let outputs: Vec<_> = stage.graph.outputs.iter().map(|&id| value(&stage.graph, id, i)).collect();
        steps.push(step(Action::Launch { stage: i, inputs, outputs: outputs.clone() }));
        results = outputs;
    }
    Program {
        model: "boundary".into(),
        objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
        devices: (0..stages.len()).map(device).collect(),
        values,
        inputs: vec![Port { name: "x".into(), value: input }],
        task_results: vec![],
        outputs: results.iter().enumerate().map(|(i, &value)| Port { name: format!("y{i}"), value }).collect(),
        stages,
        steps,
        constants: vec![],
    }
}

/// Returns the outputs of a program, and the descriptions of its values in the bundle.
fn outcome(program: Program, name: &str) -> (Vec<Vec<f32>>, Vec<bundle::Tensor>) {
    let folder = std::env::temp_dir().join(format!("divi-boundary-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let target = Target::named("x86-64-v3").unwrap();
    let model_folder = String::new();
    let options = Options { target, weights_folder: Path::new(""), refer: &|_| None, model_folder };
    write(program, vec![], &folder, &options).unwrap();
    let runtime = Runtime::load(&folder, divi_runtime::Options::default()).unwrap();
    let shape = IMAGE.map(|size| size as u64);
    let numbers: Vec<f32> = (0..IMAGE.iter().product()).map(|i: i64| (i % 17) as f32 - 8.0).collect();
    let image = TensorData::from_f32(&shape, &numbers).unwrap();
    let outputs = runtime.run(&[("x", image.view())]).unwrap();
    let tensors = runtime.bundle().values.iter().map(|value| value.tensor.clone()).collect();
    fs::remove_dir_all(&folder).unwrap();
    (outputs.iter().map(|(_, tensor)| tensor.to_f32().unwrap()).collect(), tensors)
}

#[test]
fn images_stay_blocked_between_stages() {
    let mut whole = Graph::default();
    let x = whole.input(DType::F32, &IMAGE);
    let between = front(&mut whole, x);
    whole.outputs = back(&mut whole, between).to_vec();
    let (expected, tensors) = outcome(program(vec![stage("whole", 0, whole)]), "whole");
    assert!(tensors.iter().all(|tensor| tensor.layout.is_row_major()), "inputs and outputs are dense: {tensors:?}");

    let (mut first, mut second) = (Graph::default(), Graph::default());
    let x = first.input(DType::F32, &IMAGE);
    let between = front(&mut first, x);
    first.outputs = between.to_vec();
    let inputs = between.map(|id| second.input(DType::F32, &first.values[id.0].shape));
    second.outputs = back(&mut second, inputs).to_vec();
    let (outputs, tensors) = outcome(program(vec![stage("first", 0, first), stage("second", 1, second)]), "halves");
    assert_eq!(outputs, expected);
    // Both values, and their copies on the other device.
    let blocked = tensors.iter().filter_map(|tensor| match tensor.layout {
        Layout::Nchwc(layout) => Some((tensor.shape[1], layout.block)),
        Layout::RowMajor => None,
    });
    assert_eq!(blocked.collect::<Vec<_>>(), [(40, 8), (60, 8), (40, 8), (60, 8)]);
}

/// Outputs are streamed only if all uses are transfers to a GPU.
#[test]
fn outputs_that_only_gpus_read_are_streamed() {
    let mut stages = vec![];
    let mut results: Vec<Vec<i64>> = vec![IMAGE.to_vec()];
    for (i, outputs) in [3, 2, 1].into_iter().enumerate() {
        let mut graph = Graph::default();
        let inputs: Vec<_> = results.iter().map(|shape| graph.input(DType::F32, shape)).collect();
        let shape = graph.values[inputs[0].0].shape.clone();
        graph.outputs = (0..outputs).map(|_| graph.apply("Relu", &[inputs[0]], &[], DType::F32, &shape)).collect();
        results = vec![shape; outputs];
        stages.push(stage(&format!("stage {i}"), i, graph));
    }
    let mut program = program(stages);
    assert_eq!(streamed(&program), [vec![false; 3], vec![false; 2], vec![false]]);
    program.devices[1].kind = "cuda".into();
    assert_eq!(streamed(&program), [vec![true; 3], vec![false; 2], vec![false]]);
    let of_first = program.steps.iter().find_map(|step| match &step.action {
        Action::Launch { stage: 0, outputs, .. } => Some(outputs.clone()),
        _ => None,
    });
    let [output, copied, sliced] = of_first.unwrap()[..] else { panic!("the first stage has three outputs") };
    let more = |program: &mut Program, device| {
        let tensor = program.values[sliced].tensor.clone();
        program.values.push(Value { name: "more".into(), device, tensor, constant: None });
        program.values.len() - 1
    };
    let step = Step::from;
    let (there, part) = (more(&mut program, 1), more(&mut program, 0));
    program.steps.push(step(Action::Transfer { input: copied, output: there }));
    let positions = vec![0];
    program.steps.push(step(Action::Slice { input: sliced, output: part, positions, of: 1, axis: 0, outer: 1 }));
    program.outputs.push(Port { name: "also".into(), value: output });
    assert_eq!(streamed(&program)[0], [false, true, false]);
    // A second launch of the same stage, whose outputs a CPU reads.
    let outputs = [0; 3].map(|device| more(&mut program, device));
    let elsewhere = more(&mut program, 2);
    program.steps.push(step(Action::Launch { stage: 0, inputs: vec![0], outputs: outputs.to_vec() }));
    program.steps.push(step(Action::Transfer { input: outputs[1], output: elsewhere }));
    assert_eq!(streamed(&program)[0], [false; 3]);
}

fn streamed(program: &Program) -> Vec<Vec<bool>> {
    streamed_outputs(program, &|device| device::find(&program.devices[device].kind).unwrap().memory())
}
