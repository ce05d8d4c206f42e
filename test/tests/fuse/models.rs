//! How many tasks of which kind models become. The numbers are what the architectures say.

use super::inspect::{body, canonical, kinds};
use divi_dialect::Operation;
use divi_passes::{
    declared::FuseStatistics,
    fuse::{Options, fuse},
    import,
    infer_shapes::infer_shapes,
    inline_clusters::inline_clusters,
};
use std::collections::BTreeMap;

type Kinds = &'static [(&'static str, usize)];

/// Checks what a model becomes, and that fusing loses nothing and is done after one run.
fn check(name: &str, expected: Kinds) {
    let context = divi_test::context();
    let path = divi_test::models().join(format!("{name}.onnx"));
    let (module, _) =
        divi_test::import_file(&context, &path, import::Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let before = canonical(&module);
    let raw = Operation::from(&module);

    let counts = fuse(raw, &Options::default());
    divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{name}: {messages}"));
    let actual = kinds(&module);
    let expected: BTreeMap<_, _> = expected.iter().copied().filter(|&(_, count)| count > 0).collect();
    assert_eq!(actual, expected, "{name}");
    let tasks: usize = expected.values().sum();
    let clusters: usize = expected.iter().filter(|(kind, _)| !kind.starts_with("onnx.")).map(|(_, count)| count).sum();
    assert_eq!((counts.num_tasks_after, counts.clusters()), (tasks as u64, clusters as u64));
    let left = body(&module)
        .into_iter()
        .filter(|&operation| divi_test::operation_name(operation).starts_with("onnx.BatchNormalization"));
    assert_eq!(left.count(), 0, "a BatchNormalization is in no cluster");

    let printed = divi_test::print(&module);
    // Names of resources are taken in a context that has them.
    let other = divi_test::context();
    let reread = divi_test::parse(&other, printed.as_bytes()).unwrap_or_else(|messages| panic!("{name}: {messages}"));
    assert!(divi_test::print(&reread) == printed, "{name}: the text reads back as something else");
    let again = fuse(raw, &Options::default());
    assert_eq!(
        again,
        FuseStatistics {
            num_tasks_before: counts.num_tasks_after,
            num_tasks_after: counts.num_tasks_after,
            ..FuseStatistics::default()
        }
    );
    assert!(divi_test::print(&module) == printed, "{name}: a second run changes something");

    assert_eq!(inline_clusters(raw), counts.clusters());
    divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{name}: {messages}"));
    assert!(canonical(&module) == before, "{name}: inlining does not give the model back");
    println!("{name}: {} operators, {tasks} tasks, {clusters} of them clusters", counts.num_tasks_before);
}

macro_rules! models {
    ($($name:ident: $kinds:expr;)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                const KINDS: Kinds = $kinds;
                check(stringify!($name), KINDS);
            }
        )*
    };
}

