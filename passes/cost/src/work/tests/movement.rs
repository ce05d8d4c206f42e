//! Views, copies, gathers.

use super::super::viewed_operand;
use super::{Case, Class, F32, Geometry, I64};
use divi_onnx::Op;

#[test]
fn views_move_nothing() {
    Case::new("Reshape").input("float[2x3]").list(&[6]).does(Class::View, 0).moves(0, 0, 0).resides(I64);
    Case::new("Identity").input("float[2x3]").does(Class::View, 0).moves(0, 0, 0);
    Case::new("Flatten").input("float[2x3x4]").does(Class::View, 0).moves(0, 0, 0);
    Case::new("Shape").input("float[?x3]").does(Class::View, 0).moves(0, 0, 0);
    Case::new("BitCast").input("float[3]").int("to", 6).does(Class::View, 0).moves(0, 0, 0);
    // A view of an unknown shape takes no time either.
    Case::new("Unsqueeze").input("float[?x3]").list(&[0]).does(Class::View, 0).moves(0, 0, 0);
}

#[test]
fn views_share_their_operand() {
    let viewed = |case: Case| viewed_operand(Op::from_name(case.op).unwrap(), &case.work());
    assert_eq!(viewed(Case::new("Flatten").input("float[2x3]")), Some(0));
    assert_eq!(viewed(Case::new("Cast").input("float[2]").int("to", 1)), Some(0));
    assert_eq!(viewed(Case::new("Cast").input("float[2]").int("to", 7)), None);
    assert_eq!(viewed(Case::new("Shape").input("float[2x3]")), None);
    assert_eq!(viewed(Case::new("Relu").input("float[2x3]")), None);
}

#[test]
fn transposing_axes_of_size_one_is_a_view() {
    let transpose = |ty, order| Case::new("Transpose").input(ty).ints("perm", order);
    transpose("float[2x128x12x64]", &[0, 2, 1, 3])
        .does(Class::Copy, 0)
        .moves(F32 * 2 * 128 * 12 * 64, 0, F32 * 2 * 128 * 12 * 64)
        .loops(Geometry::Elements { count: 2 * 128 * 12 * 64 });
    transpose("float[2x1x12x64]", &[0, 2, 1, 3]).does(Class::View, 0).moves(0, 0, 0);
    transpose("float[2x3]", &[0, 1]).does(Class::View, 0);
    Case::new("Transpose").input("float[3x5]").does(Class::Copy, 0);
    Case::new("Transpose").input("float[1x5]").does(Class::View, 0);
}

#[test]
fn copies_read_and_write_everything() {
    Case::new("Concat").input("float[1x64x8x8]").weights("float[1x32x8x8]").int("axis", 1).does(Class::Copy, 0).moves(
        F32 * 64 * 64,
        F32 * 32 * 64,
        F32 * 96 * 64,
    );
    Case::new("Split")
        .input("float[6x4]")
        .list(&[2, 4])
        .outputs(2)
        .does(Class::Copy, 0)
        .moves(F32 * 24, 2 * I64, F32 * 24)
        .loops(Geometry::Elements { count: 24 });
    Case::new("Expand").input("float[3x1]").list(&[2, 3, 4]).does(Class::Copy, 0).moves(F32 * 3, 3 * I64, F32 * 24);
    Case::new("Tile").input("float[2x3]").list(&[2, 2]).does(Class::Copy, 0).moves(F32 * 6, 2 * I64, F32 * 24);
    Case::new("DepthToSpace").input("float[1x8x2x3]").int("blocksize", 2).does(Class::Copy, 0).moves(
        F32 * 48,
        0,
        F32 * 48,
    );
}

#[test]
fn cuts_read_what_they_keep() {
    Case::new("Slice").input("float[100x4]").list(&[10]).list(&[15]).does(Class::Copy, 0).moves(
        F32 * 5 * 4,
        2 * I64,
        F32 * 5 * 4,
    );
    Case::new("Pad").input("float[3x4]").list(&[1, 1, 1, 1]).does(Class::Copy, 0).moves(F32 * 12, 4 * I64, F32 * 5 * 6);
    Case::new("CenterCropPad").input("float[10x4]").list(&[6, 4]).does(Class::Copy, 0).moves(
        F32 * 24,
        2 * I64,
        F32 * 24,
    );
}

