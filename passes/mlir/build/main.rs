//! Compiles the ONNX schema, and generates and compiles the C++ and Rust glue of the passes.

mod cpp;
mod records;
mod rust;

use divi_build::{cxx, link_shared_highs, link_shared_mlir, out_dir, tablegen, tablegen_records};
use std::{env, fs};

/// Sources in C++: what needs classes of MLIR that its C API does not have.
const FILES: [&str; 6] = [
    "cpp/ConvertLinalg.cpp",
    "cpp/Linalg.cpp",
    "cpp/LinalgToOnnx.cpp",
    "cpp/OnnxBuilder.cpp",
    "cpp/Passes.cpp",
    "cpp/ScalarToOnnx.cpp",
];

fn main() {
    compile_schema();
    tablegen("Passes.td", "Passes.h.inc", &["-gen-pass-decls", "-name=Divi"]);
    let passes = records::read(&tablegen_records("Passes.td"));
    for (file, text) in [
        ("declared.rs", rust::declarations(&passes)),
        ("entry_points.rs", rust::entry_points(&passes)),
        ("PassConstructors.h.inc", cpp::constructors(&passes)),
        ("PassClasses.cpp.inc", cpp::classes(&passes)),
    ] {
        fs::write(out_dir().join(file), text).expect("the output directory is writable");
    }
    println!("cargo:rerun-if-changed=build");
    let dialect = env::var("DEP_DIVI_DIALECT_INCLUDE").expect("divi-dialect exports its include directories");
    let mut build = cxx();
    build.includes(dialect.split(':')).files(FILES).compile("divi_passes");
    link_shared_mlir();
    link_shared_highs();
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:include={here}/cpp:{}", out_dir().display());
}

/// Compiles the ONNX schema. `bytes` fields alias the file; `TensorProto` has a hand-written decoder.
fn compile_schema() {
    const SCHEMA: &str = "proto/onnx.proto";
    println!("cargo:rerun-if-changed={SCHEMA}");
    let descriptors = protox::compile([SCHEMA], ["proto"]).expect("the schema compiles");
    prost_build::Config::new()
        .bytes(["."])
        // Boxed because they are large, and few of the many attributes have them.
        .boxed(".onnx.AttributeProto.g")
        .boxed(".onnx.AttributeProto.sparse_tensor")
        .boxed(".onnx.AttributeProto.t")
        .boxed(".onnx.AttributeProto.tp")
        .extern_path(".onnx.TensorProto", "crate::import::tensor_proto::TensorProto")
        .compile_fds(descriptors)
        .expect("the schema compiles");
}
