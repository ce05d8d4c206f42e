use super::*;
use crate::Class;
use divi_onnx::Attr;

fn attributes(list: &[(&str, &[i64])]) -> Attributes {
    list.iter()
        .map(|(name, values)| match values {
            [value] => (*name, Attr::Int(*value)),
            values => (*name, Attr::Ints(values.to_vec())),
        })
        .collect()
}

fn data(shape: &[u64]) -> Operand<'_> {
    Operand { shape, is_constant: false }
}

fn weights(shape: &[u64]) -> Operand<'_> {
    Operand { shape, is_constant: true }
}

const PROFILE: &str = r#"{
  "format": "divi-profile/1",
  "device": "some GPU",
  "runtime": "PyTorch eager",
  "launch_us": 9.5,
  "entries": [
    {"ops":["Conv","BatchNormalization","Relu"],"attrs":{"kernel_shape":[3,3],"pads":[1,1,1,1]},"in":[[1,64,56,56]],"out":[1,64,56,56],"dtype":"f32","us":{"1":40.0,"4":100.0,"16":400.0}},
    {"ops":["Gemm"],"attrs":{"transB":1},"in":[[1,512]],"weights":[[1000,512],[1000]],"out":[1,1000],"dtype":"f32","us":{"1":20.0},"count":3},
    {"ops":["MatMul","Softmax"],"attrs":[{},{"axis":-1}],"in":[[1,8,64],[1,64,8]],"weights":[],"out":[1,8,8],"dtype":"float16","us":{"2":7.25}}
  ]
}
"#;

fn profile() -> Profile {
    Profile::from_json(PROFILE).unwrap()
}

/// Returns the key of the first entry's cluster at a batch size.
fn conv_key(batch: u64, strides: &[i64], kernel_shape: bool) -> Key {
    let mut conv = attributes(&[("pads", &[1, 1, 1, 1]), ("dilations", &[1, 1]), ("group", &[1])]);
    conv.push("strides", Attr::Ints(strides.to_vec()));
    conv.push("auto_pad", Attr::Str("NOTSET".to_owned()));
    if kernel_shape {
        conv.push("kernel_shape", Attr::Ints(vec![3, 3]));
    }
    let epsilon: Attributes = [("epsilon", Attr::Float(1e-5))].into_iter().collect();
    let (ops, image) = (["Conv", "BatchNormalizationInferenceMode", "Relu"], [batch, 64, 56, 56]);
    let none = Attributes::default();
    let ops = [(ops[0], &conv), (ops[1], &epsilon), (ops[2], &none)];
    let operands = [data(&image), weights(&[64, 64, 3, 3]), weights(&[64])];
    Key::new(&ops, &operands, &[&image], DType::F32, batch).unwrap()
}

#[test]
fn files_round_trip() {
    let profile = profile();
    assert_eq!((profile.launch, profile.entries().len()), (Some(Micros(9.5)), 3));
    let text = profile.to_json();
    assert_eq!(text, PROFILE.replace("float16", "f16"));
    assert_eq!(Profile::from_json(&text).unwrap().entries(), profile.entries());
    let empty = Profile::new("a", "b", vec![]).to_json();
    assert!(Profile::from_json(&empty).unwrap().entries().is_empty(), "{empty}");
}

/// Explicit and implicit defaults are equivalent.
#[test]
fn entries_are_found_by_canonical_form() {
    let profile = profile();
    let measured = |micros| Some(ProfileTime { micros: Micros(micros), source: LookupKind::Measured });
    assert_eq!(profile.find(&conv_key(1, &[1, 1], true), 1), measured(40.0));
    assert_eq!(profile.find(&conv_key(16, &[1, 1], false), 16), measured(400.0), "the weights determine the kernel");
    assert_eq!(profile.find(&conv_key(1, &[2, 2], true), 1), None);
    let (none, axis) = (Attributes::default(), attributes(&[("axis", &[2])]));
    let attention = |softmax, dtype| {
        let ops = [("MatMul", &none), ("Softmax", softmax)];
        Key::new(&ops, &[data(&[2, 8, 64]), data(&[2, 64, 8])], &[&[2, 8, 8]], dtype, 2).unwrap()
    };
    assert_eq!(profile.find(&attention(&none, DType::F16), 2), measured(7.25), "the last axis is the default");
    assert_eq!(profile.find(&attention(&axis, DType::F16), 2), measured(7.25), "and counted from the start");
    assert_eq!(profile.find(&attention(&axis, DType::F32), 2), None);
}

