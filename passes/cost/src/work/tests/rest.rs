//! Recurrent layers, images, signals, and operators that create tensors.

use super::super::elementwise::{EXP, LOG, RANDOM, SIGMOID, SIN, TANH};
use super::{Attr, Case, Class, F32, Geometry, I64};
use divi_onnx::{DType, Tensor};

#[test]
fn lstm() {
    // 7 steps, batch size 3, 10 inputs, 20 hidden units.
    let case = || Case::new("LSTM").input("float[7x3x10]").weights("float[1x80x10]").weights("float[1x80x20]");
    let cells = 7 * 3;
    let activations = 3 * SIGMOID + 2 * TANH;
    let bare = 2 * 80 * (10 + 20) + 80 + 20 * (4 + activations);
    case()
        .int("hidden_size", 20)
        .outputs(3)
        .does(Class::Recurrent, cells * bare)
        .moves(F32 * 7 * 3 * 10, F32 * 80 * (10 + 20), F32 * (7 * 3 * 20 + 2 * 3 * 20))
        .scratch(F32 * cells * 80)
        .loops(Geometry::Product { count: 7, rows: 3, columns: 80, depth: 30 });
    case().weights("float[1x160]").does(Class::Recurrent, cells * (bare + 80));
    case()
        .weights("float[1x160]")
        .none()
        .none()
        .none()
        .weights("float[1x60]")
        .does(Class::Recurrent, cells * (bare + 80 + 6 * 20));
    // The node has only the result for the last state.
    case().results(&["float[1x3x20]"]).does(Class::Recurrent, cells * bare);
}

#[test]
fn both_directions_and_other_activations() {
    let case = || Case::new("GRU").input("float[7x3x10]").weights("float[2x60x10]").weights("float[2x60x20]");
    let each = |activations| 2 * 60 * (10 + 20) + 60 + 20 * (5 + activations);
    let default = each(2 * SIGMOID + TANH);
    case().str("direction", "bidirectional").does(Class::Recurrent, 7 * 3 * 2 * default);
    let names = ["Sigmoid", "Tanh", "HardSigmoid", "Relu"].map(String::from).to_vec();
    case()
        .str("direction", "bidirectional")
        .attr("activations", Attr::Strs(names))
        .does(Class::Recurrent, 7 * 3 * (default + each(2 * 4 + 1)));
    Case::new("RNN")
        .input("float[3x7x10]")
        .weights("float[1x20x10]")
        .weights("float[1x20x20]")
        .int("layout", 1)
        .does(Class::Recurrent, 3 * 7 * (2 * 20 * 30 + 20 + 20 * TANH))
        .loops(Geometry::Product { count: 7, rows: 3, columns: 20, depth: 30 });
}

#[test]
fn resizing_copies_or_interpolates() {
    let case = |sizes: &[i64]| Case::new("Resize").input("float[1x3x10x10]").none().none().list(sizes);
    case(&[1, 3, 20, 20]).does(Class::Copy, 0).moves(F32 * 300, 4 * I64, F32 * 1200);
    case(&[1, 3, 5, 5]).does(Class::Copy, 0).moves(F32 * 75, 4 * I64, F32 * 75);
    case(&[1, 3, 20, 20]).str("mode", "linear").does(Class::AveragePool, 2 * 4 * 1200);
    case(&[1, 3, 20, 10]).str("mode", "linear").does(Class::AveragePool, 2 * 2 * 600);
    case(&[1, 3, 20, 20]).str("mode", "cubic").does(Class::AveragePool, 2 * 16 * 1200);
    case(&[1, 3, 5, 5]).str("mode", "linear").int("antialias", 1).does(Class::AveragePool, 2 * (4 * 4) * 75);
}

#[test]
fn grids() {
    let case = || Case::new("GridSample").input("float[1x3x8x8]").input("float[1x5x6x2]");
    case().does(Class::Gather, 2 * 60 + (2 * 4) * 90);
    case().str("mode", "nearest").does(Class::Gather, 2 * 60).moves(F32 * (90 + 60), 0, F32 * 90);
    Case::new("AffineGrid").input("float[1x2x3]").list(&[1, 3, 5, 6]).does(Class::Elementwise, 4 * 60);
}

#[test]
fn transforms() {
    Case::new("DFT").input("float[3x64x1]").does(Class::Other, 3 * (5 * 64 * 6)).moves(
        F32 * 3 * 64,
        0,
        F32 * 3 * 64 * 2,
    );
    Case::new("STFT")
        .input("float[2x128x1]")
        .scalar(8)
        .weights("float[16]")
        .does(Class::Other, 2 * 15 * (5 * 16 * 4 + 16));
    Case::new("HannWindow").scalar(10).does(Class::Transcendental, (SIN + 3) * 10).computes_in(DType::F32);
    let mel = Case::new("MelWeightMatrix").scalar(8).scalar(16).scalar(8192);
    mel.weights("float[]").weights("float[]").does(Class::Elementwise, 6 * (9 * 8) + (LOG + EXP) * (8 + 2));
}

#[test]
fn tensor_creation() {
    Case::new("ConstantOfShape").list(&[2, 3]).does(Class::Copy, 0).moves(0, 0, F32 * 6).computes_in(DType::F32);
    Case::new("EyeLike").input("float[3x3]").does(Class::Copy, 0).moves(0, 0, F32 * 9);
    Case::new("Range").scalar(0).scalar(10).scalar(1).does(Class::Elementwise, 2 * 10).moves(0, 3 * I64, I64 * 10);
    Case::new("RandomUniform").ints("shape", &[5]).does(Class::Elementwise, (RANDOM + 2) * 5).moves(0, 0, F32 * 5);
    Case::new("RandomNormalLike").input("float[5]").does(Class::Transcendental, (RANDOM + LOG + SIN + 4) * 5).moves(
        0,
        0,
        F32 * 5,
    );
    Case::new("Multinomial")
        .input("float[2x8]")
        .int("sample_size", 3)
        .does(Class::Softmax, (EXP + 5) * 16 + 2 + (RANDOM + 3) * (2 * 3));
}

#[test]
fn dropout_is_a_view_unless_in_training() {
    let case = || Case::new("Dropout").input("float[10]");
    case().does(Class::View, 0).moves(0, 0, 0);
    case().outputs(2).does(Class::Copy, 0).moves(0, 0, 10);
    let training = Tensor::from_ints(DType::Bool, vec![], &[1]).expect("a scalar");
    case().none().tensor(training).does(Class::Elementwise, (RANDOM + 2) * 10);
}

#[test]
fn n_grams_are_looked_up() {
    Case::new("TfIdfVectorizer")
        .input("int64[12]")
        .ints("ngram_indexes", &[0, 1, 2])
        .int("min_gram_length", 1)
        .int("max_gram_length", 2)
        .int("max_skip_count", 3)
        .does(Class::Other, 12 * 2 * 4);
}
