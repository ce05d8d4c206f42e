//! ONNX's protobuf messages, generated from `proto/onnx.proto`.

#![allow(missing_docs, clippy::all, unreachable_pub)]

include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