/// A file contains the code of an element type, which is equivalent to the type.
#[test]
fn casts_round_trip() {
    let entry = Entry {
        ops: vec![Member {
            name: "Cast".to_owned(),
            attributes: [("to", Attr::DType(DType::F16))].into_iter().collect(),
        }],
        types: None,
        inputs: vec![vec![1, 8]],
        weights: Some(vec![]),
        outputs: vec![vec![1, 8]],
        dtype: DType::F16,
        micros: [(1, 3.0)].into_iter().collect(),
        count: 1,
    };
    let key = Key::of(&entry);
    let read = Profile::from_json(&Profile::new("", "", vec![entry]).to_json()).unwrap();
    assert_eq!(read.find(&key, 1), Some(ProfileTime { micros: Micros(3.0), source: LookupKind::Measured }));
}

/// Weights that an entry specifies must match.
#[test]
fn weights_are_matched_where_they_are_known() {
    let (profile, transposed) = (profile(), attributes(&[("transB", &[1])]));
    let gemm = |bias: &[Operand<'_>]| {
        let operands = [&[data(&[1, 512]), weights(&[1000, 512])], bias].concat();
        Key::new(&[("Gemm", &transposed)], &operands, &[&[1, 1000]], DType::F32, 1).unwrap()
    };
    assert!(profile.find(&gemm(&[weights(&[1000])]), 1).is_some());
    assert_eq!(profile.find(&gemm(&[]), 1), None);
}

#[test]
fn batches_are_interpolated_inside_and_scaled_outside_the_range() {
    let (profile, key) = (profile(), conv_key(1, &[1, 1], true));
    let interpolated = ProfileTime { micros: Micros(250.0), source: LookupKind::Interpolated };
    assert_eq!(profile.find(&key, 10), Some(interpolated));
    assert_eq!(profile.find(&key, 32), None);
    let linear = |batch: u64| Micros(batch as f64);
    let scaled = ProfileTime { micros: Micros(800.0), source: LookupKind::Scaled };
    assert_eq!(profile.find_or_scale(&key, 32, linear), Some(scaled));
    assert_eq!(profile.find_or_scale(&key, 10, linear), Some(interpolated));
    assert_eq!(profile.find_or_scale(&key, 32, |_| Micros::ZERO), None, "no ratio");
    assert_eq!(profile.find_or_scale(&conv_key(1, &[2, 2], true), 1, linear), None);
}

#[test]
fn indivisible_batch_has_no_key() {
    let relu = ("Relu", &Attributes::default());
    let key = |shape: &[u64], batch| Key::new(&[relu], &[data(shape)], &[shape], DType::F32, batch);
    assert!(key(&[6, 3], 4).is_none() && key(&[], 2).is_none() && key(&[6, 3], 0).is_none());
    assert_eq!(key(&[6, 3], 3), key(&[2, 3], 1));
    assert!(key(&[], 1).is_some());
}

/// Repeated measurements are merged to their weighted median.
#[test]
fn equal_entries_are_merged() {
    let entry = |micros: f64, count| Entry {
        micros: [(1, micros)].into_iter().collect(),
        count,
        ..profile().entries()[0].clone()
    };
    let found = |entries| {
        let profile = Profile::new("", "", entries);
        profile.find(&conv_key(1, &[1, 1], true), 1).unwrap().micros.0
    };
    assert_eq!(found(vec![entry(30.0, 1), entry(10.0, 1), entry(20.0, 1)]), 20.0);
    assert_eq!(found(vec![entry(30.0, 1), entry(10.0, 1)]), 20.0);
    assert_eq!(found(vec![entry(30.0, 3), entry(10.0, 1), entry(20.0, 1)]), 30.0);
    let other_batch = Entry { micros: [(4, 99.0)].into_iter().collect(), ..entry(0.0, 1) };
    let both = Profile::new("", "", vec![entry(10.0, 1), other_batch]);
    assert_eq!(both.find(&conv_key(1, &[1, 1], true), 4).unwrap().micros.0, 99.0);
}

