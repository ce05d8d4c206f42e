//! Reductions, normalizations, softmax and pooling.

use super::super::elementwise::{EXP, LOG, POW};
use super::{Case, Class, F32, Geometry, I64};

fn rows(outer: u64, inner: u64) -> Geometry {
    Geometry::Reduce { outer, inner }
}

#[test]
fn reductions() {
    let case = |op| Case::new(op).input("float[2x3x4x5]").list(&[1, 3]);
    let (all, kept) = (2 * 3 * 4 * 5, 2 * 4);
    case("ReduceSum").does(Class::Reduction, all).moves(F32 * all, 2 * I64, F32 * kept).loops(rows(kept, 3 * 5));
    case("ReduceMean").does(Class::Reduction, all + kept);
    case("ReduceMax").does(Class::Reduction, all);
    case("ReduceL1").does(Class::Reduction, 2 * all);
    case("ReduceL2").does(Class::Reduction, 2 * all + kept);
    case("ReduceLogSum").does(Class::Reduction, all + LOG * kept);
    case("ReduceLogSumExp").does(Class::Reduction, (EXP + 3) * all + (LOG + 1) * kept);
    Case::new("ReduceSum").input("float[2x3]").does(Class::Reduction, 6).loops(rows(1, 6));
    Case::new("ArgMax").input("float[2x3x4]").int("axis", 2).does(Class::Reduction, 24).moves(F32 * 24, 0, I64 * 6);
    Case::new("CumSum").input("float[2x3x4]").scalar(1).does(Class::Reduction, 24).loops(rows(2 * 4, 3));
    Case::new("CumSum").input("float[2x3x4]").input("int64[]").does(Class::Reduction, 24).loops(rows(1, 24));
}

#[test]
fn top_k_uses_a_heap() {
    Case::new("TopK")
        .input("float[3x1000]")
        .list(&[5])
        .outputs(2)
        .does(Class::Reduction, 3 * 1000 * (1 + 3))
        .moves(F32 * 3000, I64, (F32 + I64) * 3 * 5)
        .loops(rows(3, 1000));
}

#[test]
fn softmax() {
    Case::new("Softmax")
        .input("float[2x12x128x128]")
        .does(Class::Softmax, (EXP + 4) * (2 * 12 * 128 * 128) + 2 * 12 * 128)
        .loops(rows(2 * 12 * 128, 128))
        .scratch(0);
    Case::new("Softmax")
        .input("float[2x3x4]")
        .int("axis", 1)
        .does(Class::Softmax, (EXP + 4) * 24 + 2 * 4)
        .loops(rows(2 * 4, 3));
    Case::new("LogSoftmax").input("float[2x3]").does(Class::Softmax, (EXP + 4) * 6 + LOG * 2);
    Case::new("Hardmax").input("float[2x3]").does(Class::Softmax, 2 * 6);
    Case::new("SoftmaxCrossEntropyLoss")
        .input("float[4x5x6]")
        .input("int64[4x6]")
        .does(Class::Softmax, (EXP + 4) * (4 * 5 * 6) + (LOG + 1) * (4 * 6))
        .moves(F32 * 120 + I64 * 24, 0, F32);
}

#[test]
fn batch_normalization_is_a_scale_and_a_shift() {
    let case = |op| {
        let case = Case::new(op).input("float[2x8x5x5]").weights("float[8]").weights("float[8]");
        case.weights("float[8]").weights("float[8]")
    };
    for op in ["BatchNormalizationInferenceMode", "BatchNormalization"] {
        case(op)
            .does(Class::BatchNorm, 2 * (2 * 8 * 25))
            .moves(F32 * 2 * 8 * 25, F32 * 4 * 8, F32 * 2 * 8 * 25)
            .loops(Geometry::Elements { count: 2 * 8 * 25 });
    }
    case("BatchNormalization")
        .int("training_mode", 1)
        .outputs(3)
        .does(Class::Normalization, 7 * (2 * 8 * 25) + 11 * 8)
        .loops(rows(8, 2 * 25));
}

