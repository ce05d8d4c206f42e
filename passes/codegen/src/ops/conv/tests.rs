use crate::{graph::Graph, ops::test_operator::run, testing::floats};
use divi_onnx::{Attr, DType, Tensor};

fn ramp(count: i64) -> Vec<f64> {
    (0..count).map(|i| f64::from((i * 7 % 11) as i32) - 5.0).collect()
}

/// Reference implementation of a 2D convolution, for numbers without rounding errors.
struct Naive {
    x: [i64; 4],
    w: [i64; 4],
    y: [i64; 4],
    stride: [i64; 2],
    dilation: [i64; 2],
    pad: [i64; 2],
    groups: i64,
}

impl Naive {
    fn run(&self, x: &[f64], w: &[f64], bias: &[f64]) -> Vec<f64> {
        let at =
            |shape: &[i64; 4], i: [i64; 4]| (((i[0] * shape[1] + i[1]) * shape[2] + i[2]) * shape[3] + i[3]) as usize;
        let mut y = vec![];
        for number in 0..self.y.iter().product::<i64>() {
            let [_, channels, height, width] = self.y;
            let (ow, rest) = (number % width, number / width);
            let (oh, rest) = (rest % height, rest / height);
            let (m, n) = (rest % channels, rest / channels);
            let mut sum = bias[m as usize];
            for (c, kh, kw) in (0..self.w[1])
                .flat_map(|c| (0..self.w[2]).flat_map(move |kh| (0..self.w[3]).map(move |kw| (c, kh, kw))))
            {
                let ih = oh * self.stride[0] + kh * self.dilation[0] - self.pad[0];
                let iw = ow * self.stride[1] + kw * self.dilation[1] - self.pad[1];
                let channel = m / (channels / self.groups) * self.w[1] + c;
                if (0..self.x[2]).contains(&ih) && (0..self.x[3]).contains(&iw) {
                    sum += x[at(&self.x, [n, channel, ih, iw])] * w[at(&self.w, [m, c, kh, kw])];
                }
            }
            y.push(sum);
        }
        y
    }
}

#[test]
fn groups_strides_dilations_and_pads() {
    let naive = Naive {
        x: [2, 4, 9, 11],
        w: [6, 2, 3, 2],
        y: [2, 6, 4, 11],
        stride: [2, 1],
        dilation: [2, 3],
        pad: [1, 2],
        groups: 2,
    };
    let (x, w, bias) = (ramp(2 * 4 * 9 * 11), ramp(6 * 2 * 3 * 2), ramp(6));
    let inputs = [floats(&naive.x, &x), floats(&naive.w, &w), floats(&[6], &bias)];
    let attributes = [
        ("group", Attr::Int(2)),
        ("strides", Attr::Ints(vec![2, 1])),
        ("dilations", Attr::Ints(vec![2, 3])),
        ("pads", Attr::Ints(vec![1, 2, 1, 1])),
    ];
    let y = run("Conv", &inputs, &attributes, DType::F32, &naive.y);
    assert_eq!(y.floats().unwrap(), naive.run(&x, &w, &bias));
}

#[test]
fn rows_longer_than_a_chunk() {
    let x: Vec<f64> = ramp(2500);
    let inputs = [floats(&[1, 1, 2500], &x), floats(&[1, 1, 3], &[1.0, 10.0, 100.0])];
    let y = run("Conv", &inputs, &[("auto_pad", Attr::Str("SAME_LOWER".into()))], DType::F32, &[1, 1, 2500]);
    let at = |i: i64| if (0..2500).contains(&i) { x[i as usize] } else { 0.0 };
    let expected: Vec<_> = (0..2500).map(|i| at(i - 1) + 10.0 * at(i) + 100.0 * at(i + 1)).collect();
    assert_eq!(y.floats().unwrap(), expected);
}

#[test]
fn half_precision_is_accumulated_in_single_precision() {
    let x = Tensor::from_floats(DType::F16, vec![1, 3, 1], &[2048.0, 1.0, 1.0]).unwrap();
    let w = Tensor::from_floats(DType::F16, vec![1, 3, 1], &[1.0; 3]).unwrap();
    assert_eq!(run("Conv", &[x, w], &[], DType::F16, &[1, 1, 1]).floats().unwrap(), [2050.0]);
}

