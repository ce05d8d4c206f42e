//! Folding a `BatchNormalization` into a convolution preserves the result, according to ONNX Runtime.

use divi_onnx::{
    Attr, DType, Tensor,
    fold::batch_norm::{BatchNorm, Convolution, fold_into_conv, fold_into_conv_transpose},
};
use divi_passes::import::{proto::NodeProto, tensor_proto::TensorProto};
use divi_test::{
    model::{encode, graph, initializer, model, node, value, with},
    random::Random,
};
use std::{fs, path::Path, process::Command};

const PAIRS: u64 = 160;

/// Maximum rounding error, relative to the largest output.
const TOLERANCE: f64 = 1e-5;

/// A convolution of random shape and weights, followed by a normalization.
struct Pair {
    what: String,
    input: Vec<i64>,
    convolution: NodeProto,
    transposed: bool,
    groups: i64,
    weights: Tensor,
    bias: Option<Tensor>,
    scale: Tensor,
    shift: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: f32,
}

fn tensor(random: &mut Random, dims: &[i64], low: f64, high: f64) -> Tensor {
    let values: Vec<_> = (0..dims.iter().product::<i64>()).map(|_| random.between(low, high)).collect();
    Tensor::from_floats(DType::F32, dims.to_vec(), &values).expect("there is one value per element")
}

