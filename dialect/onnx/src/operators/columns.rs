//! Values of the table's columns. Each identifies a function, or a group of operators that are treated alike. The crate that
//! defines the functions maps the values to them. Variants without a comment are named after their operator.

/// Family of operators, by subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Attention and related operators.
    Attention,
    /// Operators with subgraphs.
    ControlFlow,
    /// Convolutions.
    Conv,
    /// Elementwise operators.
    Elementwise,
    /// Operators that create tensors from shapes, seeds and attributes.
    Generate,
    /// Operators on images.
    Image,
    /// Operators that gather, scatter or compute indices.
    Index,
    /// Operators that move elements without changing them.
    Layout,
    /// Loss functions.
    Loss,
    /// Matrix products.
    MatMul,
    /// Normalizations.
    Norm,
    /// Pooling.
    Pool,
    /// Quantization and dequantization.
    Quantize,
    /// Recurrent layers.
    Recurrent,
    /// Reductions and cumulative operators.
    Reduce,
    /// Operators on sequences and optional values.
    Sequence,
    /// Signal processing.
    Signal,
    /// Operators on strings.
    Text,
}

/// Inference rule: function that infers the types of an operator's results; mapped by `infer::function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "variants without a comment are named after their operator")]
pub enum InferRule {
    AffineGrid,
    /// Operators along the attribute `axis` that preserve the type: `Softmax`, …
    AlongAxis,
    /// `ArgMax` and `ArgMin`.
    ArgExtremum,
    /// Binary operators with broadcasting.
    Arithmetic,
    Attention,
    BatchNormalization,
    BatchNormalizationInferenceMode,
    Bernoulli,
    BitCast,
    Cast,
    CastLike,
    CausalConvWithState,
    CenterCropPad,
    Col2Im,
    /// Binary operators with broadcasting and a `bool` result.
    Comparison,
    Compress,
    Concat,
    Constant,
    ConstantOfShape,
    Conv,
    ConvInteger,
    ConvTranspose,
    /// `CumSum` and `CumProd`.
    Cumulative,
    DFT,
    DeformConv,
    DepthToSpace,
    DequantizeLinear,
    Det,
    Dropout,
    DynamicQuantizeLinear,
    Einsum,
    Expand,
    EyeLike,
    Flatten,
    GRU,
    Gather,
    GatherElements,
    GatherND,
    Gemm,
    /// Pooling over all spatial axes.
    GlobalPool,
    GridSample,
    GroupNormalization,
    ImageDecoder,
    InstanceNormalization,
    LRN,
    LSTM,
    LayerNormalization,
    LinearAttention,
    LpNormalization,
    MatMul,
    MatMulInteger,
    MaxPool,
    MaxRoiPool,
    MaxUnpool,
    MeanVarianceNormalization,
    MelWeightMatrix,
    Multinomial,
    NegativeLogLikelihoodLoss,
    NonMaxSuppression,
    NonZero,
    OneHot,
    PRelu,
    Pad,
    /// Pooling with one result.
    Pool,
    Pow,
    /// Unary operators with a `bool` result.
    Predicate,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
    RMSLayerNormalization,
    RMSNormalization,
    RNN,
    /// Random numbers of a given shape.
    Random,
    /// Random numbers of the shape of an operand.
    RandomLike,
    Range,
    /// Reductions over axes.
    Reduce,
    Reshape,
    Resize,
    ReverseSequence,
    RoiAlign,
    RotaryEmbedding,
    STFT,
    /// Operators whose result has the type of operand 0.
    SameAsFirst,
    ScatterElements,
    ScatterND,
    Shape,
    Size,
    Slice,
    SoftmaxCrossEntropyLoss,
    SpaceToDepth,
    Split,
    Squeeze,
    SwiGLU,
    TensorScatter,
    TfIdfVectorizer,
    Tile,
    TopK,
    Transpose,
    Trilu,
    Unique,
    Unsqueeze,
    Upsample,
    /// Variadic operators with broadcasting.
    Variadic,
    Where,
    /// Window functions of signal processing.
    Window,
}

/// Folding rule: function that evaluates an operator on constants; mapped by `fold::function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "variants without a comment are named after their operator")]
pub enum FoldRule {
    /// `ArgMax` and `ArgMin`.
    ArgExtremum,
    /// Binary arithmetic.
    Binary,
    BitShift,
    Cast,
    CastLike,
    Clip,
    /// Comparisons.
    Compare,
    Concat,
    Constant,
    ConstantOfShape,
    CumSum,
    Expand,
    EyeLike,
    Flatten,
    Gather,
    GatherElements,
    GatherND,
    Identity,
    IsInf,
    IsNaN,
    /// Binary operators on `bool`.
    Logical,
    Mean,
    Mod,
    NonZero,
    Not,
    OneHot,
    Pad,
    Pow,
    Range,
    /// Reductions over axes.
    Reduce,
    Reshape,
    ScatterElements,
    ScatterND,
    Shape,
    Size,
    Slice,
    Split,
    Squeeze,
    Tile,
    Transpose,
    Trilu,
    /// Unary elementwise operators.
    Unary,
    Unsqueeze,
    /// Variadic arithmetic.
    Variadic,
    Where,
}

