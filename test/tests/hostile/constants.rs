//! Invalid tensor types, and constants whose data is invalid or misplaced.

use super::suite::*;
use divi_onnx::DType;
use divi_passes::import::{
    proto::{GraphProto, SparseTensorProto, StringStringEntryProto, type_proto},
    tensor_proto::TensorProto,
};
use divi_test::model::{graph, initializer, integers, node, value};
use std::path::PathBuf;

#[test]
fn types_and_constants() {
    let mut suite = Suite::new("constants");
    let input = |dtype: DType, dims: &[i64]| graph(vec![value("x", dtype, dims)], vec![], vec![relu("x", "y")], &["y"]);
    // Unknown dimensions as written by older exporters.
    suite.graph("a negative dimension", input(DType::F32, &[2, -1]), Imported);
    suite.graph("the smallest dimension", input(DType::F32, &[i64::MIN]), Imported);
    suite.graph("a shape whose size overflows", input(DType::F32, &[HUGE, HUGE]), Refused(&["input 'x'"]));
    suite.graph("a huge dimension", input(DType::F32, &[HUGE]), Either);
    suite.graph("a huge empty shape", input(DType::F32, &[HUGE, 0, HUGE]), Either);
    let mut foreign = input(DType::F32, &[2]);
    let mut set_type = |code: i32| {
        if let Some(type_proto::Value::TensorType(ty)) = &mut foreign.input[0].r#type.as_mut().unwrap().value {
            ty.elem_type = Some(code);
        }
        foreign.clone()
    };
    for code in [i32::MIN, -1, 99, i32::MAX] {
        let graph = set_type(code);
        suite.graph("an unknown element type", graph, Refused(&["input 'x'", "element type"]));
    }
    suite.graph("no element type", set_type(0), Refused(&["input 'x'"]));

    let constant = |tensor: TensorProto| {
        graph(x(), vec![tensor], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    let w = |dtype, dims: &[i64], length| initializer("w", dtype, dims, vec![0; length]);
    suite.graph("a good initializer", constant(w(DType::F32, &[2], 8)), Imported);
    for (what, tensor) in [
        ("too few bytes", w(DType::F32, &[2], 7)),
        ("too many bytes", w(DType::F32, &[2], 9)),
        ("no bytes", w(DType::F32, &[2], 0)),
        ("a negative dimension", w(DType::F32, &[-2], 8)),
        ("a huge dimension", w(DType::F32, &[HUGE], 8)),
        ("dimensions that overflow", w(DType::F32, &[HUGE, HUGE], 8)),
        ("dimensions that overflow to the actual size", w(DType::F32, &[1 << 32, 1 << 32], 0)),
        ("an unknown type", TensorProto { data_type: 99, ..w(DType::F32, &[2], 8) }),
        ("no type", TensorProto { data_type: 0, ..w(DType::F32, &[2], 8) }),
        ("segments", TensorProto { has_segment: true, ..w(DType::F32, &[2], 8) }),
        ("strings in bytes", w(DType::String, &[2], 8)),
    ] {
        // Segments are not serialized by this writer, so the model is valid again.
        let expected = if what == "segments" { Imported } else { Refused(&["initializer 'w'"]) };
        suite.graph(what, constant(tensor), expected);
    }
    let twice = graph(x(), vec![w(DType::F32, &[2], 8), w(DType::F32, &[2], 8)], vec![relu("x", "y")], &["y"]);
    suite.graph("an initializer twice", twice, Refused(&["'w'"]));
    let nameless = graph(x(), vec![initializer("", DType::F32, &[1], vec![0; 4])], vec![relu("x", "y")], &["y"]);
    suite.graph("an initializer without a name", nameless, Refused(&["initializer"]));
    for dims in [&[][..], &[1], &[2, 2], &[0]] {
        let count = dims.iter().product::<i64>() as usize;
        let words = TensorProto { raw_data: None, string_data: vec!["a".into(); count], ..w(DType::String, dims, 0) };
        suite.graph("strings", constant(words), Imported);
    }
    let latin = TensorProto { raw_data: None, string_data: vec![vec![0xff].into()], ..w(DType::String, &[1], 0) };
    suite.graph("strings that are not UTF-8", constant(latin), Refused(&["'w'", "UTF-8"]));

    let sparse = |dims: &[i64], values: TensorProto, indices: TensorProto| GraphProto {
        sparse_initializer: vec![SparseTensorProto {
            values: Some(values),
            indices: Some(indices),
            dims: dims.to_vec(),
        }],
        ..graph(x(), vec![], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    suite.graph("a sparse constant", sparse(&[4], w(DType::F32, &[1], 4), integers("", &[3])), Imported);
    for (what, dims, index) in [
        ("a huge sparse constant", LARGE, 3),
        ("a sparse constant of negative size", -4, 3),
        ("a sparse index out of range", 4, 4),
        ("a sparse index below zero", 4, -1),
        ("a sparse index that overflows", 4, i64::MAX),
    ] {
        let graph = sparse(&[dims], w(DType::F32, &[1], 4), integers("", &[index]));
        suite.graph(what, graph, Refused(&["initializer 'w'"]));
    }
    suite.finish();
}

#[test]
fn external_data() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile-external");
    std::fs::create_dir_all(folder.join("inside")).unwrap();
    std::fs::write(folder.join("secret.bin"), [0; 64]).unwrap();
    std::fs::write(folder.join("inside/weights.bin"), [0; 64]).unwrap();
    let link = folder.join("inside/link.bin");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink("../secret.bin", &link).unwrap();
    let mut suite = Suite::new("external");
    suite.path = Some(folder.join("inside/hostile.onnx"));
    let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let external = |dims: &[i64], entries: Vec<StringStringEntryProto>| {
        let tensor = TensorProto {
            raw_data: None,
            external_data: entries,
            data_location: 1,
            ..initializer("w", DType::F32, dims, vec![])
        };
        graph(x(), vec![tensor], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    suite.graph("weights in the same folder", external(&[4], vec![entry("location", "weights.bin")]), Imported);
    suite.graph("weights in a missing file", external(&[4], vec![entry("location", "later.bin")]), Imported);
    let absolute = folder.join("secret.bin").display().to_string();
    for location in [
        "../secret.bin",
        "a/../../secret.bin",
        &absolute,
        "/etc/passwd",
        "link.bin",
        "",
        ".",
        "..",
        "a\0b",
        "inside/..",
    ] {
        let graph = external(&[4], vec![entry("location", location)]);
        suite.graph(&format!("weights at '{location}'"), graph, Refused(&["initializer 'w'", "folder"]));
    }
    suite.graph("weights without a location", external(&[4], vec![]), Refused(&["initializer 'w'", "location"]));
    let at = |offset: &str, length: &str| {
        vec![entry("location", "weights.bin"), entry("offset", offset), entry("length", length)]
    };
    suite.graph("weights at an offset", external(&[4], at("48", "16")), Imported);
    for (offset, length) in [
        ("49", "16"),
        ("-1", "16"),
        ("0", "-16"),
        ("0", "17"),
        ("0", "0"),
        ("x", "16"),
        ("", "16"),
        ("18446744073709551615", "16"),
        ("18446744073709551616", "16"),
    ] {
        let graph = external(&[4], at(offset, length));
        suite.graph(&format!("weights at {offset}+{length}"), graph, Refused(&["initializer 'w'"]));
    }
    suite.graph("weights of a huge shape", external(&[HUGE], at("0", "16")), Refused(&["initializer 'w'"]));
    suite.finish();
}
