use super::*;
use crate::bundle::{Constant, Executable, FORMAT, Layout, Mode, Objective, Stage, Tensor};

fn tensor() -> Tensor {
    Tensor { dtype: "float".into(), shape: vec![4], bytes: 16, layout: Layout::RowMajor }
}

fn call(buffers: Vec<Buffer>, writes: Vec<usize>) -> Call {
    let bytes = vec![16; buffers.len()];
    let (after, payload) = (vec![], serde_json::Value::Null);
    Call { kernel: "add".into(), buffers, bytes, writes, extent: 4, grain: 1, task: 0, after, payload }
}

/// Builds `y = (x + a) + b` with the second sum on a device of the second host. `b` is computed from `c`, and `d` is computed
/// for nothing. Each stage and `prepare` has its own code.
fn bundle() -> Bundle {
    let device =
        |node: usize| Device { id: format!("cpu{node}"), kind: "cpu".into(), node: Some(node), ..Device::default() };
    let value = |name: &str, device: usize| Value { name: name.into(), device, tensor: tensor(), constant: None };
    let constant = |source: Source| Constant { bytes: 16, source, crc32: None };
    let stage = |device: usize, constant: usize| Stage {
        name: format!("stage{device}"),
        device,
        executable: device,
        payload: serde_json::Value::Null,
        constants: vec![],
        arena: 0,
        inputs: vec![tensor()],
        outputs: vec![tensor()],
        tasks: vec![],
        calls: vec![call(vec![Buffer::Output(0), Buffer::Input(0), Buffer::Constant(constant)], vec![0])],
    };
    let executable =
        |file: &str| Executable { format: "elf-x86-64".into(), file: file.into(), target: Default::default() };
    let launch = |stage, input, output| Action::Launch { stage, inputs: vec![input], outputs: vec![output] };
    let packed = |offset| constant(Source::Packed { offset });
    Bundle {
        format: FORMAT.into(),
        model: "test".into(),
        executables: vec![executable("first.so"), executable("second.so"), executable("prepare.so")],
        objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
        devices: vec![device(0), device(1)],
        files: vec![],
        model_folder: String::new(),
        model_files: vec![],
        values: vec![value("x", 0), value("s", 0), value("s there", 1), value("t", 1), value("t back", 0)],
        inputs: vec![Port { name: "x".into(), value: 0 }],
        outputs: vec![Port { name: "y".into(), value: 4 }],
        task_results: vec![],
        // a, d, b, c
        constants: vec![packed(0), constant(Source::Computed), constant(Source::Computed), packed(64)],
        prepare: vec![
            call(vec![Buffer::Constant(1), Buffer::Constant(0)], vec![0]),
            call(vec![Buffer::Constant(2), Buffer::Constant(3)], vec![0]),
        ],
        prepare_executable: Some(2),
        stages: vec![stage(0, 0), stage(1, 2)],
        steps: [
            launch(0, 0, 1),
            Action::Transfer { input: 1, output: 2 },
            launch(1, 2, 3),
            Action::Transfer { input: 3, output: 4 },
        ]
        .map(Step::from)
        .into(),
        losses: vec![],
        sha256: String::new(),
        lacks_extents: false,
    }
}

fn actions(part: &HostPart) -> Vec<Action> {
    part.bundle.steps.iter().map(|step| step.action.clone()).collect()
}

#[test]
fn the_first_host_has_the_ports() {
    let part = bundle().part(0, &[true, true]);
    let names: Vec<&str> = part.bundle.values.iter().map(|value| &value.name[..]).collect();
    assert_eq!(names, ["x", "s", "t back"]);
    assert_eq!((part.bundle.inputs[0].value, part.bundle.outputs[0].value), (0, 2));
    let expected = [
        Action::Launch { stage: 0, inputs: vec![0], outputs: vec![1] },
        Action::Send { input: 1, to: 1, message: 0 },
        Action::Receive { output: 2, from: 1, message: 1 },
    ];
    assert_eq!(actions(&part), expected);
    assert_eq!(part.steps, [0, 1, 3]);
    assert_eq!(part.messages, [Message { from: 0, to: 1 }, Message { from: 1, to: 0 }]);
    // No constant of this host is computed.
    assert_eq!(part.bundle.constants, [bundle().constants[0].clone()]);
    assert_eq!((part.bundle.prepare.len(), part.bundle.prepare_executable), (0, None));
    assert_eq!(part.bundle.executables, [bundle().executables[0].clone()]);
}

#[test]
fn a_host_has_the_constants_and_code_that_it_uses() {
    let part = bundle().part(1, &[true, true]);
    assert!(part.bundle.inputs.is_empty() && part.bundle.outputs.is_empty());
    let stage = &part.bundle.stages[0];
    assert_eq!((part.bundle.stages.len(), stage.device, stage.executable), (1, 0, 0));
    // b and c, from which it is computed.
    assert_eq!(part.bundle.constants, bundle().constants[2..]);
    assert_eq!(stage.calls[0].buffers[2], Buffer::Constant(0));
    assert_eq!(part.bundle.prepare.len(), 1);
    assert_eq!(part.bundle.prepare[0].buffers, [Buffer::Constant(0), Buffer::Constant(1)]);
    let files: Vec<&str> = part.bundle.executables.iter().map(|executable| &executable.file[..]).collect();
    assert_eq!((files, part.bundle.prepare_executable), (vec!["second.so", "prepare.so"], Some(1)));
}

#[test]
fn values_in_device_memory_are_staged() {
    let part = bundle().part(1, &[true, false]);
    // The only device is not in host memory, so one is added.
    assert_eq!((part.bundle.devices.len(), &part.bundle.devices[1].id[..]), (2, "host1"));
    let expected = [
        Action::Receive { output: 2, from: 0, message: 0 },
        Action::Transfer { input: 2, output: 0 },
        Action::Launch { stage: 0, inputs: vec![0], outputs: vec![1] },
        Action::Transfer { input: 1, output: 3 },
        Action::Send { input: 3, to: 0, message: 1 },
    ];
    assert_eq!(actions(&part), expected);
    assert_eq!(part.steps, [1, 1, 2, 3, 3]);
    assert_eq!(part.bundle.values[2].device, 1);
}

#[test]
fn hosts_must_be_numbered_without_gaps() {
    let error = |nodes: [Option<usize>; 2]| {
        let mut bundle = bundle();
        bundle.devices.iter_mut().zip(nodes).for_each(|(device, node)| device.node = node);
        bundle.validate_hosts()
    };
    assert_eq!(error([Some(0), Some(1)]), Ok(()));
    assert_eq!(error([None, None]), Ok(()));
    assert_eq!(error([Some(0), None]), Err("device 'cpu1' belongs to no node, and other devices do".into()));
    assert_eq!(error([Some(1), Some(1)]), Err("node 0 has no device, and node 1 exists".into()));
    assert_eq!(
        error([Some(0), Some(usize::MAX - 1)]),
        Err(format!("node {} is out of range: there are 2 devices", usize::MAX - 1))
    );
}

#[test]
fn ports_are_on_the_first_host() {
    let mut bundle = bundle();
    assert_eq!(bundle.check_ports(), Ok(()));
    bundle.outputs[0].value = 3;
    let expected = "output 'y' is on device 'cpu1' of node 1, and inputs and outputs are at rank 0: describe that node first \
                    in the system description";
    assert_eq!(bundle.check_ports(), Err(expected.into()));
}