/// Role of an operator in a cluster; `fuse::role` refines it by operands and types. An operator without a role is never fused:
/// its results differ from run to run, or it is opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FusionRole {
    /// Fuses only with views: pools, `Concat`, `Transpose`, …
    Plain,
    /// Result has the same bytes with another type.
    View,
    /// `Conv`, which can be the anchor of a cluster.
    Conv,
    /// `ConvTranspose`, which can be the anchor of a cluster.
    ConvTranspose,
    /// `Gemm`, which can be the anchor of a cluster.
    Gemm,
    /// `MatMul`, which can be the anchor of a cluster.
    MatMul,
    /// Scale and shift per channel.
    BatchNorm,
    /// Elementwise function of operand 0, if the other operands are constants.
    Activation,
    /// Elementwise, with broadcasting.
    Elementwise,
    /// `Softmax` along an axis.
    Softmax,
}

/// Batch rule: function that propagates the batch dimension through an operator; mapped by `rebatch::rules`. An operator without
/// a rule is assumed to mix the inputs of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "variants without a comment are named after their operator")]
pub enum BatchRule {
    AffineGrid,
    /// The batch is not on the axis of the attribute `axis`.
    AlongAxis,
    /// The batch is not on the axis given by operand 1.
    AlongOperandAxis,
    /// `ArgMax` and `ArgMin`.
    ArgExtremum,
    Attention,
    BatchNormalization,
    BitCast,
    /// Elementwise operators with broadcasting.
    Broadcast,
    CastLike,
    CausalConvWithState,
    CenterCropPad,
    Compress,
    Concat,
    DFT,
    DeformConv,
    Einsum,
    /// `GatherElements` and `ScatterElements`.
    GatherScatterElements,
    Expand,
    /// The batch is the first axis of operand 0 and of all results.
    FirstAxis,
    Flatten,
    Gather,
    GatherND,
    Gemm,
    GridSample,
    /// The batch is not on the last two axes.
    LastTwoAxes,
    LayerNormalization,
    LinearAttention,
    /// Loss functions.
    Loss,
    MatMul,
    MatMulInteger,
    MaxPool,
    MeanVarianceNormalization,
    /// The batch is not on the channel axis.
    ExceptChannels,
    OneHot,
    Pad,
    /// Pooling: the batch is on the first or the channel axis.
    Pool,
    QLinearMatMul,
    /// `QuantizeLinear` and `DequantizeLinear`.
    Quantize,
    /// Recurrent layers.
    Recurrent,
    /// Reductions over axes.
    Reduce,
    Reshape,
    Resize,
    ReverseSequence,
    RotaryEmbedding,
    /// The result has the batch axis of operand 0.
    SameAsFirst,
    ScatterND,
    Slice,
    Split,
    Squeeze,
    TensorScatter,
    TfIdfVectorizer,
    Tile,
    Transpose,
    Unsqueeze,
}

/// Class of operators that share coefficients of the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostClass {
    /// Operators that take no time: those that only change the type (Reshape, Flatten, Squeeze, Unsqueeze, Identity), and those
    /// that depend only on a type (Shape, Size).
    View,
    /// Convolutions with several channels per group, including transposed ones.
    Conv,
    /// Convolutions with one channel per group.
    DepthwiseConv,
    /// Gemm, MatMul, and operators composed of them.
    MatMul,
    /// Few simple operations per element: Add, Relu, Where, Cast, comparisons.
    Elementwise,
    /// Many instructions per element: Exp, Erf, Tanh, Sigmoid, Gelu.
    Transcendental,
    /// BatchNormalization with fixed statistics: scale and shift per channel.
    BatchNorm,
    /// Normalization by computed statistics: LayerNormalization, InstanceNormalization and similar operators.
    Normalization,
    /// `Softmax` and `LogSoftmax`.
    Softmax,
    /// ReduceMean and similar operators, ArgMax, global pooling.
    Reduction,
    /// Maxima over windows.
    MaxPool,
    /// Means over windows, including weighted ones: interpolation by Resize.
    AveragePool,
    /// Regular data movement: Concat, Transpose, Slice, Split, Pad, Expand.
    Copy,
    /// Data movement by computed indices: Gather, Scatter, embedding lookups.
    Gather,
    /// LSTM, GRU, RNN.
    Recurrent,
    /// All other operators, including unknown ones.
    Other,
}

