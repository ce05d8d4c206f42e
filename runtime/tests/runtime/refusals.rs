//! Bundles that are not as they should be are refused, with the reason.

use crate::kit::{CODE, Folder, Maker, scale_and_add, two_devices};
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

/// Why a bundle is not loaded; its folder is called FOLDER.
fn refusal(folder: &Folder) -> String {
    let error = Runtime::load(folder.path(), Options::default()).err().unwrap().to_string();
    error.replace(folder.path().to_str().unwrap(), "FOLDER")
}

/// Why a description is not written.
fn unsound(change: impl FnOnce(&mut Maker)) -> String {
    let mut maker = two_devices(Mode::Latency, false);
    maker.bundle.stages.iter_mut().for_each(|stage| stage.calls.clear());
    maker.bundle.constants.clear();
    maker.bundle.files = vec![File { path: CODE.into(), bytes: 0, sha256: String::new() }];
    change(&mut maker);
    maker.bundle.validate().unwrap_err()
}

fn edit(folder: &Folder, from: &str, to: &str) {
    let text = fs::read_to_string(folder.join(DESCRIPTION)).unwrap();
    assert!(text.contains(from));
    fs::write(folder.join(DESCRIPTION), text.replace(from, to)).unwrap();
}

#[test]
fn newer_and_other_formats() {
    let folder = scale_and_add().write();
    edit(&folder, "divi-bundle/3", "divi-bundle/4");
    let newer = "'FOLDER/bundle.json' is of the format divi-bundle/4, newer than divi-bundle/3, the newest this runtime \
                 knows: run it with a newer divi-run";
    assert_eq!(refusal(&folder), newer);
    // Newer ones may look quite different.
    fs::write(folder.join(DESCRIPTION), r#"{"format": "divi-bundle/4", "pages": []}"#).unwrap();
    assert_eq!(refusal(&folder), newer);
    fs::write(folder.join(DESCRIPTION), r#"{"format": "divi-plan/1"}"#).unwrap();
    let other = "'FOLDER/bundle.json' is no sound bundle: its format is 'divi-plan/1', not 'divi-bundle/3'";
    assert_eq!(refusal(&folder), other);
}

#[test]
fn descriptions_that_are_damaged() {
    let folder = scale_and_add().write();
    edit(&folder, "\"extent\":64", "\"extent\":65");
    assert_eq!(
        refusal(&folder),
        "'FOLDER/bundle.json' is not as it was written: its contents do not have the hash that it names; compile the model \
         again"
    );
    let text = fs::read_to_string(folder.join(DESCRIPTION)).unwrap();
    for length in [0, 1, text.len() / 2, text.len() - 3] {
        fs::write(folder.join(DESCRIPTION), &text[..length]).unwrap();
        assert!(refusal(&folder).starts_with("'FOLDER/bundle.json' is no sound bundle: EOF while parsing"));
    }
    fs::write(folder.join(DESCRIPTION), "[".repeat(100_000)).unwrap();
    assert!(refusal(&folder).contains("is no sound bundle"));
    fs::remove_file(folder.join(DESCRIPTION)).unwrap();
    assert_eq!(refusal(&folder), "cannot read 'FOLDER/bundle.json': No such file or directory (os error 2)");
}

#[test]
fn files_that_are_damaged() {
    let folder = scale_and_add().write();
    let bundle = Bundle::read(folder.path()).unwrap();
    bundle.check(folder.path()).unwrap();
    let weights = fs::read(folder.join("weights.bin")).unwrap();
    fs::write(folder.join("weights.bin"), &weights[..60]).unwrap();
    let truncated = "'FOLDER/weights.bin' is not as it was written: it has 60 bytes instead of 64: it is truncated; compile \
                     the model again";
    assert_eq!(refusal(&folder), truncated);
    fs::remove_file(folder.join("weights.bin")).unwrap();
    assert_eq!(refusal(&folder), "cannot read 'FOLDER/weights.bin': No such file or directory (os error 2)");
    // Other weights of the same size are found when they are looked for.
    fs::write(folder.join("weights.bin"), [1; 64]).unwrap();
    let damaged = bundle.check(folder.path()).unwrap_err().to_string();
    assert!(damaged.contains("weights.bin' is not as it was written: its contents do not have the hash"), "{damaged}");
    let mut code = fs::read(folder.join(CODE)).unwrap();
    code[100] ^= 1;
    fs::write(folder.join(CODE), code).unwrap();
    assert_eq!(
        refusal(&folder),
        "'FOLDER/kernels.so' is not as it was written: its contents do not have the hash that the bundle names; compile the \
         model again"
    );
}

#[test]
fn weights_of_the_model_that_are_too_short() {
    let mut maker = scale_and_add();
    maker.constant(8, Source::File { path: "model.bin".into(), offset: 64 });
    let folder = Folder::new();
    fs::write(folder.join("model.bin"), [0; 72]).unwrap();
    let folder = maker.write_into(folder);
    fs::remove_file(folder.join("model.bin")).unwrap();
    assert_eq!(refusal(&folder), "cannot read 'FOLDER/model.bin': No such file or directory (os error 2)");
    fs::write(folder.join("model.bin"), [0; 70]).unwrap();
    let text = refusal(&folder);
    assert!(text.contains("'FOLDER/model.bin' is not as it was written: it has 70 bytes instead of 72"), "{text}");
}

#[test]
fn code_for_another_machine() {
    let mut maker = scale_and_add();
    let features = vec!["fpu".into(), "avx1024".into(), "mind_reading".into()];
    maker.bundle.executables = vec![Target { cpu: "x86-64-v9".into(), features }.executable(CODE.into())];
    let expected = "the bundle is for x86-64-v9, and this processor lacks avx1024, mind_reading: compile the model for this \
                    processor";
    assert_eq!(refusal(&maker.write()), expected);
    let mut maker = scale_and_add();
    maker.bundle.devices[0].kind = "abacus".into();
    let expected = "device 'cpu0' is of the unknown kind 'abacus'; expected one of cpu, cuda";
    assert_eq!(refusal(&maker.write()), expected);
}

#[test]
fn code_that_is_not_there() {
    let mut maker = scale_and_add();
    maker.bundle.stages[0].calls[0].kernel = "divide".into();
    let expected = "the code in 'FOLDER/kernels.so' cannot be loaded: its kernel 'divide' was not compiled for a call of the \
                    description";
    assert_eq!(refusal(&maker.write()), expected);
}

/// Code that was compiled for other calls than the description has: each may be sound by itself.
#[test]
fn calls_that_code_was_not_compiled_for() {
    let other = |change: &dyn Fn(&mut Call)| {
        let mut maker = scale_and_add();
        change(&mut maker.bundle.stages[0].calls[1]);
        let text = refusal(&maker.write());
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
fn calls_that_touch_what_is_not_theirs() {
    let unsound = |change: &dyn Fn(&mut Maker), expected: &str| {
        let mut maker = scale_and_add();
        maker.bundle.files.push(File { path: CODE.into(), bytes: 0, sha256: String::new() });
        maker.bundle.constants[0] = Constant { bytes: 4, source: Source::Computed, crc32: None };
        change(&mut maker);
        assert_eq!(maker.bundle.validate().unwrap_err(), format!("stage 'main': kernel 'add': {expected}"));
    };
    let change = |change: &'static dyn Fn(&mut Call)| move |it: &mut Maker| change(&mut it.bundle.stages[0].calls[1]);
    unsound(&change(&|it| it.bytes[0] = 257), "it touches 257 bytes of buffer 0, which has 256");
    unsound(&change(&|it| it.bytes[0] = u64::MAX), "it touches 18446744073709551615 bytes of buffer 0, which has 256");
    unsound(&change(&|it| it.buffers[1] = Buffer::Arena(3841)), "it touches 256 bytes of buffer 1, which has 255");
    unsound(&change(&|it| it.buffers[1] = Buffer::Constant(0)), "it touches 256 bytes of buffer 1, which has 4");
    unsound(&change(&|it| it.buffers[1] = Buffer::Output(0)), "it writes buffer 0, which overlaps buffer 1");
    unsound(&change(&|it| it.writes = vec![2]), "it writes buffer 2, which is only read");
    unsound(&change(&|it| it.writes = vec![3]), "index 3 is outside the 3 buffers");
    unsound(&change(&|it| it.writes = vec![1, 0]), "it does not say of each buffer what it touches");
    unsound(&change(&|it| it.bytes.truncate(2)), "it does not say of each buffer what it touches");
    let overlapping = |it: &mut Call| it.buffers = vec![Buffer::Arena(0), Buffer::Arena(252), Buffer::Input(0)];
    unsound(&move |it| overlapping(&mut it.bundle.stages[0].calls[1]), "it writes buffer 0, which overlaps buffer 1");
}

#[test]
fn constants_that_cannot_be_made() {
    let made = |expression: Expression, bytes| {
        let mut maker = scale_and_add();
        maker.constant(bytes, Source::Made(expression));
        maker
    };
    let huge = 1 << 47;
    let text = refusal(&made(Expression::Zeros(huge / 4), huge).write());
    assert_eq!(text, format!("there is not enough memory for constant 1: it takes {huge} bytes"));
    let text = refusal(&made(Expression::Bytes("zz".into()), 1).write());
    assert_eq!(text, "constant 1 cannot be made: a constant is not written in hexadecimal digits");
    let beyond = unsound(|it| _ = it.constant(1 << 48, Source::Computed));
    assert_eq!(beyond, "constant 0: 281474976710656 bytes are more than any machine has");
    let constant = |count| unsound(|it| _ = it.constant(4, Source::Made(Expression::Zeros(count))));
    assert_eq!(constant(2), "constant 0: it has 4 bytes, and is made of 8");
    let uncountable = "constant 0: it is larger than can be counted, or made of parts that do not fit";
    assert_eq!(constant(u64::MAX), uncountable);
    let mut maker = scale_and_add();
    maker.constant(huge, Source::Computed);
    assert!(refusal(&maker.write()).starts_with("there is not enough memory for constant 1"));
}

/// Layout with a halo of so many pixels on each side.
fn blocked(block: u64, pixels: u64) -> Layout {
    let halo = Halo { top: pixels, left: pixels, bottom: pixels, right: pixels, fill: Fill::Zero };
    Layout::Nchwc(Nchwc { block, halo })
}

fn image(block: u64, pixels: u64, bytes: u64) -> Tensor {
    Tensor { dtype: "float".into(), shape: vec![2, 20, 8, 9], bytes, layout: blocked(block, pixels) }
}

#[test]
fn indices_that_lead_nowhere() {
    let launch = |maker: &mut Maker, buffer| {
        maker.bundle.stages[0].calls = vec![crate::kit::call("add", &[buffer])];
    };
    type Change = Box<dyn Fn(&mut Maker)>;
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|it| it.bundle.values[1].device = 2), "value 'half': index 2 is outside the 2 devices"),
        (Box::new(|it| it.bundle.values[1].constant = Some(0)), "value 'half': index 0 is outside the 0 constants"),
        (Box::new(|it| it.bundle.values[1].tensor.bytes = 4), "value 'half': float [64] does not take 4 bytes"),
        (Box::new(|it| it.bundle.values[1].tensor.dtype = "real".into()), "value 'half': 'real' is no element type"),
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
            // The last one is an output.
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
            "step 0: value 'image' has the layout nChw8c: parts are of row-major values",
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
        (Box::new(|it| it.bundle.prepare = vec![crate::kit::call("add", &[])]), "prepare: no executable has its code"),
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
        assert_eq!(unsound(change), expected);
    }
    let slice = |positions, of, outer| {
        move |it: &mut Maker| {
            let output = it.value("part", 0);
            it.step(Action::Slice { input: 0, output, positions, of, axis: 0, outer });
        }
    };
    assert_eq!(unsound(slice(vec![4], 4, 1)), "step 4: position 4 is outside the 4 of a value");
    assert_eq!(unsound(slice(vec![0], 0, 1)), "step 4: a value is not cut into whole parts");
    assert_eq!(unsound(slice(vec![0], u64::MAX, 2)), "step 4: a value is not cut into whole parts");
    assert_eq!(unsound(slice(vec![0, 1], 4, 1)), "step 4: a part has 256 bytes, not 2 times 64");
}