#[test]
fn normalizations_by_computed_statistics() {
    Case::new("LayerNormalization")
        .input("float[2x128x768]")
        .weights("float[768]")
        .weights("float[768]")
        .does(Class::Normalization, 7 * (2 * 128 * 768) + 5 * (2 * 128))
        .moves(F32 * 2 * 128 * 768, F32 * 2 * 768, F32 * 2 * 128 * 768)
        .loops(rows(2 * 128, 768));
    Case::new("LayerNormalization")
        .input("float[2x3x4]")
        .weights("float[3x4]")
        .int("axis", 1)
        .does(Class::Normalization, 6 * 24 + 5 * 2);
    Case::new("RMSNormalization").input("float[6x8]").weights("float[8]").does(Class::Normalization, 4 * 48 + 4 * 6);
    let channels = |op| Case::new(op).input("float[2x8x5x5]").weights("float[8]").weights("float[8]");
    channels("InstanceNormalization").does(Class::Normalization, 7 * 400 + 5 * 16).loops(rows(16, 25));
    channels("GroupNormalization").int("num_groups", 4).does(Class::Normalization, 7 * 400 + 5 * 8).loops(rows(8, 50));
    Case::new("MeanVarianceNormalization")
        .input("float[2x8x5x5]")
        .does(Class::Normalization, 5 * 400 + 5 * 8)
        .loops(rows(8, 50));
    Case::new("LpNormalization").input("float[6x8]").does(Class::Normalization, 3 * 48 + 6);
    Case::new("LpNormalization").input("float[6x8]").int("p", 1).does(Class::Normalization, 3 * 48);
    Case::new("LRN").input("float[1x8x5x5]").int("size", 5).does(Class::Normalization, (1 + 5 + 2 + POW + 1) * 200);
}

#[test]
fn pooling_counts_taps() {
    let pool = |op| {
        let case = Case::new(op).input("float[1x64x112x112]").ints("kernel_shape", &[3, 3]);
        case.ints("strides", &[2, 2]).ints("pads", &[1, 1, 1, 1])
    };
    let outputs = 64 * 56 * 56;
    pool("MaxPoolSingleOut")
        .does(Class::MaxPool, 9 * outputs)
        .moves(F32 * 64 * 112 * 112, 0, F32 * outputs)
        .loops(rows(outputs, 9));
    pool("MaxPool").outputs(2).does(Class::MaxPool, 9 * outputs).moves(F32 * 64 * 112 * 112, 0, (F32 + I64) * outputs);
    pool("AveragePool").does(Class::AveragePool, (9 + 1) * outputs);
    pool("LpPool").does(Class::AveragePool, (2 * 9 + 1) * outputs);
    pool("LpPool").int("p", 3).does(Class::AveragePool, ((POW + 1) * 9 + POW) * outputs);
}

#[test]
fn global_pooling_is_a_reduction() {
    let pool = |op| Case::new(op).input("float[2x512x7x7]");
    pool("GlobalAveragePool")
        .does(Class::Reduction, (49 + 1) * (2 * 512))
        .moves(F32 * 2 * 512 * 49, 0, F32 * 2 * 512)
        .loops(rows(2 * 512, 49));
    pool("GlobalMaxPool").does(Class::Reduction, 49 * (2 * 512));
    pool("GlobalLpPool").does(Class::Reduction, (2 * 49 + 1) * (2 * 512));
}

#[test]
fn regions_are_pooled() {
    Case::new("MaxRoiPool")
        .input("float[1x3x8x8]")
        .input("float[5x5]")
        .ints("pooled_shape", &[2, 3])
        .does(Class::MaxPool, (4 * 3) * (5 * 3 * 2 * 3));
    Case::new("RoiAlign")
        .input("float[1x3x8x8]")
        .input("float[5x4]")
        .input("int64[5]")
        .int("output_height", 2)
        .int("output_width", 2)
        .int("sampling_ratio", 3)
        .does(Class::AveragePool, (9 * 4 * 2 + 1) * (5 * 3 * 2 * 2));
    Case::new("MaxUnpool")
        .input("float[1x1x2x2]")
        .input("int64[1x1x2x2]")
        .ints("kernel_shape", &[2, 2])
        .ints("strides", &[2, 2])
        .does(Class::Gather, 0)
        .moves((F32 + I64) * 4, 0, F32 * 16);
}
