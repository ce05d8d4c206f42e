//! Elementwise operators.

use super::super::elementwise::{ERF, EXP, LOG, POW, SIGMOID, TANH};
use super::{Case, Class, F32, Geometry, I64};
use divi_onnx::{DType, Tensor};

fn unary(op: &'static str) -> Case {
    Case::new(op).input("float[2x3x4]")
}

#[test]
fn simple_operations() {
    unary("Relu").does(Class::Elementwise, 24).moves(F32 * 24, 0, F32 * 24).loops(Geometry::Elements { count: 24 });
    unary("LeakyRelu").does(Class::Elementwise, 2 * 24);
    unary("HardSigmoid").does(Class::Elementwise, 4 * 24);
    unary("HardSwish").does(Class::Elementwise, 5 * 24);
    unary("Sqrt").does(Class::Elementwise, 24);
    unary("PRelu").weights("float[3x1]").does(Class::Elementwise, 2 * 24).moves(F32 * 24, F32 * 3, F32 * 24);
}

#[test]
fn operands_broadcast() {
    let add = Case::new("Add").input("float[4x1]").weights("float[3]");
    add.does(Class::Elementwise, 4 * 3).moves(F32 * 4, F32 * 3, F32 * 12).resides(F32 * 3);
    Case::new("Less")
        .input("int64[5]")
        .input("int64[]")
        .does(Class::Elementwise, 5)
        .moves(I64 * 6, 0, 5)
        .computes_in(DType::I64);
    Case::new("Where")
        .input("bool[2x1]")
        .input("float[3]")
        .weights("float[]")
        .does(Class::Elementwise, 6)
        .moves(2 + F32 * 3, F32, F32 * 6)
        .computes_in(DType::F32);
}

#[test]
fn variadic_operators_count_their_operands() {
    let three = |op| Case::new(op).input("float[4]").input("float[4]").input("float[4]");
    three("Sum").does(Class::Elementwise, 2 * 4).moves(F32 * 12, 0, F32 * 4);
    three("Max").does(Class::Elementwise, 2 * 4);
    three("Mean").does(Class::Elementwise, (2 + 1) * 4);
    Case::new("Sum").input("float[4]").does(Class::Elementwise, 0);
}

#[test]
fn present_bounds_count() {
    unary("Clip").weights("float[]").weights("float[]").does(Class::Elementwise, 2 * 24).moves(F32 * 24, 8, F32 * 24);
    unary("Clip").none().weights("float[]").does(Class::Elementwise, 24);
    unary("Clip").does(Class::Elementwise, 0);
}

#[test]
fn casts() {
    unary("Cast").int("to", 10).does(Class::Elementwise, 24).moves(F32 * 24, 0, 2 * 24);
    unary("Cast").int("to", 1).does(Class::View, 0).moves(0, 0, 0);
    unary("CastLike").input("float16[100]").does(Class::Elementwise, 24).moves(F32 * 24, 0, 2 * 24);
}

#[test]
fn functions() {
    unary("Exp").does(Class::Transcendental, EXP * 24);
    unary("Erf").does(Class::Transcendental, ERF * 24);
    unary("Tanh").does(Class::Transcendental, TANH * 24);
    unary("Sigmoid").does(Class::Transcendental, SIGMOID * 24);
    unary("Gelu").does(Class::Transcendental, (ERF + 4) * 24);
    unary("Gelu").str("approximate", "tanh").does(Class::Transcendental, (TANH + 8) * 24);
    unary("Swish").does(Class::Transcendental, (SIGMOID + 1) * 24);
    unary("Swish").float("alpha", 1.702).does(Class::Transcendental, (SIGMOID + 2) * 24);
    unary("Softplus").does(Class::Transcendental, (EXP + LOG + 1) * 24);
    unary("SwiGLU").input("float[2x3x4]").does(Class::Transcendental, (SIGMOID + 2) * 24).moves(
        F32 * 2 * 24,
        0,
        F32 * 24,
    );
}

#[test]
fn powers() {
    let pow = |exponent| unary("Pow").tensor(Tensor::scalar_f32(exponent));
    pow(2.0).does(Class::Elementwise, 24).moves(F32 * 24, F32, F32 * 24);
    pow(3.0).does(Class::Elementwise, 2 * 24);
    pow(0.5).does(Class::Elementwise, 24);
    pow(2.4).does(Class::Transcendental, POW * 24);
    unary("Pow").scalar(2).does(Class::Elementwise, 24);
    unary("Pow").input("float[4]").does(Class::Transcendental, POW * 24);
}

#[test]
fn rotations() {
    Case::new("RotaryEmbedding")
        .input("float[2x8x16x64]")
        .weights("float[2048x32]")
        .weights("float[2048x32]")
        .input("int64[2x16]")
        .does(Class::Elementwise, 3 * 2 * 8 * 16 * 64)
        .moves(F32 * 2 * 8 * 16 * 64 + I64 * 2 * 16, 2 * F32 * (2 * 16) * 32, F32 * 2 * 8 * 16 * 64)
        .resides(2 * F32 * 2048 * 32);
    Case::new("RotaryEmbedding")
        .input("float[2x16x512]")
        .input("float[2x16x16]")
        .input("float[2x16x16]")
        .int("num_heads", 8)
        .int("rotary_embedding_dim", 32)
        .does(Class::Elementwise, 3 * 2 * 16 * 8 * 32);
}

#[test]
fn quantization() {
    let scaled = |op, ty| Case::new(op).input(ty).weights("float[]");
    scaled("QuantizeLinear", "float[10]").weights("int8[]").does(Class::Elementwise, 4 * 10).moves(40, 5, 10);
    scaled("QuantizeLinear", "float[10]").does(Class::Elementwise, 3 * 10);
    scaled("DequantizeLinear", "int8[10]").weights("int8[]").does(Class::Elementwise, 2 * 10).computes_in(DType::F32);
    scaled("DequantizeLinear", "int4[3x3]").does(Class::Elementwise, 9).moves(5, F32, F32 * 9);
    Case::new("DynamicQuantizeLinear").input("float[10]").outputs(3).does(Class::Normalization, (2 + 4) * 10).moves(
        F32 * 10,
        0,
        10 + 4 + 1,
    );
}
