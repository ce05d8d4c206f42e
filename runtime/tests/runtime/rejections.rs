//! Rejection of invalid bundles, with the reason.

use crate::kit::{BundleBuilder, CODE, Folder, scale_and_add, two_devices};
use divi_runtime::{
    Options, Runtime,
    bundle::{
        Action, Buffer, Bundle, Call, Constant, DESCRIPTION, File, Fill, Halo, Layout, Mode, Nchwc, Source, Tensor,
    },
    drivers::cpu::Target,
    prepare::Expression,
};
use serde_json::json;
use std::fs;

/// Returns the error of loading a bundle, with its folder replaced by FOLDER.
fn load_error(folder: &Folder) -> String {
    let error = Runtime::load(folder.path(), Options::default()).err().unwrap().to_string();
    error.replace(folder.path().to_str().unwrap(), "FOLDER")
}

/// Returns the validation error of a description after a change.
fn invalid(change: impl FnOnce(&mut BundleBuilder)) -> String {
    let mut builder = two_devices(Mode::Latency, false);
    builder.bundle.stages.iter_mut().for_each(|stage| stage.calls.clear());
    builder.bundle.constants.clear();
    builder.bundle.files = vec![File { path: CODE.into(), bytes: 0, sha256: String::new() }];
    change(&mut builder);
    builder.bundle.validate().unwrap_err()
}

fn edit(folder: &Folder, from: &str, to: &str) {
    let text = fs::read_to_string(folder.join(DESCRIPTION)).unwrap();
    assert!(text.contains(from));
    fs::write(folder.join(DESCRIPTION), text.replace(from, to)).unwrap();
}