#[test]
fn transposed_convolutions_spread() {
    let inputs =
        [floats(&[1, 1, 3], &[1.0, 2.0, 3.0]), floats(&[1, 2, 2], &[1.0, 10.0, 5.0, 7.0]), floats(&[2], &[0.5, 0.0])];
    let strided = [("strides", Attr::Ints(vec![2]))];
    let y = run("ConvTranspose", &inputs, &strided, DType::F32, &[1, 2, 6]);
    let expected = [1.5, 10.5, 2.5, 20.5, 3.5, 30.5, 5.0, 7.0, 10.0, 14.0, 15.0, 21.0];
    assert_eq!(y.floats().unwrap(), expected);
    // An output size of 4 crops one element on either side.
    let cropped = [("strides", Attr::Ints(vec![2])), ("output_shape", Attr::Ints(vec![4]))];
    let y = run("ConvTranspose", &inputs, &cropped, DType::F32, &[1, 2, 4]);
    assert_eq!(y.floats().unwrap(), [10.5, 2.5, 20.5, 3.5, 7.0, 10.0, 14.0, 15.0]);
}

#[test]
fn quantized_convolutions_round_and_saturate() {
    let bytes = |dims: &[i64], values: &[i64]| Tensor::from_ints(DType::U8, dims.to_vec(), values).unwrap();
    let x = bytes(&[1, 1, 3], &[130, 128, 255]);
    let w = Tensor::from_ints(DType::I8, vec![2, 1, 1], &[3, -4]).unwrap();
    let zero = Tensor::from_ints(DType::I8, vec![2], &[1, 0]).unwrap();
    let sums = run("ConvInteger", &[x.clone(), w.clone(), bytes(&[], &[128])], &[], DType::I32, &[1, 2, 3]);
    assert_eq!(sums.ints().unwrap(), [6, 0, 381, -8, 0, -508]);
    let scale = |value| floats(&[], &[value]);
    let scales = floats(&[2], &[0.25, 0.5]);
    let inputs = [x, scale(0.5), bytes(&[], &[128]), w, scales, zero, scale(0.5), bytes(&[], &[10])];
    let y = run("QLinearConv", &inputs, &[], DType::U8, &[1, 2, 3]);
    // 2 * 2 * 0.25 = 1, 127 * 2 * 0.25 = 63.5 and 2 * -4 * 0.5 = -4, each above 10.
    assert_eq!(y.ints().unwrap(), [11, 10, 74, 6, 10, 0]);
}

#[test]
fn deformed_windows_sample_between_elements() {
    let x = floats(&[1, 1, 2, 3], &[1.0, 2.0, 3.0, 5.0, 6.0, 7.0]);
    let w = floats(&[1, 1, 1, 1], &[2.0]);
    let mut offsets = vec![0.0; 12];
    offsets[0] = 0.5;
    offsets[6 + 1] = 0.25;
    offsets[6 + 5] = 0.5;
    let offset = floats(&[1, 2, 2, 3], &offsets);
    let bias = floats(&[1], &[1.0]);
    let y = run("DeformConv", &[x, w, offset, bias], &[], DType::F32, &[1, 1, 2, 3]);
    // Half a row down, a quarter of a column to the right, and halfway outside the image.
    assert_eq!(y.floats().unwrap(), [7.0, 5.5, 7.0, 11.0, 13.0, 8.0]);
}

#[test]
fn causal_convolutions_have_a_state() {
    let mut graph = Graph::default();
    let x = graph.input(DType::F32, &[1, 1, 3]);
    let w = graph.input(DType::F32, &[1, 1, 3]);
    let bias = graph.input(DType::F32, &[1]);
    let past = graph.input(DType::F32, &[1, 1, 2]);
    let y = graph.apply("CausalConvWithState", &[x, w, bias, past], &[], DType::F32, &[1, 1, 3]);
    let present = graph.value(DType::F32, &[1, 1, 2]);
    graph.nodes[0].outputs.push(Some(present));
    graph.outputs = vec![y, present];
    let inputs = [
        floats(&[1, 1, 3], &[3.0, 4.0, 5.0]),
        floats(&[1, 1, 3], &[1.0, 10.0, 100.0]),
        floats(&[1], &[0.5]),
        floats(&[1, 1, 2], &[1.0, 2.0]),
    ];
    let outputs = graph.run("native", &inputs).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [321.5, 432.5, 543.5]);
    assert_eq!(outputs[1].floats().unwrap(), [4.0, 5.0]);
}
