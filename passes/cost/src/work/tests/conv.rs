//! Convolutions.

use super::super::elementwise::{REQUANTIZE, SIGMOID};
use super::{Case, Class, F32, Geometry, I64};
use divi_onnx::DType;

#[test]
fn dense() {
    Case::new("Conv")
        .input("float[2x3x8x10]")
        .weights("float[16x3x3x3]")
        .ints("pads", &[1, 1, 1, 1])
        .does(Class::Conv, 2 * 2 * 16 * (8 * 10) * 3 * (3 * 3))
        .moves(F32 * 2 * 3 * 8 * 10, F32 * 16 * 3 * 3 * 3, F32 * 2 * 16 * 8 * 10)
        .resides(F32 * 16 * 3 * 3 * 3)
        .scratch(0)
        .computes_in(DType::F32)
        .loops(Geometry::Conv {
            images: 2,
            groups: 1,
            in_channels: 3,
            out_channels: 16,
            pixels: 8 * 10,
            width: 10,
            taps: 9,
            stride: 1,
        });
}

#[test]
fn bias_is_an_addition_per_result() {
    Case::new("Conv")
        .input("float[1x64x56x56]")
        .weights("float[128x64x1x1]")
        .weights("float[128]")
        .does(Class::Conv, 2 * 128 * (56 * 56) * 64 + 128 * (56 * 56))
        .moves(F32 * 64 * 56 * 56, F32 * (128 * 64 + 128), F32 * 128 * 56 * 56);
}

#[test]
fn strides_reduce_pixels() {
    Case::new("Conv")
        .input("float[1x3x224x224]")
        .weights("float[64x3x7x7]")
        .ints("strides", &[2, 2])
        .ints("pads", &[3, 3, 3, 3])
        .does(Class::Conv, 2 * 64 * (112 * 112) * 3 * (7 * 7))
        .loops(Geometry::Conv {
            images: 1,
            groups: 1,
            in_channels: 3,
            out_channels: 64,
            pixels: 112 * 112,
            width: 112,
            taps: 49,
            stride: 4,
        });
}

#[test]
fn dilation_changes_the_result_and_not_the_taps() {
    Case::new("Conv")
        .input("float[1x4x9x9]")
        .weights("float[5x4x3x3]")
        .ints("dilations", &[2, 2])
        .does(Class::Conv, 2 * 5 * ((9 - 4) * (9 - 4)) * 4 * 9);
}

#[test]
fn groups_divide_the_channels() {
    Case::new("Conv")
        .input("float[1x8x6x6]")
        .weights("float[12x2x3x3]")
        .int("group", 4)
        .does(Class::Conv, 2 * 12 * (4 * 4) * 2 * 9)
        .loops(Geometry::Conv {
            images: 1,
            groups: 4,
            in_channels: 2,
            out_channels: 3,
            pixels: 16,
            width: 4,
            taps: 9,
            stride: 1,
        });
}

#[test]
fn depthwise_has_one_channel_per_group() {
    let case = |w| Case::new("Conv").input("float[1x32x7x7]").weights(w).int("group", 32);
    case("float[32x1x3x3]").does(Class::DepthwiseConv, 2 * 32 * (5 * 5) * 9);
    // A channel multiplier of 2 is still depthwise.
    case("float[64x1x3x3]").does(Class::DepthwiseConv, 2 * 64 * (5 * 5) * 9);
    // One group with one channel is not.
    Case::new("Conv").input("float[1x1x7x7]").weights("float[8x1x3x3]").does(Class::Conv, 2 * 8 * (5 * 5) * 9);
}

#[test]
fn any_number_of_spatial_axes() {
    Case::new("Conv")
        .input("float[2x80x3000]")
        .weights("float[384x80x3]")
        .ints("pads", &[1, 1])
        .does(Class::Conv, 2 * 2 * 384 * 3000 * 80 * 3);
    Case::new("Conv")
        .input("float[1x3x8x9x10]")
        .weights("float[4x3x3x3x3]")
        .does(Class::Conv, 2 * 4 * (6 * 7 * 8) * 3 * 27);
}

