//! Mutation tests: bundles with modified descriptions and matching hashes are rejected or run without memory errors.
//!
//! Mutants are generated from a fixed seed. `DIVI_MUTANTS` is their number, `DIVI_SEED` the seed, and `DIVI_BUNDLE` a
//! compiled bundle that is copied and mutated instead of those of the tests (it must not refer to files of its model).

use crate::kit::{BundleBuilder, CODE, Folder, Lcg, SIZE, call, floats, options, two_devices};
use divi_runtime::{
    DType, Runtime, TensorData,
    bundle::{Action, Buffer, Bundle, DESCRIPTION, Mode, Port, Source},
    prepare::{Expression, Loop, Pack},
    random_weights::Element,
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Virtual memory limit of the process that runs mutants, in KiB.
const MEMORY_KIB: u64 = 6 << 20;

/// Builds a bundle with every kind of step, constant and expression.
fn everything() -> Folder {
    let folder = Folder::new();
    fs::write(folder.join("model.bin"), [1; 1024]).unwrap();
    let mut builder = BundleBuilder::new(Mode::Batch, 2);
    let bytes = |count: usize| Box::new(Expression::bytes(&[0, 0, 128, 63].repeat(count)));
    let loops = vec![Loop { axis: 1, count: 8, step: 1 }, Loop { axis: 0, count: 8, step: 1 }];
    let (start, end, shape) = (vec![0, 0], vec![8, 8], vec![8, 8]);
    let pack = Pack { source: bytes(64), shape, start, end, loops };
    let random = Expression::Random { seed: 1, key: "w".into(), element: Element::F32, count: 64, low: 0.0, high: 1.0 };
    let file = Expression::File { path: "model.bin".into(), offset: 64, length: 256 };
    let scaled = Expression::Scale { source: Box::new(random), by: bytes(8), inner: 8 };
    let factor = Expression::NormalizedScale { scale: bytes(64), variance: Box::new(file), epsilon: 1.0 };
    let shift =
        Expression::NormalizedShift { shift: bytes(64), mean: bytes(64), factor: bytes(64), bias: Some(bytes(64)) };
    let parts = Expression::Concat(vec![Expression::Zeros(32), *bytes(32)]);
    let winograd = Expression::Winograd { source: bytes(36) };
    let made = [Expression::Pack(pack), scaled, factor, shift, parts, winograd]
        .map(|it| builder.constant(256, Source::Evaluated(it)));
    let read = builder.constant(256, Source::File { path: "model.bin".into(), offset: 128 });
    let (two, computed) = (builder.packed(2.0), builder.constant(256, Source::Computed));
    builder.bundle.prepare_executable = Some(0);
    builder.bundle.prepare = vec![call("add", &[computed, made[0], read].map(Buffer::Constant))];
    let shape = floats(&[2, SIZE]);
    let x = builder.value_of("x", 0, shape.clone());
    builder.bundle.inputs.push(Port { name: "x".into(), value: x });
    let (first, second) = (builder.value("first", 0), builder.value("second", 0));
    builder.step(Action::Slice { input: x, output: first, positions: vec![0], of: 2, axis: 0, outer: 1 });
    builder.step(Action::Slice { input: x, output: second, positions: vec![1], of: 2, axis: 0, outer: 1 });
    let (moved, sum) = (builder.transfer(second, 1), builder.value("sum", 0));
    let calls = vec![
        call("add", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(made[1])]),
        call("add", &[Buffer::Arena(256), Buffer::Arena(0), Buffer::Constant(made[2])]),
        call("scale", &[Buffer::Arena(512), Buffer::Arena(256), Buffer::Constant(two)]),
        call("add", &[Buffer::Output(0), Buffer::Arena(512), Buffer::Constant(computed)]),
    ];
    builder.launch("sums", calls, &[first], &[sum]);
    let other = builder.value("other", 1);
    let calls = vec![
        call("add", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(made[3])]),
        call("add", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Constant(made[4])]),
    ];
    builder.launch("others", calls, &[moved], &[other]);
    let back = builder.transfer(other, 0);
    let y = builder.value_of("y", 0, shape);
    builder.step(Action::Gather { inputs: vec![sum, back], output: y, of: vec![1, 1], axis: 0, outer: 1 });
    builder.output("y", y);
    builder.write_into(folder)
}

/// Collects all scalars of a description, from which mutations draw.
fn leaves(value: &Value, all: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, all)),
        leaf => all.push(leaf.clone()),
    }
}