#[test]
fn gathers_read_rows_of_a_resident_table() {
    Case::new("Gather")
        .weights("float[50257x768]")
        .input("int64[1x128]")
        .does(Class::Gather, 0)
        .moves(I64 * 128, F32 * 128 * 768, F32 * 128 * 768)
        .resides(F32 * 50257 * 768)
        .loops(Geometry::Elements { count: 128 * 768 });
    // A small table is read once, however often its rows are gathered.
    Case::new("Gather").weights("float[2x768]").input("int64[1x128]").moves(I64 * 128, F32 * 2 * 768, F32 * 128 * 768);
    Case::new("GatherElements").input("float[100x3]").input("int64[2x3]").moves((F32 + I64) * 6, 0, F32 * 6);
    Case::new("GatherND").input("float[10x20x4]").input("int64[5x2]").moves(F32 * 5 * 4 + I64 * 10, 0, F32 * 5 * 4);
}

#[test]
fn scatters_copy_and_combine() {
    let scatter = |op| Case::new(op).input("float[10x3]").input("int64[2x3]").input("float[2x3]");
    scatter("ScatterElements").does(Class::Gather, 0).moves(F32 * 30 + I64 * 6 + F32 * 6, 0, F32 * 30);
    scatter("ScatterElements").str("reduction", "add").does(Class::Gather, 6);
    Case::new("ScatterND").input("float[10x3]").input("int64[2x1]").input("float[2x3]").does(Class::Gather, 0);
    Case::new("TensorScatter").input("float[1x2x100x8]").input("float[1x2x1x8]").does(Class::Gather, 0).moves(
        F32 * 2 * 101 * 8,
        0,
        F32 * 2 * 100 * 8,
    );
    Case::new("OneHot").input("int64[5]").scalar(10).weights("float[2]").does(Class::Gather, 0).moves(
        I64 * 5,
        I64 + F32 * 2,
        F32 * 50,
    );
}

#[test]
fn data_dependent_results_have_their_maximum_size() {
    Case::new("NonZero").input("float[4x5]").does(Class::Gather, 20).moves(F32 * 20, 0, I64 * 2 * 20);
    Case::new("Compress").input("float[4x5]").input("bool[4]").int("axis", 0).does(Class::Gather, 0).moves(
        F32 * 20 + 4,
        0,
        F32 * 20,
    );
    Case::new("Unique").input("float[16]").outputs(2).does(Class::Other, 16 * 4).moves(F32 * 16, 0, (F32 + I64) * 16);
    Case::new("NonMaxSuppression")
        .input("float[1x1000x4]")
        .input("float[1x80x1000]")
        .list(&[20])
        .does(Class::Other, 80 * (1000 * 10 + 16 * 20 * 1000))
        .moves(F32 * (4000 + 80000), I64, I64 * 3 * 80 * 20);
}

#[test]
fn losses_read_one_score_per_sample() {
    Case::new("NegativeLogLikelihoodLoss")
        .input("float[4x5x6]")
        .input("int64[4x6]")
        .weights("float[5]")
        .does(Class::Gather, 3 * 24)
        .moves(F32 * 24 + I64 * 24, F32 * 5, F32);
}

#[test]
fn unknown_operators_count_one_operation_per_element() {
    Case::new("FancyOp")
        .input("float[2x3]")
        .none()
        .weights("float16[7]")
        .results(&["float[4]", "int64[5]"])
        .does(Class::Other, 4 + 5)
        .moves(F32 * 6, 2 * 7, F32 * 4 + I64 * 5)
        .resides(2 * 7);
    Case::new("Loop").input("string[3]").results(&["float[2]"]).does(Class::Other, 2).moves(16 * 3, 0, F32 * 2);
}