#[test]
fn transposed_counts_input_pixels() {
    let pixels_out = 16 * 18;
    Case::new("ConvTranspose")
        .input("float[2x6x8x9]")
        .weights("float[6x4x2x2]")
        .weights("float[4]")
        .ints("strides", &[2, 2])
        .does(Class::Conv, 2 * 2 * 6 * (8 * 9) * 4 * 4 + 2 * 4 * pixels_out)
        .moves(F32 * 2 * 6 * 8 * 9, F32 * (6 * 4 * 4 + 4), F32 * 2 * 4 * pixels_out)
        .loops(Geometry::Conv {
            images: 2,
            groups: 1,
            in_channels: 6,
            out_channels: 4,
            pixels: 8 * 9,
            width: 18,
            taps: 4,
            stride: 4,
        });
    Case::new("ConvTranspose")
        .input("float[1x6x8]")
        .weights("float[6x2x3]")
        .int("group", 3)
        .does(Class::Conv, 2 * 6 * 8 * 2 * 3);
    Case::new("ConvTranspose")
        .input("float[1x6x8]")
        .weights("float[6x1x3]")
        .int("group", 6)
        .does(Class::DepthwiseConv, 2 * 6 * 8 * 3);
}

#[test]
fn integers_are_requantized() {
    Case::new("ConvInteger")
        .input("uint8[1x3x6x6]")
        .weights("int8[4x3x3x3]")
        .weights("uint8[]")
        .does(Class::Conv, 2 * 4 * 16 * 3 * 9)
        .moves(3 * 36, 4 * 27 + 1, 4 * 4 * 16)
        .computes_in(DType::U8);
    let quantized = Case::new("QLinearConv").input("uint8[1x3x6x6]").weights("float[]").weights("uint8[]");
    let quantized = quantized.weights("int8[4x3x3x3]").weights("float[4]").weights("int8[4]");
    quantized
        .weights("float[]")
        .weights("uint8[]")
        .weights("int32[4]")
        .does(Class::Conv, 2 * 4 * 16 * 3 * 9 + 4 * 16 + REQUANTIZE * 4 * 16)
        .moves(3 * 36, (4 + 1) + (4 * 27 + 16 + 4) + (4 + 1) + 16, 4 * 16);
}

#[test]
fn deformable_samples_first() {
    let samples = 2 * 9 * 16;
    Case::new("DeformConv")
        .input("float[1x2x6x6]")
        .weights("float[5x2x3x3]")
        .input("float[1x18x4x4]")
        .weights("float[5]")
        .input("float[1x9x4x4]")
        .does(Class::Conv, 2 * 5 * 16 * 2 * 9 + 5 * 16 + samples * (2 * 4 + 1))
        .scratch(F32 * samples)
        .moves(F32 * (2 * 36 + 18 * 16 + 9 * 16), F32 * (5 * 18 + 5), F32 * 5 * 16);
}

#[test]
fn causal_with_state() {
    Case::new("CausalConvWithState")
        .input("float[2x8x10]")
        .weights("float[8x1x4]")
        .weights("float[8]")
        .input("float[2x8x3]")
        .str("activation", "silu")
        .outputs(2)
        .does(Class::DepthwiseConv, 2 * 8 * 10 * (2 * 4 + 1 + SIGMOID + 1))
        .moves(F32 * (2 * 8 * 10 + 2 * 8 * 3), F32 * (8 * 4 + 8), F32 * (2 * 8 * 10 + 2 * 8 * 3));
}

#[test]
fn blocks_are_added_up() {
    Case::new("Col2Im").input("float[1x9x16]").list(&[6, 6]).list(&[3, 3]).does(Class::Gather, 9 * 16).moves(
        F32 * 9 * 16,
        2 * 2 * I64,
        F32 * 36,
    );
}
