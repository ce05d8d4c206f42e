//! Matrix products.

use super::super::elementwise::{EXP, REQUANTIZE, TANH};
use super::{Case, Class, F32, Geometry};
use divi_onnx::DType;

fn product(count: u64, rows: u64, columns: u64, depth: u64) -> Geometry {
    Geometry::Product { count, rows, columns, depth }
}

#[test]
fn gemm_transposes_and_adds() {
    Case::new("Gemm")
        .input("float[8x512]")
        .weights("float[1000x512]")
        .weights("float[1000]")
        .int("transB", 1)
        .does(Class::MatMul, 2 * 8 * 1000 * 512 + 8 * 1000)
        .moves(F32 * 8 * 512, F32 * (1000 * 512 + 1000), F32 * 8 * 1000)
        .loops(product(1, 8, 1000, 512));
    Case::new("Gemm")
        .input("float[5x3]")
        .input("float[5x7]")
        .int("transA", 1)
        .does(Class::MatMul, 2 * 3 * 7 * 5)
        .loops(product(1, 3, 7, 5));
}

#[test]
fn gemm_scales() {
    let case = || Case::new("Gemm").input("float[3x5]").weights("float[5x7]").weights("float[7]");
    case().float("alpha", 0.5).does(Class::MatMul, 2 * 3 * 7 * 5 + 3 * 7 + 3 * 7);
    case().float("alpha", 1.0).float("beta", 0.5).does(Class::MatMul, 2 * 3 * 7 * 5 + 3 * 7 + 7);
}

#[test]
fn shared_weights_make_one_product() {
    Case::new("MatMul")
        .input("float[2x128x768]")
        .weights("float[768x3072]")
        .does(Class::MatMul, 2 * 2 * 128 * 3072 * 768)
        .moves(F32 * 2 * 128 * 768, F32 * 768 * 3072, F32 * 2 * 128 * 3072)
        .loops(product(1, 2 * 128, 3072, 768));
    Case::new("MatMul").input("float[2x12x64x32]").weights("float[1x1x32x16]").loops(product(1, 2 * 12 * 64, 16, 32));
}

#[test]
fn batches_broadcast() {
    Case::new("MatMul")
        .input("float[2x12x128x64]")
        .input("float[2x12x64x128]")
        .does(Class::MatMul, 2 * (2 * 12) * 128 * 128 * 64)
        .loops(product(2 * 12, 128, 128, 64));
    Case::new("MatMul")
        .input("float[3x1x4x5]")
        .input("float[7x5x6]")
        .does(Class::MatMul, 2 * (3 * 7) * 4 * 6 * 5)
        .moves(F32 * (3 * 4 * 5 + 7 * 5 * 6), 0, F32 * 3 * 7 * 4 * 6)
        .loops(product(3 * 7, 4, 6, 5));
    // The innermost batch axis shares its right-hand side, the outer one does not.
    Case::new("MatMul").input("float[3x8x4x5]").input("float[3x1x5x6]").loops(product(3, 8 * 4, 6, 5));
    Case::new("MatMul").input("float[4x5]").input("float[7x5x6]").loops(product(7, 4, 6, 5));
}

#[test]
fn vectors_are_rows_and_columns() {
    Case::new("MatMul").input("float[5]").input("float[5]").does(Class::MatMul, 2 * 5).loops(product(1, 1, 1, 5));
    Case::new("MatMul").input("float[3x4x5]").input("float[5]").does(Class::MatMul, 2 * 3 * 4 * 5).loops(product(
        1,
        3 * 4,
        1,
        5,
    ));
    Case::new("MatMul").input("float[5]").input("float[3x5x2]").does(Class::MatMul, 2 * 3 * 2 * 5);
}

#[test]
fn integers() {
    Case::new("MatMulInteger")
        .input("uint8[4x32]")
        .weights("int8[32x16]")
        .input("uint8[]")
        .weights("int8[]")
        .does(Class::MatMul, 2 * 4 * 16 * 32)
        .moves(4 * 32 + 1, 32 * 16 + 1, 4 * 4 * 16)
        .computes_in(DType::U8);
    let case = Case::new("QLinearMatMul").input("int8[2x4x32]").weights("float[]").weights("int8[]");
    case.weights("int8[32x16]")
        .weights("float[]")
        .weights("int8[]")
        .weights("float[]")
        .weights("int8[]")
        .does(Class::MatMul, 2 * 2 * 4 * 16 * 32 + REQUANTIZE * 2 * 4 * 16)
        .moves(2 * 4 * 32, 32 * 16 + 3 * (4 + 1), 2 * 4 * 16)
        .loops(product(1, 2 * 4, 16, 32));
}

#[test]
fn packed_weights_round_up_to_bytes() {
    Case::new("Custom").input("float[3x5]").weights("int4[5x3]").results(&["float[3x3]"]).moves(F32 * 15, 8, F32 * 9);
}