/// Work rule: function that counts the operations and bytes of an operator; mapped by `divi_cost::work`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "variants without a comment are named after their operator")]
pub enum WorkRule {
    AffineGrid,
    /// Inverse trigonometric functions.
    InverseTrigonometric,
    /// Inverse hyperbolic functions.
    InverseHyperbolic,
    Attention,
    AveragePool,
    BatchNormalization,
    BatchNormalizationInferenceMode,
    Bernoulli,
    BlackmanWindow,
    Cast,
    CausalConvWithState,
    Clip,
    Col2Im,
    Compress,
    Conv,
    ConvInteger,
    ConvTranspose,
    /// Regular copies: `Concat`, `Split`, `Tile`, …
    Copy,
    /// Windows with one cosine: `HannWindow` and `HammingWindow`.
    CosineWindow,
    /// `CumSum` and `CumProd`.
    Cumulative,
    DFT,
    DeformConv,
    DequantizeLinear,
    Det,
    Dropout,
    DynamicQuantizeLinear,
    Einsum,
    Elu,
    Erf,
    Exp,
    /// Results that depend on no element: `ConstantOfShape` and `EyeLike`.
    Fill,
    GRU,
    Gelu,
    Gemm,
    GlobalAveragePool,
    GlobalLpPool,
    GlobalMaxPool,
    GridSample,
    GroupNormalization,
    Hardmax,
    /// `Sinh` and `Cosh`.
    Hyperbolic,
    ImageDecoder,
    InstanceNormalization,
    LRN,
    LSTM,
    LayerNormalization,
    LinearAttention,
    Log,
    LogSoftmax,
    LpNormalization,
    LpPool,
    MatMul,
    MaxPool,
    MaxRoiPool,
    MaxUnpool,
    Mean,
    MeanVarianceNormalization,
    MelWeightMatrix,
    Mish,
    Multinomial,
    NegativeLogLikelihoodLoss,
    NonMaxSuppression,
    NonZero,
    /// One operation per element.
    Operations1,
    /// Two operations per element.
    Operations2,
    /// Three operations per element.
    Operations3,
    /// Four operations per element.
    Operations4,
    /// Five operations per element.
    Operations5,
    /// Copies of some elements: `Slice`, `Gather`, `Pad`, …
    Select,
    Pow,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
    RNN,
    RandomNormal,
    RandomUniform,
    Range,
    /// One operation per element of the operand.
    Reduce,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    /// Reductions of a function of each element: `ReduceL1` and `ReduceSumSquare`.
    ReduceMapped,
    ReduceMean,
    Resize,
    /// `RMSNormalization` and onnx-mlir's form of it.
    RmsNormalization,
    RoiAlign,
    RotaryEmbedding,
    STFT,
    /// `Selu` and `Celu`.
    ScaledElu,
    /// `ScatterElements`, `ScatterND` and `TensorScatter`.
    Scatter,
    Sigmoid,
    /// `Sin` and `Cos`.
    SineCosine,
    Softmax,
    SoftmaxCrossEntropyLoss,
    Softplus,
    SwiGLU,
    Swish,
    Tan,
    Tanh,
    TfIdfVectorizer,
    TopK,
    Transpose,
    Unique,
    /// Variadic elementwise operators.
    Variadic,
    /// Operators that move no bytes.
    View,
    Where,
}

/// Module of the code generator with the plain kernel of an operator; mapped by `divi_codegen::ops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lowering {
    /// Attention and related operators.
    Attention,
    /// Convolutions.
    Conv,
    /// Elementwise operators.
    Elementwise,
    /// Operators on images.
    Image,
    /// Loss functions.
    Loss,
    /// Matrix products.
    MatMul,
    /// Data movement.
    Movement,
    /// Normalizations.
    Norm,
    /// Pooling.
    Pool,
    /// Quantization and dequantization.
    Quantize,
    /// Recurrent layers.
    Recurrent,
    /// Reductions and cumulative operators.
    Reduce,
    /// Signal processing.
    Signal,
    /// Operators that only change the type.
    View,
}

/// Optimized kernel of the CPU back end, used if types and shapes permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuKernel {
    /// Concatenation.
    Concat,
    /// Convolution.
    Conv,
    /// Loop over a chain of elementwise functions.
    Map,
    /// Matrix product.
    MatMul,
    /// Mean over axes.
    Mean,
    /// Pooling.
    Pool,
    /// Softmax.
    Softmax,
}

/// Optimized kernel of the CUDA back end, used if types and shapes permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CudaKernel {
    /// Concatenation.
    Concat,
    /// Convolution.
    Conv,
    /// Layer normalization.
    LayerNormalization,
    /// Loop over a chain of elementwise functions.
    Map,
    /// Matrix product.
    MatMul,
    /// Mean over axes.
    Mean,
    /// Softmax.
    Softmax,
}

/// Treatment of `f16` and `bf16` operands in a task that computes in `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HalfPrecision {
    /// Sums many terms or has an optimized kernel for `f32`: always computed in `f32`.
    Sum,
    /// Computed in `f32` if its task has another operator of this kind or a [`Self::Sum`].
    Elementwise,
    /// Moves or selects elements: exact in the type of its operands.
    Move,
}

/// Property of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Many operations per element: plain loops are much slower than an optimized kernel.
    ComputeBound,
    /// Results differ from run to run.
    Random,
}