models! {
    alexnet: &[
        ("conv_relu", 5), ("onnx.MaxPoolSingleOut", 3), ("onnx.AveragePool", 1),
        // The first with the Flatten before it, the last without an activation.
        ("gemm_relu", 2), ("onnx.Gemm", 1),
    ];
    vgg16: &[
        ("conv_relu", 2 + 2 + 3 + 3 + 3), ("onnx.MaxPoolSingleOut", 5), ("onnx.AveragePool", 1),
        ("gemm_relu", 2), ("onnx.Gemm", 1),
    ];
    squeezenet1_1: &[
        // A fire module squeezes once and expands in two ways.
        ("conv_relu", 1 + 8 * 3 + 1), ("onnx.Concat", 8), ("onnx.MaxPoolSingleOut", 3),
        // With the Flatten behind it.
        ("globalaveragepool", 1),
    ];
    googlenet: &[
        // An inception module has six convolutions and a pool.
        ("conv_bn_relu", 3 + 9 * 6), ("onnx.MaxPoolSingleOut", 4 + 9), ("onnx.Concat", 9),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    inception_v3: &[
        // The stem, three modules A, one B, four C, one D, two E.
        ("conv_bn_relu", 5 + 3 * 7 + 4 + 4 * 10 + 6 + 2 * 9),
        ("onnx.Concat", 3 + 1 + 4 + 1 + 2),
        // B and D pool the maximum, as the stem does twice; A, C and E the average.
        ("onnx.MaxPoolSingleOut", 2 + 1 + 1), ("onnx.AveragePool", 3 + 4 + 2),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    resnet18: &[
        // A block has two convolutions; three of the eight have one more beside them, to change the channels.
        ("conv_bn_relu", 1 + 8), ("conv_bn_add_relu", 8), ("conv_bn", 3),
        ("onnx.MaxPoolSingleOut", 1), ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    resnet50: RESNET50;
    resnet50_dyn_batch: RESNET50;
    densenet121: &[
        // A layer is BN, Relu, Conv, BN, Relu, Conv: the second BN folds into the first Conv.
        ("conv_bn_relu", 1 + DENSE_LAYERS), ("onnx.Conv", DENSE_LAYERS + 3),
        // The first of each layer, those of the three transitions and the last have no Conv before them.
        ("bn_relu", DENSE_LAYERS + 3 + 1),
        // One before each layer but the first of a block, which has one operand, and one behind each block.
        ("onnx.Concat", DENSE_LAYERS - 4 + 4),
        ("onnx.MaxPoolSingleOut", 1), ("onnx.AveragePool", 3), ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    mobilenet_v2: &[
        // Stem and head; 17 blocks expand (but the first), filter by channel, and project.
        ("conv_bn_clip", 2 + 16 + 17),
        // Of the blocks of a stage, all but the first have a residual.
        ("conv_bn_add", 1 + 2 + 3 + 2 + 2), ("conv_bn", 7),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    mobilenet_v3_large: &[
        // Six blocks with Relu, of which the first does not expand; nine with HardSwish, which stem and head have too.
        ("conv_bn_relu", 5 + 6), ("conv_bn_hardswish", 1 + 9 * 2 + 1),
        ("conv_bn_add", 10), ("conv_bn", 15 - 10),
        // Squeeze and excitation in eight blocks.
        ("conv_relu", 8), ("conv_hardsigmoid", 8), ("onnx.Mul", 8), ("onnx.GlobalAveragePool", 8 + 1),
        ("gemm_hardswish", 1), ("onnx.Gemm", 1),
    ];
    efficientnet_b0: &[
        // Stem and head; 16 blocks expand (but the first), filter by channel, and project.
        ("conv_bn_silu", 2 + 15 + 16),
        ("conv_bn_add", 1 + 1 + 2 + 2 + 3), ("conv_bn", 7),
        // Squeeze and excitation in every block.
        ("conv_silu", 16), ("conv_sigmoid", 16), ("onnx.Mul", 16), ("onnx.GlobalAveragePool", 16 + 1),
        ("gemm", 1),
    ];
    convnext_tiny: &[
        // The stem, three between stages, and one in each of the blocks.
        ("onnx.Conv", 1 + 3 + CONVNEXT_BLOCKS), ("onnx.LayerNormalization", 1 + 3 + CONVNEXT_BLOCKS + 1),
        // Before and behind each LayerNormalization, or around the rest of a block; the last two move nothing.
        ("onnx.Transpose", 2 * (1 + 3 + CONVNEXT_BLOCKS)),
        ("matmul_bias_gelu", CONVNEXT_BLOCKS), ("matmul_bias", CONVNEXT_BLOCKS),
        // The scale a channel and the residual.
        ("elementwise", CONVNEXT_BLOCKS),
        ("globalaveragepool", 1), ("gemm", 1),
    ];
    bert_base_128: &[
        // The sum of three embeddings, normalized.
        ("onnx.Gather", 3), ("elementwise", 1), ("onnx.LayerNormalization", 1 + 12 * 2),
        // Queries, keys and values; each to heads, and heads back.
        ("matmul_bias", 12 * 3), ("onnx.Transpose", 12 * 4),
        // Queries by keys, and what that selects of the values.
        ("onnx.MatMul", 12 * 2), ("scale_mask_softmax", 12),
        ("matmul_bias_gelu", 12),
        // The projections behind attention and behind GELU.
        ("matmul_bias_add", 12 * 2),
    ];
    gpt2_small_1x128: &gpt2(12);
    gpt2_large_1x128: &gpt2(36);
    llama_2l_1x128: &llama(2);
    openllama_3b_1x128: &llama(26);
    vit_b_16: &[
        // Patches, the class token before them, and their positions.
        ("conv", 1), ("onnx.Transpose", 1 + 12 * 4), ("concat", 1), ("onnx.Add", 1),
        ("onnx.LayerNormalization", 12 * 2 + 1),
        // Queries, keys and values at once, turned so that they can be told apart, and cut.
        ("matmul_bias", 12), ("gather", 12 * 3),
        // Beside that turn, the one of keys has a Reshape behind it that nothing else takes. The plain ones: queries,
        // values, keys once more, and heads back.
        ("transpose", 12 * 2),
        // Queries and keys are scaled, the former behind a Reshape.
        ("mul", 12), ("onnx.Mul", 12),
        ("onnx.MatMul", 12), ("onnx.Softmax", 12), ("matmul", 12),
        ("gemm_add", 12), ("matmul_bias_gelu", 12), ("matmul_bias_add", 12),
        // The class token's result.
        ("onnx.Gather", 1), ("onnx.Gemm", 1),
    ];
}

const RESNET50: Kinds = &[
    // 3 + 4 + 6 + 3 blocks of three convolutions; the first of each stage has one more beside them.
    ("conv_bn_relu", 1 + 16 * 2),
    ("conv_bn_add_relu", 16),
    ("conv_bn", 4),
    ("onnx.MaxPoolSingleOut", 1),
    ("onnx.GlobalAveragePool", 1),
    ("gemm", 1),
];

const DENSE_LAYERS: usize = 6 + 12 + 24 + 16;

const CONVNEXT_BLOCKS: usize = 3 + 3 + 9 + 3;

const fn gpt2(layers: usize) -> [(&'static str, usize); 15] {
    [
        // Tokens (with a Reshape before), positions, and the mask's columns.
        ("gather", 1),
        ("onnx.Gather", 2),
        ("add", 1),
        ("cast", 1),
        // The mask: And, Expand, Where.
        ("elementwise", 1),
        ("onnx.LayerNormalization", layers * 2 + 1),
        // Queries, keys and values at once.
        ("gemm", layers),
        ("onnx.Split", layers),
        // Each to heads, with a Reshape; and heads back.
        ("transpose", layers * 3),
        ("onnx.Transpose", layers),
        ("onnx.MatMul", layers * 2),
        ("scale_mask_softmax", layers),
        // The projections behind attention and behind GELU.
        ("gemm_add", layers * 2),
        ("gemm_gelu", layers),
        // Logits, behind a Reshape.
        ("matmul", 1),
    ]
}

const fn llama(layers: usize) -> [(&'static str, usize); 15] {
    [
        // Tokens with a Cast that changes nothing, and the mask's columns.
        ("gather", 1),
        ("onnx.Gather", 1),
        ("cast", 1),
        ("rms_norm", layers * 2 + 1),
        // Queries, keys and values with the Reshape to heads; turned, keys once more, and heads back.
        ("matmul", layers * 3),
        ("onnx.Transpose", layers * 5 + 1),
        // Rotary embedding of queries and keys: halves, the second negative, changed over, and each half's product; the
        // second product and the sum are one task. Cosine and sine of all layers, and the mask (And, Expand, Where).
        ("onnx.Slice", layers * 2 * 2),
        ("onnx.Neg", layers * 2),
        ("onnx.Concat", layers * 2 + 1),
        ("elementwise", layers * 2 + 2 + 1),
        // The first products, and the gate's.
        ("onnx.Mul", layers * 2 + layers),
        // Queries by keys, what that selects of the values, and the gated half; angles and logits.
        ("onnx.MatMul", layers * 3 + 2),
        ("scale_mask_softmax", layers),
        ("matmul_silu", layers),
        // The projections behind attention and behind the gate.
        ("matmul_add", layers * 2),
    ]
}

/// A fused model is as good for another batch as one that is not fused.
#[test]
fn a_batch_is_fixed_after_fusing() {
    let context = divi_test::context();
    let path = divi_test::models().join("resnet50_dyn_batch.onnx");
    let texts = [true, false].map(|fuse_first| {
        let (module, _) = divi_test::import_file(&context, &path, import::Options::default()).unwrap();
        let raw = Operation::from(&module);
        let options = import::Options { batch: Some(8), ..import::Options::default() };
        if fuse_first {
            fuse(raw, &Options::default());
            infer_shapes(raw, &options).unwrap();
        } else {
            infer_shapes(raw, &options).unwrap();
            fuse(raw, &Options::default());
        }
        divi_test::verify(&context, &module).unwrap();
        divi_test::print(&module)
    });
    assert!(texts[0] == texts[1], "the order matters");
    assert!(texts[0].contains("-> (tensor<8x1000xf32>"));
}

#[test]
fn every_model_is_tested() {
    let files = std::fs::read_dir(divi_test::models()).unwrap().map(|entry| entry.unwrap().path());
    let models = files.filter(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    let mut models: Vec<_> = models.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let mut tested = NAMES.to_vec();
    models.sort();
    tested.sort_unstable();
    assert_eq!(models, tested);
}