#[test]
fn einsum_counts_the_index_space() {
    let two = |equation, a: &str, b: &str| Case::new("Einsum").input(a).input(b).str("equation", equation);
    two("bhid,bhjd->bhij", "float[2x3x4x5]", "float[2x3x6x5]")
        .does(Class::MatMul, 2 * (2 * 3) * 4 * 6 * 5)
        .loops(product(2 * 3, 4, 6, 5));
    two("...ij,jk", "float[7x2x3x4]", "float[4x5]").does(Class::MatMul, 2 * (7 * 2) * 3 * 5 * 4).loops(product(
        1,
        7 * 2 * 3,
        5,
        4,
    ));
    two("...i,...i->...", "float[3x1x4]", "float[3x6x4]").does(Class::MatMul, 2 * (3 * 6) * 4);
    two("i,j->ij", "float[3]", "float[4]").does(Class::MatMul, 3 * 4);
    Case::new("Einsum")
        .input("float[2x3]")
        .input("float[3x4]")
        .input("float[4x5]")
        .str("equation", "ij,jk,kl->il")
        .does(Class::MatMul, 3 * (2 * 3 * 4 * 5))
        .loops(Geometry::Reduce { outer: 2 * 5, inner: 3 * 4 });
}

#[test]
fn einsum_of_one_operand() {
    let one = |equation, a: &str| Case::new("Einsum").input(a).str("equation", equation);
    one("ij->ji", "float[3x4]").does(Class::Copy, 0).moves(F32 * 12, 0, F32 * 12);
    one("ij->i", "float[3x4]").does(Class::Reduction, 12).loops(Geometry::Reduce { outer: 3, inner: 4 });
    one("ii->i", "float[4x4]").does(Class::Copy, 0);
    one("ii", "float[4x4]").does(Class::Reduction, 4);
}

#[test]
fn attention_is_two_products_and_a_softmax() {
    let scores = 2 * 8 * 16 * 32;
    let case = || Case::new("Attention").input("float[2x8x16x64]").input("float[2x4x32x64]").input("float[2x4x32x48]");
    case()
        .does(Class::MatMul, 2 * scores * 64 + scores + (EXP + 4) * scores + 2 * 8 * 16 + 2 * scores * 48)
        .scratch(F32 * scores)
        .moves(F32 * (2 * 8 * 16 * 64 + 2 * 4 * 32 * 64 + 2 * 4 * 32 * 48), 0, F32 * 2 * 8 * 16 * 48)
        .loops(product(2 * 8, 16, 32, 64));
    let plain = case().work().flops;
    case().input("float[16x32]").does(Class::MatMul, plain + scores);
    case().int("is_causal", 1).does(Class::MatMul, plain + scores);
    case().float("softcap", 30.0).does(Class::MatMul, plain + scores * (TANH + 2));
}

#[test]
fn attention_reads_the_past() {
    let scores = 2 * 8 * (100 + 1);
    Case::new("Attention")
        .input("float[2x1x512]")
        .input("float[2x1x512]")
        .input("float[2x1x512]")
        .none()
        .input("float[2x8x100x64]")
        .input("float[2x8x100x64]")
        .int("q_num_heads", 8)
        .int("kv_num_heads", 8)
        .outputs(3)
        .does(Class::MatMul, 2 * scores * 64 + scores + (EXP + 4) * scores + 2 * 8 + 2 * scores * 64)
        .loops(product(2 * 8, 1, 101, 64))
        .moves(F32 * (3 * 2 * 512 + 2 * 2 * 8 * 100 * 64), 0, F32 * (2 * 512 + 2 * 2 * 8 * 101 * 64));
}

#[test]
fn linear_attention_updates_a_state() {
    let case = |rule| {
        let case = Case::new("LinearAttention").input("float[2x10x32]").input("float[2x10x16]").input("float[2x10x12]");
        case.int("q_num_heads", 4).int("kv_num_heads", 2).str("update_rule", rule).outputs(2)
    };
    let (steps, state) = (2 * 10, 8 * 6);
    let reading = 4 * (2 * state + 6);
    case("linear").does(Class::Recurrent, steps * (2 * (2 * state) + reading)).loops(product(steps * 4, 1, 6, 8));
    case("gated_delta")
        .none()
        .input("float[2x10x2]")
        .input("float[2x10x2]")
        .does(Class::Recurrent, steps * (2 * (2 * state + state + 2 * state + 2 * 6) + reading));
}

#[test]
fn determinant_by_elimination() {
    Case::new("Det").input("float[5x6x6]").does(Class::Other, 5 * (2 * 6 * 6 * 6 / 3)).moves(F32 * 5 * 36, 0, F32 * 5);
}
