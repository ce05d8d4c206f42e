//! The ONNX schema.

fn main() {
    compile_schema();
}

/// Tensors are decoded by hand, text as text, and bytes alias the file.
fn compile_schema() {
    const SCHEMA: &str = "proto/onnx.proto";
    println!("cargo:rerun-if-changed={SCHEMA}");
    let descriptors = protox::compile([SCHEMA], ["proto"]).expect("the schema compiles");
    prost_build::Config::new()
        .bytes(["."])
        .extern_path(".onnx.TensorProto", "crate::import::tensor_proto::TensorProto")
        .compile_fds(descriptors)
        .expect("the schema compiles");
}
