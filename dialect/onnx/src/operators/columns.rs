//! Values of the table's columns. Each names a function, or a group of operators that are treated alike; the crate that has
//! the functions maps the names to them.

/// Operators with a common subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Attention,
    /// Operators with subgraphs.
    ControlFlow,
    Conv,
    Elementwise,
    /// Operators that make tensors from shapes, seeds and attributes.
    Generate,
    Image,
    /// Operators that pick or place elements by index.
    Index,
    /// Operators that move elements without changing them.
    Layout,
    Loss,
    MatMul,
    Norm,
    Pool,
    Quantize,
    Recurrent,
    Reduce,
    /// Operators on sequences and optional values.
    Sequence,
    Signal,
    /// Operators on strings.
    Text,
}

/// Function that infers the types of an operator's results; `infer::function` maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InferRule {
    AffineGrid,
    AlongAxis,
    ArgExtremum,
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
    Comparison,
    Compress,
    Concat,
    Constant,
    ConstantOfShape,
    Conv,
    ConvInteger,
    ConvTranspose,
    Cumulate,
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
    Pool,
    Pow,
    Predicate,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
    RMSLayerNormalization,
    RMSNormalization,
    RNN,
    Random,
    RandomLike,
    Range,
    Reduce,
    Reshape,
    Resize,
    ReverseSequence,
    RoiAlign,
    RotaryEmbedding,
    STFT,
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
    Variadic,
    Where,
    Window,
}

/// Function that evaluates an operator on constants; `fold::function` maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoldRule {
    Arg,
    Binary,
    BitShift,
    Cast,
    CastLike,
    Clip,
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
    Logical,
    Mean,
    Mod,
    NonZero,
    Not,
    OneHot,
    Pad,
    Pow,
    Range,
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
    Unary,
    Unsqueeze,
    Variadic,
    Where,
}

/// Role of an operator in a cluster, as far as its name decides; `fuse::role` refines it by operands and types. An operator
/// without a role is left alone: its results differ from run to run, or nothing is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FusionRole {
    /// Only ever absorbs views: pools, `Concat`, `Transpose`, …
    Plain,
    /// Same bytes under another type.
    View,
    Conv,
    ConvTranspose,
    Gemm,
    MatMul,
    /// A scale and a shift per channel.
    BatchNorm,
    /// Element-wise function of operand 0, if the other operands are constants.
    Activation,
    /// Computed element by element, with broadcasting.
    Elementwise,
    Softmax,
}

/// Function that tracks the batch dimension through an operator; `rebatch::rules` maps it. An operator without a rule is assumed
/// to mix the inputs of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchRule {
    AffineGrid,
    AlongAxis,
    AlongOperandAxis,
    ArgExtremum,
    Attention,
    BatchNormalization,
    BitCast,
    Broadcast,
    CastLike,
    CausalConvWithState,
    CenterCropPad,
    Compress,
    Concat,
    DFT,
    DeformConv,
    Einsum,
    Elements,
    Expand,
    FirstAxis,
    Flatten,
    Gather,
    GatherND,
    Gemm,
    GridSample,
    LastTwoAxes,
    LayerNormalization,
    LinearAttention,
    Loss,
    MatMul,
    MatMulInteger,
    MaxPool,
    MeanVarianceNormalization,
    NotChannels,
    OneHot,
    Pad,
    Pool,
    QLinearMatMul,
    Quantize,
    Recurrent,
    Reduce,
    Reshape,
    Resize,
    ReverseSequence,
    RotaryEmbedding,
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

/// Operators that behave alike on a device: each class has coefficients of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostClass {
    /// The same bytes under another type: Reshape, Flatten, Squeeze, Unsqueeze, Identity; also what only a type tells: Shape,
    /// Size. Takes no time.
    View,
    /// Convolutions, grouped and transposed ones included, whose groups have several channels.
    Conv,
    /// Convolutions each of whose groups has one channel.
    DepthwiseConv,
    /// Gemm, MatMul, and what is made of them.
    MatMul,
    /// A few simple operations an element: Add, Relu, Where, Cast, comparisons.
    Elementwise,
    /// Operations that take many instructions an element: Exp, Erf, Tanh, Sigmoid, Gelu.
    Transcendental,
    /// BatchNormalization with fixed statistics: a scale and a shift a channel.
    BatchNorm,
    /// Normalization over elements that are read first: LayerNormalization, InstanceNormalization and their kin.
    Normalization,
    Softmax,
    /// ReduceMean and its kin, ArgMax, global pooling.
    Reduction,
    MaxPool,
    /// Means over windows, weighted ones too: interpolation by Resize.
    AveragePool,
    /// Bytes that move but do not change: Concat, Transpose, Slice, Split, Pad, Expand.
    Copy,
    /// Bytes that move to or from computed places: Gather, Scatter, Embedding look-ups.
    Gather,
    /// LSTM, GRU, RNN.
    Recurrent,
    /// Everything else, and operators that divi does not know.
    Other,
}

/// Function that counts the operations and bytes of an operator; `divi_cost::work` maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkRule {
    AffineGrid,
    Arc,
    ArcHyperbolic,
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
    Copy,
    CosineWindow,
    Cumulate,
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
    Pick,
    Pow,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
    RNN,
    RandomNormal,
    RandomUniform,
    Range,
    Reduce,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMapped,
    ReduceMean,
    Resize,
    RmsNormalization,
    RoiAlign,
    RotaryEmbedding,
    STFT,
    ScaledElu,
    Scatter,
    Sigmoid,
    Sine,
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
    Variadic,
    View,
    Where,
}

/// Module of the code generator with the plain kernel of an operator; `divi_codegen::ops` maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lowering {
    Attention,
    Conv,
    Elementwise,
    Image,
    Loss,
    MatMul,
    Movement,
    Norm,
    Pool,
    Quantize,
    Recurrent,
    Reduce,
    Signal,
    View,
}

/// Fast kernel of the CPU back end, used where types and shapes permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuKernel {
    Concat,
    Conv,
    /// Loop over a chain of element-wise functions.
    Map,
    MatMul,
    Mean,
    Pool,
}

/// Fast kernel of the CUDA back end, used where types and shapes permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CudaKernel {
    Concat,
    Conv,
    LayerNormalization,
    /// Loop over a chain of element-wise functions.
    Map,
    MatMul,
    Mean,
    Softmax,
}

/// Treatment of `f16` and `bf16` operands in a task that computes in `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HalfPrecision {
    /// Adds up many terms or has a fast kernel for `f32`: always computed in `f32`.
    Sum,
    /// Computed in `f32` together with its neighbours.
    Elementwise,
    /// Moves elements of any type: follows its operands.
    Move,
}

/// Property of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Takes so many operations per element that plain loops are much slower than a tuned kernel.
    ComputeBound,
    /// Results differ from run to run.
    Random,
}