impl Pair {
    fn new(seed: u64) -> Self {
        let random = &mut Random(seed);
        let transposed = random.one_in(2);
        let rank = 1 + random.below(2);
        let sizes = |random: &mut Random, low: i64, count: usize| -> Vec<i64> {
            (0..rank).map(|_| low + random.below(count) as i64).collect()
        };
        let groups = *random.choose(&[1, 1, 2, 3, 4]);
        // One input channel and one output channel per group: depthwise.
        let (inputs_a_group, outputs_a_group) =
            if random.one_in(3) { (1, 1) } else { (1 + random.below(4) as i64, 1 + random.below(4) as i64) };
        let (inputs, outputs) = (groups * inputs_a_group, groups * outputs_a_group);
        let kernel = sizes(random, 1, 3);
        let strides = sizes(random, 1, 2);
        let dilations = sizes(random, 1, 2);
        let input = [vec![1 + random.below(2) as i64, inputs], sizes(random, 6, 5)].concat();
        let dims = if transposed { [inputs, outputs_a_group] } else { [outputs, inputs_a_group] };
        let weights = tensor(random, &[&dims[..], &kernel].concat(), -1.0, 1.0);
        let bias = random.one_in(2).then(|| tensor(random, &[outputs], -2.0, 2.0));

        let op = if transposed { "ConvTranspose" } else { "Conv" };
        let what =
            format!("{op} {input:?} kernel {kernel:?} strides {strides:?} dilations {dilations:?} groups {groups}");
        let mut convolution = node(op, &["x", "w"], &["y"]);
        if bias.is_some() {
            convolution.input.push("b".into());
        }
        let attributes = [("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)];
        for (name, ints) in attributes {
            convolution = with(convolution, name, Attr::Ints(ints));
        }
        Self {
            what,
            input,
            convolution: with(convolution, "group", Attr::Int(groups)),
            transposed,
            groups,
            weights,
            bias,
            scale: tensor(random, &[outputs], -2.0, 2.0),
            shift: tensor(random, &[outputs], -1.0, 1.0),
            mean: tensor(random, &[outputs], -1.0, 1.0),
            variance: tensor(random, &[outputs], 0.01, 4.0),
            epsilon: *random.choose(&[1e-5, 1e-3, 0.1]),
        }
    }

    fn fold(&self) -> Convolution {
        let norm = BatchNorm {
            scale: &self.scale,
            bias: &self.shift,
            mean: &self.mean,
            variance: &self.variance,
            epsilon: self.epsilon,
        };
        let bias = self.bias.as_ref();
        let folded = if self.transposed {
            fold_into_conv_transpose(&self.weights, bias, self.groups, &norm)
        } else {
            fold_into_conv(&self.weights, bias, &norm)
        };
        folded.unwrap_or_else(|error| panic!("{}: {error}", self.what))
    }

    fn unfolded_model(&self) -> Vec<u8> {
        let mut constants = vec![constant("w", &self.weights)];
        constants.extend(self.bias.as_ref().map(|bias| constant("b", bias)));
        let statistics = [("s", &self.scale), ("B", &self.shift), ("m", &self.mean), ("v", &self.variance)];
        constants.extend(statistics.map(|(name, tensor)| constant(name, tensor)));
        let norm = node("BatchNormalization", &["y", "s", "B", "m", "v"], &["z"]);
        let norm = with(norm, "epsilon", Attr::Float(self.epsilon));
        self.encode(constants, vec![self.convolution.clone(), norm], "z")
    }

    fn folded_model(&self) -> Vec<u8> {
        let Convolution { weights, bias } = self.fold();
        let mut convolution = self.convolution.clone();
        convolution.input = ["x", "w", "b"].map(String::from).to_vec();
        self.encode(vec![constant("w", &weights), constant("b", &bias)], vec![convolution], "y")
    }

    fn encode(&self, constants: Vec<TensorProto>, nodes: Vec<NodeProto>, output: &str) -> Vec<u8> {
        let mut graph = graph(vec![value("x", DType::F32, &self.input)], constants, nodes, &[]);
        // ONNX Runtime requires types of outputs, and infers shapes.
        let mut declared = value(output, DType::F32, &[]);
        if let Some(ty) = &mut declared.r#type
            && let Some(divi_passes::import::proto::type_proto::Value::TensorType(tensor)) = &mut ty.value
        {
            tensor.shape = None;
        }
        graph.output.push(declared);
        encode(&model(graph))
    }
}

fn constant(name: &str, tensor: &Tensor) -> TensorProto {
    initializer(name, tensor.dtype(), tensor.dims(), tensor.bytes().to_vec())
}

#[test]
fn folded_convolutions_agree_with_onnx_runtime() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fold-batch-norm");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let pairs: Vec<_> = (0..PAIRS).map(Pair::new).collect();
    for (i, pair) in pairs.iter().enumerate() {
        fs::write(folder.join(format!("{i}-unfolded.onnx")), pair.unfolded_model()).unwrap();
        fs::write(folder.join(format!("{i}-folded.onnx")), pair.folded_model()).unwrap();
    }
    let script = divi_test::repository().join("test/tests/fold_batch_norm/compare.py");
    let output = Command::new(divi_test::python()).arg(script).arg(&folder).output().unwrap_or_else(|error| {
        panic!("cannot run {}: {error}; run tools/setup, or set DIVI_PYTHON", divi_test::python().display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let differences: Vec<f64> = stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(differences.len(), pairs.len());
    for (pair, &difference) in pairs.iter().zip(&differences) {
        assert!(difference <= TOLERANCE, "{}: outputs differ by {difference:e} of the largest", pair.what);
    }
    for (what, holds) in [
        ("grouped", &(|pair: &Pair| pair.groups > 1) as &dyn Fn(&Pair) -> bool),
        ("transposed and grouped", &|pair| pair.transposed && pair.groups > 1),
        ("depthwise", &|pair| pair.weights.dims()[1] == 1 && pair.groups > 1 && pair.groups == pair.input[1]),
        ("without bias", &|pair| pair.bias.is_none()),
        ("with bias", &|pair| pair.bias.is_some()),
        ("one-dimensional", &|pair| pair.input.len() == 3),
    ] {
        assert!(pairs.iter().filter(|pair| holds(pair)).count() >= 10, "too few pairs are {what}");
    }
    let largest = differences.iter().copied().fold(0.0, f64::max);
    println!("{} pairs: maximum error {largest:e} relative to the largest output", pairs.len());
}