/// Mutates a random scalar, list or object.
fn mutate(value: &mut Value, others: &[Value], random: &mut Lcg) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let (index, other) = (random.below(items.len()), random.below(items.len()));
            match random.below(10) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                2 => items.swap(index, other),
                _ => mutate(&mut items[index], others, random),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let index = random.below(fields.len());
            match random.below(20) {
                0 => drop(fields.shift_remove(&fields.keys().nth(index).cloned().unwrap_or_default())),
                _ => fields.values_mut().nth(index).into_iter().for_each(|field| mutate(field, others, random)),
            }
        }
        Value::Number(number) => {
            let old = number.as_u64().unwrap_or(0);
            let near = [
                old.wrapping_add(1),
                old.wrapping_sub(1),
                old / 2,
                old.wrapping_mul(2),
                old.wrapping_add(64),
                old.wrapping_add(16),
                old.wrapping_add(4),
            ];
            let extreme = [0, 1, 64, 1 << 20, 1 << 31, 1 << 33, 1 << 47, u64::MAX / 2, u64::MAX];
            let known: Vec<_> = others.iter().filter_map(Value::as_u64).collect();
            *value = match random.below(3) {
                0 => near[random.below(near.len())],
                1 => extreme[random.below(extreme.len())],
                _ => known[random.below(known.len())],
            }
            .into();
        }
        Value::String(_) => {
            let fixed = [
                "",
                "float",
                "int64",
                "../x",
                "/dev/zero",
                "/etc/passwd",
                "\0",
                "cpu",
                "cuda",
                "elf-x86-64",
                "ptx",
                CODE,
                ".",
                "exp",
            ];
            let known: Vec<_> = others.iter().filter(|other| other.is_string()).collect();
            *value = match random.below(2) {
                0 => fixed[random.below(fixed.len())].into(),
                _ => known[random.below(known.len())].clone(),
            };
        }
        _ => *value = 7.into(),
    }
}

/// Loads a mutant and runs it twice. Returns true if it was loaded.
fn try_out(folder: &Path) -> bool {
    if let Ok(bundle) = Bundle::read(folder) {
        let _ = bundle.check(folder);
    }
    let Ok(runtime) = Runtime::load(folder, options()) else { return false };
    let input = |(name, tensor): (&str, &divi_runtime::bundle::Tensor)| {
        Some((name.to_owned(), TensorData::zeroed(DType::from_name(&tensor.dtype)?, &tensor.shape).ok()?))
    };
    let Some(inputs) = runtime.inputs().map(input).collect::<Option<Vec<_>>>() else { return true };
    let inputs: Vec<_> = inputs.iter().map(|(name, tensor)| (&name[..], tensor.view())).collect();
    (0..2).for_each(|_| drop(runtime.run(&inputs)));
    true
}

fn mutate_all(folder: &Path, count: usize, random: &mut Lcg) -> (usize, usize) {
    let original: Value = serde_json::from_slice(&fs::read(folder.join(DESCRIPTION)).unwrap()).unwrap();
    let mut others = vec![];
    leaves(&original, &mut others);
    let (mut loaded, mut refused) = (0, 0);
    for _ in 0..count {
        let mut description = original.clone();
        (0..=random.below(3)).for_each(|_| mutate(&mut description, &others, random));
        let Ok(mut mutant) = serde_json::from_value::<Bundle>(description) else { continue };
        mutant.write_unvalidated(folder).unwrap();
        *if try_out(folder) { &mut loaded } else { &mut refused } += 1;
    }
    (loaded, refused)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Copies a compiled bundle.
fn copied(bundle: &str) -> Folder {
    let folder = Folder::new();
    for entry in fs::read_dir(bundle).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

#[test]
#[ignore = "mutants_are_only_errors runs it in a separate process"]
fn mutants_in_this_process() {
    let (count, mut random) = (setting("DIVI_MUTANTS", 2400) as usize, Lcg(setting("DIVI_SEED", 5)));
    let folders = match std::env::var("DIVI_BUNDLE") {
        Ok(bundle) => vec![copied(&bundle)],
        Err(_) => vec![everything(), two_devices(Mode::Pipeline, false).write(), everything()],
    };
    let (mut loaded, mut refused) = (0, 0);
    for folder in &folders {
        assert!(try_out(folder.path()));
        let counts = mutate_all(folder.path(), count / folders.len(), &mut random);
        (loaded, refused) = (loaded + counts.0, refused + counts.1);
    }
    println!("{loaded} mutants were loaded and run, {refused} were rejected");
    assert!(loaded > count / 50 && refused > count / 4, "{loaded} loaded, {refused} rejected");
}

#[test]
fn mutants_are_only_errors() {
    let script = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "mutants::mutants_in_this_process", "--include-ignored", "--nocapture"]);
    command.stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Even a panic that the engine catches is a bug.
    assert!(output.status.success() && !text.contains("panicked"), "{}: {text}", output.status);
    println!("{text}");
}
