//! Number of tasks of each kind after fusion of the test models. The expected numbers follow from the architectures.

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

/// Checks the tasks of a fused model, that fusion is idempotent, and that inlining restores the model.
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
    assert_eq!(left.count(), 0, "a BatchNormalization is left outside clusters");

    let printed = divi_test::print(&module);
    // The resource names are taken in the first context.
    let other = divi_test::context();
    let reread = divi_test::parse(&other, printed.as_bytes()).unwrap_or_else(|messages| panic!("{name}: {messages}"));
    assert!(divi_test::print(&reread) == printed, "{name}: the text does not round-trip");
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
    assert!(canonical(&module) == before, "{name}: inlining does not restore the model");
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
        // The first includes the Flatten before it, the last has no activation.
        ("gemm_relu", 2), ("onnx.Gemm", 1),
    ];
    vgg16: &[
        ("conv_relu", 2 + 2 + 3 + 3 + 3), ("onnx.MaxPoolSingleOut", 5), ("onnx.AveragePool", 1),
        ("gemm_relu", 2), ("onnx.Gemm", 1),
    ];
    resnext50_32x4d: &[
        // Normalizations are folded into the convolutions of the file. Four projections have no activation.
        ("conv_relu", 1 + 2 * 16), ("conv_add_relu", 16), ("onnx.Conv", 4), ("onnx.MaxPoolSingleOut", 1),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    regnet_y_400mf: &[
        // The stem, two convolutions of each block, and the first of its squeeze and excitation.
        ("conv_relu", 1 + 3 * 16), ("conv_sigmoid", 16), ("onnx.Mul", 16), ("conv_add_relu", 16), ("onnx.Conv", 4),
        ("onnx.GlobalAveragePool", 16 + 1), ("gemm", 1),
    ];
    squeezenet1_1: &[
        // A fire module has one squeeze and two expand convolutions.
        ("conv_relu", 1 + 8 * 3 + 1), ("onnx.Concat", 8), ("onnx.MaxPoolSingleOut", 3),
        // Includes the Flatten behind it.
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
        // B and D use max pooling, as the stem does twice; A, C and E use average pooling.
        ("onnx.MaxPoolSingleOut", 2 + 1 + 1), ("onnx.AveragePool", 3 + 4 + 2),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    resnet18: &[
        // A block has two convolutions; three of the eight have one more in the shortcut, to change the channels.
        ("conv_bn_relu", 1 + 8), ("conv_bn_add_relu", 8), ("conv_bn", 3),
        ("onnx.MaxPoolSingleOut", 1), ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    resnet50: RESNET50;
    resnet50_dyn_batch: RESNET50;
    densenet121: &[
        // A layer is BN, Relu, Conv, BN, Relu, Conv; the second BN folds into the first Conv.
        ("conv_bn_relu", 1 + DENSE_LAYERS), ("onnx.Conv", DENSE_LAYERS + 3),
        // The first BN of each layer, those of the three transitions and the last one have no Conv before them.
        ("bn_relu", DENSE_LAYERS + 3 + 1),
        // One before each layer except the first of a block, which has one operand, and one behind each block.
        ("onnx.Concat", DENSE_LAYERS - 4 + 4),
        ("onnx.MaxPoolSingleOut", 1), ("onnx.AveragePool", 3), ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    mobilenet_v2: &[
        // Stem and head; 17 blocks with an expansion (except the first), a depthwise convolution and a projection.
        ("conv_bn_clip", 2 + 16 + 17),
        // All blocks of a stage except the first have a residual connection.
        ("conv_bn_add", 1 + 2 + 3 + 2 + 2), ("conv_bn", 7),
        ("onnx.GlobalAveragePool", 1), ("gemm", 1),
    ];
    mobilenet_v3_large: &[
        // Six blocks with Relu, the first without expansion; nine with HardSwish, as well as stem and head.
        ("conv_bn_relu", 5 + 6), ("conv_bn_hardswish", 1 + 9 * 2 + 1),
        ("conv_bn_add", 10), ("conv_bn", 15 - 10),
        // Squeeze and excitation in eight blocks.
        ("conv_relu", 8), ("conv_hardsigmoid", 8), ("onnx.Mul", 8), ("onnx.GlobalAveragePool", 8 + 1),
        ("gemm_hardswish", 1), ("onnx.Gemm", 1),
    ];
    efficientnet_b0: &[
        // Stem and head; 16 blocks with an expansion (except the first), a depthwise convolution and a projection.
        ("conv_bn_silu", 2 + 15 + 16),
        ("conv_bn_add", 1 + 1 + 2 + 2 + 3), ("conv_bn", 7),
        // Squeeze and excitation in every block.
        ("conv_silu", 16), ("conv_sigmoid", 16), ("onnx.Mul", 16), ("onnx.GlobalAveragePool", 16 + 1),
        ("gemm", 1),
    ];
    convnext_tiny: &[
        // The stem, three between stages, and one in each block.
        ("onnx.Conv", 1 + 3 + CONVNEXT_BLOCKS), ("onnx.LayerNormalization", 1 + 3 + CONVNEXT_BLOCKS + 1),
        // Before and behind each LayerNormalization or the rest of a block; the last two are no-ops.
        ("onnx.Transpose", 2 * (1 + 3 + CONVNEXT_BLOCKS)),
        ("matmul_bias_gelu", CONVNEXT_BLOCKS), ("matmul_bias", CONVNEXT_BLOCKS),
        // Channel scale and residual connection.
        ("elementwise", CONVNEXT_BLOCKS),
        ("globalaveragepool", 1), ("gemm", 1),
    ];
    bert_base_128: &[
        // Sum of three embeddings, normalized.
        ("onnx.Gather", 3), ("elementwise", 1), ("onnx.LayerNormalization", 1 + 12 * 2),
        // Queries, keys and values. Each is split into heads, and heads are merged, as part of attention.
        ("matmul_bias", 12 * 3), ("attention", 12),
        ("matmul_bias_gelu", 12),
        // Projections behind attention and behind GELU.
        ("matmul_bias_add", 12 * 2),
    ];
    gpt2_small_1x128: &gpt2(12);
    gpt2_large_1x128: &gpt2(36);
    llama_2l_1x128: &llama(2);
    openllama_3b_1x128: &llama(26);
    vit_b_16: &[
        // Patches, the class token, and position embeddings.
        ("conv", 1), ("onnx.Transpose", 1), ("concat", 1), ("onnx.Add", 1),
        ("onnx.LayerNormalization", 12 * 2 + 1),
        // Queries, keys and values in one product, transposed and split.
        ("matmul_bias", 12), ("transpose", 12), ("onnx.Gather", 12 * 3 + 1),
        // Includes the scales of queries and keys, and the transpositions to heads and back.
        ("attention", 12),
        ("gemm_add", 12), ("matmul_bias_gelu", 12), ("matmul_bias_add", 12),
        // Result of the class token; its Gather is counted above.
        ("onnx.Gemm", 1),
    ];
}

const RESNET50: Kinds = &[
    // 3 + 4 + 6 + 3 blocks of three convolutions; the first of each stage has one more in the shortcut.
    ("conv_bn_relu", 1 + 16 * 2),
    ("conv_bn_add_relu", 16),
    ("conv_bn", 4),
    ("onnx.MaxPoolSingleOut", 1),
    ("onnx.GlobalAveragePool", 1),
    ("gemm", 1),
];

const DENSE_LAYERS: usize = 6 + 12 + 24 + 16;

const CONVNEXT_BLOCKS: usize = 3 + 3 + 9 + 3;

const fn gpt2(layers: usize) -> [(&'static str, usize); 12] {
    [
        // Tokens (with a Reshape before), positions, and the columns of the mask.
        ("gather", 1),
        ("onnx.Gather", 2),
        ("add", 1),
        ("cast", 1),
        // The mask: And, Expand, Where.
        ("elementwise", 1),
        ("onnx.LayerNormalization", layers * 2 + 1),
        // Queries, keys and values in one product.
        ("gemm", layers),
        ("onnx.Split", layers),
        // Each is split into heads, and heads are merged, as part of attention.
        ("attention", layers),
        // Projections behind attention and behind GELU.
        ("gemm_add", layers * 2),
        ("gemm_gelu", layers),
        // Logits, behind a Reshape.
        ("matmul", 1),
    ]
}

const fn llama(layers: usize) -> [(&'static str, usize); 15] {
    [
        // Tokens with a no-op Cast, and the columns of the mask.
        ("gather", 1),
        ("onnx.Gather", 1),
        ("cast", 1),
        ("rms_norm", layers * 2 + 1),
        // Queries, keys and values with the Reshape to heads; queries and keys are transposed before the rotary embedding.
        ("matmul", layers * 3),
        ("onnx.Transpose", layers * 2 + 1),
        // Rotary embedding of queries and keys: halves, the second negated, swapped, and a product for each half; the second
        // product and the sum are one task. Cosine and sine of all layers, and the mask (And, Expand, Where).
        ("onnx.Slice", layers * 2 * 2),
        ("onnx.Neg", layers * 2),
        ("onnx.Concat", layers * 2 + 1),
        ("elementwise", layers * 2 + 2 + 1),
        // The first products, and the gate.
        ("onnx.Mul", layers * 2 + layers),
        // Includes the transpositions of keys, values and heads.
        ("attention", layers),
        // The up projection; angles and logits.
        ("onnx.MatMul", layers + 2),
        ("matmul_silu", layers),
        // Projections behind attention and behind the gate.
        ("matmul_add", layers * 2),
    ]
}

/// Tests that fusion and fixing the batch size commute.
#[test]
fn the_batch_size_can_be_fixed_after_fusion() {
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
