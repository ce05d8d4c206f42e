//! Unknown shapes are errors with a remedy; counts of huge shapes saturate.

use super::{Case, Class};

#[test]
fn unknown_dimensions_are_errors() {
    let relu = |ty| Case::new("Relu").input(ty);
    relu("float[?x3]").fails("dimension 0 of result 0 (float[?x3]) is unknown");
    relu("float[2x?]").fails("fix the batch or the shapes of the inputs (--batch, --input-shape)");
    relu("float[*]").fails("the rank of result 0 (float[*]) is unknown");
    Case::new("Conv").input("float[?x3x8x8]").weights("float[4x3x3x3]").fails("dimension 0 of operand 0");
    Case::new("MatMul").input("float[2x?x4]").weights("float[4x4]").fails("dimension 1 of operand 0 (float[2x?x4])");
    // The bytes of operands that a rule does not read are counted too.
    Case::new("Clip").input("float[4]").input("float[*]").results(&["float[4]"]).fails("the rank of operand 1");
}

#[test]
fn contradictions_are_errors() {
    Case::new("Conv").input("float[1x3x8]").results(&["float[4]"]).fails("operand 1 is missing");
    Case::new("Conv").input("float[3]").weights("float[3]").results(&["float[3]"]).fails("operand 0 must be");
    Case::new("Conv")
        .input("float[1x3x8]")
        .weights("float[3x3x3]")
        .int("group", 0)
        .results(&["float[1x3x6]"])
        .fails("attribute 'group' must be positive");
    Case::new("Conv").input("float[1x3x8]").weights("float[3x3x3]").results(&[]).fails("result 0 is missing");
    Case::new("Gemm")
        .input("float[3]")
        .weights("float[3x3]")
        .results(&["float[3]"])
        .fails("operand 0 must be a matrix");
    Case::new("MatMul").input("float[]").weights("float[3x3]").results(&["float[3]"]).fails("a vector or a matrix");
    Case::new("LSTM").input("float[3]").input("float[3]").input("float[3]").results(&["float[3]"]).fails("of rank 3");
    Case::new("Softmax").input("float[3]").int("axis", 5).results(&["float[3]"]).fails("axis 5 is outside");
    Case::new("Einsum").input("float[3]").str("equation", "ij->i").results(&["float[3]"]).fails("2 labels for rank 1");
    Case::new("Relu").input("float[-4]").results(&["float[-4]"]).fails("is -4, which is negative");
}

#[test]
fn huge_shapes_saturate() {
    let huge = "float[4611686018427387904x4611686018427387904]";
    Case::new("Relu").input(huge).results(&[huge]).does(Class::Elementwise, u64::MAX).moves(u64::MAX, 0, u64::MAX);
    Case::new("Conv")
        .input("float[4611686018427387904x3x99999999x99999999]")
        .weights("float[64x3x999999999x7]")
        .results(&["float[4611686018427387904x64x99999999x99999999]"])
        .does(Class::Conv, u64::MAX);
    Case::new("MatMul").input(huge).input(huge).results(&[huge]).does(Class::MatMul, u64::MAX);
    Case::new("TopK").input(huge).list(&[3]).results(&[huge, huge]).does(Class::Reduction, u64::MAX);
    Case::new("LSTM")
        .input("float[4611686018427387904x4611686018427387904x4]")
        .input(huge)
        .input("float[2x4611686018427387904x4611686018427387904]")
        .results(&[huge])
        .does(Class::Recurrent, u64::MAX);
}

#[test]
fn empty_tensors_are_no_work() {
    Case::new("Relu").input("float[0x4611686018427387904]").does(Class::Elementwise, 0).moves(0, 0, 0);
    Case::new("MatMul").input("float[0x4]").weights("float[4x5]").does(Class::MatMul, 0).moves(0, 80, 0);
    Case::new("Softmax").input("float[0x4]").does(Class::Softmax, 0);
    Case::new("ReduceSum").input("float[0x4]").list(&[1]).does(Class::Reduction, 0);
    Case::new("Gemm").input("float[4x0]").weights("float[0x5]").does(Class::MatMul, 0);
}