#[test]
fn broken_files_are_errors() {
    let fails = |from: &str, to: &str, expected: &str| {
        assert!(PROFILE.contains(from), "{from}");
        let error = Profile::from_json(&PROFILE.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    fails("divi-profile/1", "divi-profile/2", "format: must be 'divi-profile/1', is 'divi-profile/2'");
    fails("\"device\"", "\"gadget\"", "unknown field 'gadget'; expected one of format, device");
    fails("\"us\":{\"1\":20.0}", "\"us\":{}", "entries[1].us: must have the time of at least one batch size");
    fails("{\"1\":20.0}", "{\"one\":20.0}", "entries[1].us.one: must be named after a batch size");
    fails("{\"1\":20.0}", "{\"1\":20.0,\"01\":3}", "entries[1].us.01: batch size 1 is given twice");
    fails("{\"1\":20.0}", "{\"1\":-2}", "entries[1].us.1: must be a positive number, is -2");
    fails("[\"Gemm\"]", "[]", "entries[1].ops: must name at least one operator");
    fails("float16", "float17", "entries[2].dtype: unknown element type 'float17'");
    fails("[{},{\"axis\":-1}]", "[{}]", "entries[2].attrs: must have one object for each of 2 operators");
    fails("{\"transB\":1}", "{\"transB\":null}", "entries[1].attrs.transB: must be a number, a string, or a list");
    fails("[[1,512]]", "[1,512]", "entries[1].in[0]: must be a list, is 1");
    fails("\"out\":[1,1000],", "", "entries[1]: field 'out' is missing");
}

#[test]
fn entries_are_tasks() {
    let profile = profile();
    let [conv, gemm, attention] = profile.entries() else { panic!("three entries") };
    let task = conv.task(4).unwrap();
    let classes: Vec<Class> = task.members.iter().map(|work| work.class).collect();
    assert_eq!(classes, [Class::Conv, Class::BatchNorm, Class::Elementwise]);
    let image = 4 * 64 * 56 * 56;
    assert_eq!(task.members[0].flops, 2 * image * 64 * 9, "the weights are derived from the shapes");
    assert_eq!((task.read, task.written, task.weights), (4 * image, 4 * image, 4 * (64 * 64 * 9 + 4 * 64)));
    let task = gemm.task(2).unwrap();
    assert_eq!(task.flops(), 2 * 2 * 512 * 1000 + 2 * 1000, "with its bias");
    assert_eq!((task.read, task.weights, task.written), (2 * 512 * 4, 4 * (1000 * 512 + 1000), 2 * 1000 * 4));
    let task = attention.task(2).unwrap();
    assert_eq!(task.members[0].flops, 2 * 2 * 8 * 8 * 64);
    assert_eq!((task.read, task.weights, task.written), (2 * 2 * 2 * 8 * 64, 0, 2 * 2 * 8 * 8));
}

/// Entry with the types of its values: a product with transposed weights, whose result is reshaped and joined with another.
const TYPED: &str = r#"{
  "format": "divi-profile/1",
  "device": "some CPU",
  "runtime": "divi",
  "entries": [
    {"ops":["Transpose","MatMul","Cast","Concat"],"attrs":[{"perm":[1,0]},{},{"to":10},{"axis":1}],"types":[{"in":["const f32[16,8]"],"out":["f32[8,16]"]},{"in":["f32[4N,8]","inner f32[8,16]"],"out":["f32[4N,16]"]},{"in":["inner f32[4N,16]"],"out":["f16[4N,16]"]},{"in":["inner f16[4N,16]","placed f16[4N,2]",null],"out":["f16[4N,18]"]}],"in":[[4,8],[4,2]],"weights":[[16,8]],"out":[4,18],"dtype":"f16","us":{"1":4.0}}
  ]
}
"#;

#[test]
fn work_is_counted_from_types() {
    let profile = Profile::from_json(TYPED).unwrap();
    assert_eq!(profile.to_json(), TYPED);
    let task = profile.entries()[0].task(3).unwrap();
    let classes: Vec<Class> = task.members.iter().map(|work| work.class).collect();
    assert_eq!(classes, [Class::Copy, Class::MatMul, Class::Elementwise, Class::Copy]);
    assert_eq!(task.members[1].flops, 2 * 12 * 8 * 16);
    assert_eq!(task.members[3].written, 12 * 16 * 2, "without the operand that is computed inside the result");
    assert_eq!((task.read, task.weights, task.written), (12 * 8 * 4, 4 * 8 * 16, 12 * 16 * 2));
    let types = profile.entries()[0].types.clone().unwrap();
    assert_eq!(types[1].clone().at_batch_one(2).unwrap().results[0].to_string(), "f32[2N,16]");
    assert_eq!(types[1].clone().at_batch_one(3), None, "three runs of two rows are not a batch");
    assert_eq!(types[0].clone().at_batch_one(3).as_ref(), Some(&types[0]), "weights have no batch");
}

#[test]
fn invalid_types_are_errors() {
    let message = |from: &str, to: &str| Profile::from_json(&TYPED.replacen(from, to, 1)).unwrap_err().to_string();
    for wrong in ["f32", "f32[4N,8", "f32[N4,8]", "f32[4,8N]", "f33[8]", "f32[-1]", "weight f32[8]", "f32[4, 8]"] {
        let error = message("f32[4N,8]", wrong);
        assert_eq!(error, "entries[0].types[1].in[0]: must be a type such as 'f32[N,64,56,56]'", "{wrong}");
    }
    let error = message(r#"{"in":["const f32[16,8]"],"out":["f32[8,16]"]},"#, "");
    assert_eq!(error, "entries[0].types: must have one object for each of 4 operators");
}

/// A bias is taken only if no later operator requires the constant.
#[test]
fn weights_are_assigned_in_order() {
    let entry = |ops: &[&str], weights: &[&[u64]]| Entry {
        ops: ops.iter().map(|name| Member { name: (*name).to_owned(), attributes: Attributes::default() }).collect(),
        types: None,
        inputs: vec![vec![1, 8, 4, 4]],
        weights: Some(weights.iter().map(|shape| shape.to_vec()).collect()),
        outputs: vec![vec![1, 8, 4, 4]],
        dtype: DType::F32,
        micros: BTreeMap::new(),
        count: 1,
    };
    let (kernel, channel): (&[u64], &[u64]) = (&[8, 8, 1, 1], &[8]);
    let flops = |entry: Entry| entry.task(1).unwrap().members.iter().map(|work| work.flops).collect::<Vec<_>>();
    let (conv, bias, image) = (2 * 8 * 8 * 16, 8 * 16, 8 * 16);
    let without = [kernel, channel, channel, channel, channel];
    assert_eq!(flops(entry(&["Conv", "BatchNormalization"], &without)), [conv, 2 * image]);
    let with = [kernel, channel, channel, channel, channel, channel];
    assert_eq!(flops(entry(&["Conv", "BatchNormalization"], &with)), [conv + bias, 2 * image]);
    assert_eq!(flops(entry(&["Conv", "Add"], &[kernel, &[8, 1, 1]])), [conv, image]);
    let residual = Entry { inputs: vec![vec![1, 8, 4, 4]; 2], ..entry(&["Conv", "Add", "Relu"], &[kernel, channel]) };
    assert_eq!(flops(residual), [conv + bias, image, image]);
    let fails = |entry: Entry, expected: &str| assert_eq!(entry.task(1).unwrap_err().to_string(), expected);
    fails(entry(&["Conv"], &[]), "Conv: operand 1 is missing");
    fails(entry(&["Relu"], &[channel]), "1 of its operands are not used by its operators");
    fails(Entry { inputs: vec![], ..entry(&["Relu"], &[]) }, "Relu: needs an operand");
}

/// Damaged files are parsed or rejected; entries of parsed ones can be looked up, counted and fitted.
#[test]
fn damaged_files_are_only_errors() {
    use crate::device::CPU;
    use crate::fit::{Sample, Target, fit};
    let mut state: u64 = 0x2545_f491_4f6c_dd1d;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let pieces =
        ["", "0", "-1", "18446744073709551615", "1e308", "[", "]", "{}", ",", "null", "\"Add\"", "\"Concat\"", "9"];
    let mut read = 0;
    for _ in 0..3000 {
        let mut text = PROFILE.to_owned();
        for _ in 0..1 + random(2) {
            let start = random(text.len());
            let piece = pieces[random(pieces.len())];
            text.replace_range(start..(start + random(4)).min(text.len()), piece);
        }
        let Ok(profile) = Profile::from_json(&text) else { continue };
        read += 1;
        let mut samples = vec![];
        for entry in profile.entries() {
            assert!(profile.find_or_scale(&Key::of(entry), 3, |batch| Micros(batch as f64)).is_some());
            let _ = (entry.task(1), entry.task(u64::MAX));
            samples.extend(Sample::of(entry).into_iter().flatten());
        }
        let _ = profile.to_json();
        if read % 50 == 0 {
            let fitted = fit(&Target::of(CPU), "", "", &samples, &[]);
            assert!(fitted.is_ok_and(|model| crate::Model::from_json(&model.to_json()).is_ok()), "{text}");
        }
    }
    assert!(read > 300, "only {read} of the damaged files can be parsed, too few for this test");
}