#[test]
fn newer_and_other_formats_are_rejected() {
    let folder = scale_and_add().write();
    edit(&folder, "divi-bundle/3", "divi-bundle/4");
    let newer = "'FOLDER/bundle.json' has format divi-bundle/4, and this runtime supports up to divi-bundle/3: run it with a \
                 newer divi-run";
    assert_eq!(load_error(&folder), newer);
    // The fields of newer formats may differ.
    fs::write(folder.join(DESCRIPTION), r#"{"format": "divi-bundle/4", "pages": []}"#).unwrap();
    assert_eq!(load_error(&folder), newer);
    fs::write(folder.join(DESCRIPTION), r#"{"format": "divi-plan/1"}"#).unwrap();
    let other = "'FOLDER/bundle.json': invalid bundle: its format is 'divi-plan/1', not 'divi-bundle/3'";
    assert_eq!(load_error(&folder), other);
}

#[test]
fn damaged_descriptions_are_rejected() {
    let folder = scale_and_add().write();
    edit(&folder, "\"extent\":64", "\"extent\":65");
    assert_eq!(
        load_error(&folder),
        "'FOLDER/bundle.json' was modified or damaged: its SHA-256 does not match its contents; compile the model again"
    );
    let text = fs::read_to_string(folder.join(DESCRIPTION)).unwrap();
    for length in [0, 1, text.len() / 2, text.len() - 3] {
        fs::write(folder.join(DESCRIPTION), &text[..length]).unwrap();
        assert!(load_error(&folder).starts_with("'FOLDER/bundle.json': invalid bundle: EOF while parsing"));
    }
    fs::write(folder.join(DESCRIPTION), "[".repeat(100_000)).unwrap();
    assert!(load_error(&folder).contains("invalid bundle"));
    fs::remove_file(folder.join(DESCRIPTION)).unwrap();
    assert_eq!(load_error(&folder), "cannot read 'FOLDER/bundle.json': No such file or directory (os error 2)");
}

#[test]
fn damaged_files_are_rejected() {
    let folder = scale_and_add().write();
    let bundle = Bundle::read(folder.path()).unwrap();
    bundle.check(folder.path()).unwrap();
    let weights = fs::read(folder.join("weights.bin")).unwrap();
    fs::write(folder.join("weights.bin"), &weights[..60]).unwrap();
    let truncated = "'FOLDER/weights.bin' was modified or damaged: it has 60 bytes instead of 64: it is truncated; compile the \
                     model again";
    assert_eq!(load_error(&folder), truncated);
    fs::remove_file(folder.join("weights.bin")).unwrap();
    assert_eq!(load_error(&folder), "cannot read 'FOLDER/weights.bin': No such file or directory (os error 2)");
    // `Bundle::check` detects modified weights of the same size.
    fs::write(folder.join("weights.bin"), [1; 64]).unwrap();
    let damaged = bundle.check(folder.path()).unwrap_err().to_string();
    assert!(damaged.contains("weights.bin' was modified or damaged: its SHA-256 does not match"), "{damaged}");
    let mut code = fs::read(folder.join(CODE)).unwrap();
    code[100] ^= 1;
    fs::write(folder.join(CODE), code).unwrap();
    assert_eq!(
        load_error(&folder),
        "'FOLDER/kernels.so' was modified or damaged: its SHA-256 does not match the bundle; compile the model again"
    );
}

#[test]
fn truncated_model_files_are_rejected() {
    let mut builder = scale_and_add();
    builder.constant(8, Source::File { path: "model.bin".into(), offset: 64 });
    let folder = Folder::new();
    fs::write(folder.join("model.bin"), [0; 72]).unwrap();
    let folder = builder.write_into(folder);
    fs::remove_file(folder.join("model.bin")).unwrap();
    assert_eq!(load_error(&folder), "cannot read 'FOLDER/model.bin': No such file or directory (os error 2)");
    fs::write(folder.join("model.bin"), [0; 70]).unwrap();
    let text = load_error(&folder);
    assert!(text.contains("'FOLDER/model.bin' was modified or damaged: it has 70 bytes instead of 72"), "{text}");
}

#[test]
fn code_for_other_machines_is_rejected() {
    let mut builder = scale_and_add();
    let features = vec!["fpu".into(), "avx1024".into(), "mind_reading".into()];
    builder.bundle.executables = vec![Target { cpu: "x86-64-v9".into(), features }.executable(CODE.into())];
    let expected = "the bundle is for x86-64-v9, and this processor lacks avx1024, mind_reading: compile the model for this \
                    processor";
    assert_eq!(load_error(&builder.write()), expected);
    let mut builder = scale_and_add();
    builder.bundle.devices[0].kind = "abacus".into();
    let expected = "device 'cpu0' is of the unknown kind 'abacus'; expected one of cpu, cuda";
    assert_eq!(load_error(&builder.write()), expected);
}

#[test]
fn missing_kernels_are_rejected() {
    let mut builder = scale_and_add();
    builder.bundle.stages[0].calls[0].kernel = "divide".into();
    let expected = "the code in 'FOLDER/kernels.so' cannot be loaded: its kernel 'divide' was not compiled for a call of the \
                    description";
    assert_eq!(load_error(&builder.write()), expected);
}

/// A call that is valid by itself is rejected if the code was not compiled for it.
#[test]
fn calls_without_compiled_code_are_rejected() {
    let other = |change: &dyn Fn(&mut Call)| {
        let mut builder = scale_and_add();
        change(&mut builder.bundle.stages[0].calls[1]);
        let text = load_error(&builder.write());
        assert!(text.ends_with("was not compiled for a call of the description"), "{text}");
    };
    other(&|call| call.extent = 65);
    other(&|call| call.kernel = "scale".into());
    other(&|call| call.bytes[1] = 4);
    other(&|call| call.buffers[1] = Buffer::Arena(68));
    other(&|call| {
        call.buffers.pop();
        call.bytes.pop();
    });
}

#[test]
fn calls_that_access_memory_out_of_bounds_are_rejected() {
    let invalid = |change: &dyn Fn(&mut BundleBuilder), expected: &str| {
        let mut builder = scale_and_add();
        builder.bundle.files.push(File { path: CODE.into(), bytes: 0, sha256: String::new() });
        builder.bundle.constants[0] = Constant { bytes: 4, source: Source::Computed, crc32: None };
        change(&mut builder);
        assert_eq!(builder.bundle.validate().unwrap_err(), format!("stage 'main': kernel 'add': {expected}"));
    };
    let change =
        |change: &'static dyn Fn(&mut Call)| move |it: &mut BundleBuilder| change(&mut it.bundle.stages[0].calls[1]);
    invalid(&change(&|it| it.bytes[0] = 257), "it accesses 257 bytes of buffer 0, which has 256");
    invalid(&change(&|it| it.bytes[0] = u64::MAX), "it accesses 18446744073709551615 bytes of buffer 0, which has 256");
    invalid(&change(&|it| it.buffers[1] = Buffer::Arena(3841)), "it accesses 256 bytes of buffer 1, which has 255");
    invalid(&change(&|it| it.buffers[1] = Buffer::Constant(0)), "it accesses 256 bytes of buffer 1, which has 4");
    invalid(&change(&|it| it.buffers[1] = Buffer::Output(0)), "it writes buffer 0, which overlaps buffer 1");
    invalid(&change(&|it| it.writes = vec![2]), "it writes buffer 2, which is read-only");
    invalid(&change(&|it| it.writes = vec![3]), "index 3 is outside the 3 buffers");
    let extents = "'bytes' must have an entry for each buffer, and 'writes' must be ascending";
    invalid(&change(&|it| it.writes = vec![1, 0]), extents);
    invalid(&change(&|it| it.bytes.truncate(2)), extents);
    let overlapping = |it: &mut Call| it.buffers = vec![Buffer::Arena(0), Buffer::Arena(252), Buffer::Input(0)];
    invalid(&move |it| overlapping(&mut it.bundle.stages[0].calls[1]), "it writes buffer 0, which overlaps buffer 1");
}

#[test]
fn constants_that_cannot_be_computed_are_rejected() {
    let made = |expression: Expression, bytes| {
        let mut builder = scale_and_add();
        builder.constant(bytes, Source::Evaluated(expression));
        builder
    };
    let huge = 1 << 47;
    let text = load_error(&made(Expression::Zeros(huge / 4), huge).write());
    assert_eq!(text, format!("there is not enough memory for constant 1: it takes {huge} bytes"));
    let text = load_error(&made(Expression::Bytes("zz".into()), 1).write());
    assert_eq!(text, "cannot compute constant 1: a constant is not written in hexadecimal digits");
    let beyond = invalid(|it| _ = it.constant(1 << 48, Source::Computed));
    assert_eq!(beyond, "constant 0: a size of 281474976710656 bytes is out of range");
    let constant = |count| invalid(|it| _ = it.constant(4, Source::Evaluated(Expression::Zeros(count))));
    assert_eq!(constant(2), "constant 0: it has 4 bytes, and its expression 8");
    let overflow = "constant 0: the size of its expression overflows, or its operands do not match";
    assert_eq!(constant(u64::MAX), overflow);
    let mut builder = scale_and_add();
    builder.constant(huge, Source::Computed);
    assert!(load_error(&builder.write()).starts_with("there is not enough memory for constant 1"));
}

/// Returns a layout with a halo of `pixels` on each side.
fn blocked(block: u64, pixels: u64) -> Layout {
    let halo = Halo { top: pixels, left: pixels, bottom: pixels, right: pixels, fill: Fill::Zero };
    Layout::Nchwc(Nchwc { block, halo })
}

fn image(block: u64, pixels: u64, bytes: u64) -> Tensor {
    Tensor { dtype: "float".into(), shape: vec![2, 20, 8, 9], bytes, layout: blocked(block, pixels) }
}

#[test]
fn invalid_indices_and_sizes_are_rejected() {
    let launch = |builder: &mut BundleBuilder, buffer| {
        builder.bundle.stages[0].calls = vec![crate::kit::call("add", &[buffer])];
    };
    type Change = Box<dyn Fn(&mut BundleBuilder)>;
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|it| it.bundle.values[1].device = 2), "value 'half': index 2 is outside the 2 devices"),
        (Box::new(|it| it.bundle.values[1].constant = Some(0)), "value 'half': index 0 is outside the 0 constants"),
        (Box::new(|it| it.bundle.values[1].tensor.bytes = 4), "value 'half': float [64] does not take 4 bytes"),
        (Box::new(|it| it.bundle.values[1].tensor.dtype = "real".into()), "value 'half': unknown element type 'real'"),
        (
            Box::new(|it| it.bundle.values[1].tensor.layout = blocked(8, 0)),
            "value 'half': float [64] in nChw8c does not take 256 bytes",
        ),
        (
            Box::new(|it| it.bundle.values[1].tensor = image(8, 1, 2 * 3 * 10 * 11 * 8 * 4 - 1)),
            "value 'half': float [2, 20, 8, 9] in nChw8c with halo [1, 1, 1, 1] does not take 21119 bytes",
        ),
        (
            Box::new(|it| it.bundle.values[1].tensor = image(0, 0, 0)),
            "value 'half': float [2, 20, 8, 9] in nChw0c does not take 0 bytes",
        ),
        (
            Box::new(|it| it.bundle.values[1].tensor = image(8, u64::MAX, 0)),
            "value 'half': float [2, 20, 8, 9] in nChw8c with halo [18446744073709551615, 18446744073709551615, \
             18446744073709551615, 18446744073709551615] does not take 0 bytes",
        ),
        (
            Box::new(|it| it.bundle.values[0].tensor = image(8, 1, 2 * 3 * 10 * 11 * 8 * 4)),
            "input 'x' has the layout nChw8c with halo [1, 1, 1, 1]: inputs and outputs are row-major",
        ),
        (
            // The last value is an output.
            Box::new(|it| it.bundle.values[4].tensor = image(16, 0, 2 * 2 * 8 * 9 * 16 * 4)),
            "output 'y' has the layout nChw16c: inputs and outputs are row-major",
        ),
        (
            Box::new(|it| {
                let input = it.value_of("image", 0, image(8, 0, 2 * 3 * 8 * 9 * 8 * 4));
                let output = it.value_of("part", 0, image(8, 0, 2 * 3 * 8 * 9 * 8 * 4));
                it.bundle.inputs.clear();
                it.bundle.steps.clear();
                it.bundle.constants = vec![Constant { bytes: 13824, source: Source::Computed, crc32: None }];
                it.bundle.values[input].constant = Some(0);
                it.step(Action::Slice { input, output, positions: vec![0], of: 1, axis: 0, outer: 1 });
            }),
            "step 0: value 'image' has the layout nChw8c: slice and gather need row-major",
        ),
        (
            Box::new(|it| it.bundle.stages[0].outputs[0] = image(8, 0, 2 * 3 * 8 * 9 * 8 * 4)),
            "step 0: the outputs are not those of stage 'first'",
        ),
        (Box::new(|it| it.bundle.inputs[0].value = 99), "input 'x': index 99 is outside the 5 values"),
        (Box::new(|it| it.output("y", 0)), "there are two outputs 'y'"),
        (Box::new(|it| it.bundle.stages[0].device = 7), "stage 'first': index 7 is outside the 2 devices"),
        (
            Box::new(move |it| launch(it, Buffer::Arena(5000))),
            "stage 'first': kernel 'add': a buffer at 5000 is outside the arena of 4096 bytes",
        ),
        (
            Box::new(move |it| launch(it, Buffer::Input(1))),
            "stage 'first': kernel 'add': index 1 is outside the 1 inputs",
        ),
        (
            Box::new(move |it| launch(it, Buffer::Constant(3))),
            "stage 'first': kernel 'add': index 3 is outside the 0 constants",
        ),
        (Box::new(|it| it.bundle.files.clear()), "the code 'kernels.so' is not one of the files of the bundle"),
        (
            Box::new(|it| it.bundle.executables[0].file = "../kernels.so".into()),
            "the code '../kernels.so' is not one of the files of the bundle",
        ),
        (Box::new(|it| it.bundle.stages[0].executable = 1), "stage 'first': index 1 is outside the 1 executables"),
        (
            Box::new(|it| it.bundle.executables[0].format = "ptx".into()),
            "stage 'first' on device 'cpu0' has code in format 'ptx'; driver 'cpu' loads elf-x86-64",
        ),
        (
            Box::new(|it| it.bundle.executables[0].target = json!({"cpu": "x86-64-v3"})),
            "stage 'first': the target of 'kernels.so' is not a processor: missing field `features`",
        ),
        (Box::new(|it| it.bundle.stages[0].payload = json!({})), "stage 'first': it has a payload, and CPUs use none"),
        (
            Box::new(|it| {
                let mut call = crate::kit::call("add", &[Buffer::Output(0)]);
                call.payload = json!({"blocks": 1});
                it.bundle.stages[0].calls = vec![call];
            }),
            "stage 'first': kernel 'add': it has a payload, and CPUs use none",
        ),
        (
            Box::new(|it| it.bundle.stages[0].tasks[0].has_host_weights = true),
            "stage 'first': task 'first task' has host weights, and device 'cpu0' has no memory of its own",
        ),
        (
            Box::new(|it| it.bundle.prepare = vec![crate::kit::call("add", &[])]),
            "prepare: 'prepare_executable' is missing",
        ),
        (Box::new(|it| it.bundle.prepare_executable = Some(2)), "prepare: index 2 is outside the 1 executables"),
        (
            Box::new(|it| {
                it.bundle.executables.push(it.bundle.executables[0].clone());
                it.bundle.executables[1].format = "ptx".into();
                it.bundle.prepare_executable = Some(1);
            }),
            "prepare has code in format 'ptx', which no driver of the host loads",
        ),
        (Box::new(|it| it.bundle.steps.swap(0, 1)), "step 0: value 'half' is read before it is written"),
        (Box::new(|it| it.bundle.steps.insert(1, it.bundle.steps[0].clone())), "step 1: value 'half' is written twice"),
        (
            Box::new(|it| it.bundle.steps[0].action = Action::Launch { stage: 0, inputs: vec![], outputs: vec![1] }),
            "step 0: the inputs are not those of stage 'first'",
        ),
        (
            Box::new(|it| it.bundle.steps[0].action = Action::Launch { stage: 9, inputs: vec![0], outputs: vec![1] }),
            "step 0: index 9 is outside the 2 stages",
        ),
        (
            Box::new(|it| it.bundle.steps[2].action = Action::Launch { stage: 0, inputs: vec![1], outputs: vec![2] }),
            "step 2: value 'whole' is on another device",
        ),
        (Box::new(|it| drop(it.bundle.steps.pop())), "output 'y' is never written"),
    ];
    for (change, expected) in cases {
        assert_eq!(invalid(change), expected);
    }
    let slice = |positions, of, outer| {
        move |it: &mut BundleBuilder| {
            let output = it.value("part", 0);
            it.step(Action::Slice { input: 0, output, positions, of, axis: 0, outer });
        }
    };
    assert_eq!(invalid(slice(vec![4], 4, 1)), "step 4: position 4 is outside the 4 inputs of a value");
    assert_eq!(invalid(slice(vec![0], 0, 1)), "step 4: a value does not consist of equal parts");
    assert_eq!(invalid(slice(vec![0], u64::MAX, 2)), "step 4: a value does not consist of equal parts");
    assert_eq!(invalid(slice(vec![0, 1], 4, 1)), "step 4: a value has 256 bytes, not 1 * 2 * 64");
    let along = |axis, outer| {
        move |it: &mut BundleBuilder| {
            let output = it.value("part", 0);
            it.bundle.values[output].tensor = crate::kit::floats(&[4, 8]);
            it.step(Action::Slice { input: 0, output, positions: vec![0], of: 2, axis, outer });
        }
    };
    assert_eq!(
        invalid(along(1, 2)),
        "step 4: outer is 2, which lacks the extents before axis 1 of [4, 8]: compile the model again"
    );
    assert_eq!(invalid(along(3, 1)), "step 4: axis 3 is outside the 2 axes of a value");
}
