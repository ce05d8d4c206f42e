//! One row per operator, sorted by name. [`super`] explains the columns; `docs/add-an-operator.md` explains how to add a row.

use super::{
    BatchRule, CostClass, CpuKernel, CudaKernel, Family, Flag, FoldRule, FusionRole, HalfPrecision, InferRule,
    Lowering, Row, WorkRule,
};

operators! {
    Abs { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Acos { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseTrigonometric, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Acosh { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseHyperbolic, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Add { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    AffineGrid { family: Image, infer: AffineGrid, fold: none, fusion: Plain, batch: AffineGrid,
        class: Elementwise, work: AffineGrid, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    And { family: Elementwise, infer: Comparison, fold: Logical, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    ArgMax { family: Index, infer: ArgExtremum, fold: ArgExtremum, fusion: Plain, batch: ArgExtremum,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ArgMin { family: Index, infer: ArgExtremum, fold: ArgExtremum, fusion: Plain, batch: ArgExtremum,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    Asin { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseTrigonometric, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Asinh { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseHyperbolic, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Atan { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseTrigonometric, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Atanh { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: InverseHyperbolic, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Attention { family: Attention, infer: Attention, fold: none, fusion: Plain, batch: Attention,
        class: MatMul, work: Attention, lower: Attention, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    AveragePool { family: Pool, infer: Pool, fold: none, fusion: Plain, batch: Pool,
        class: AveragePool, work: AveragePool, lower: Pool, cpu: Pool, cuda: none, half: Sum, flags: [] }
    BatchNormalization { family: Norm, infer: BatchNormalization, fold: none, fusion: BatchNorm, batch: BatchNormalization,
        class: BatchNorm, work: BatchNormalization, lower: Norm, cpu: Map, cuda: Map, half: none, flags: [] }
    BatchNormalizationInferenceMode { family: Norm, infer: BatchNormalizationInferenceMode, fold: none, fusion: BatchNorm, batch: ExceptChannels,
        class: BatchNorm, work: BatchNormalizationInferenceMode, lower: Norm, cpu: Map, cuda: Map, half: Sum, flags: [] }
    Bernoulli { family: Generate, infer: Bernoulli, fold: none, fusion: none, batch: SameAsFirst,
        class: Elementwise, work: Bernoulli, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    BitCast { family: Layout, infer: BitCast, fold: none, fusion: Plain, batch: BitCast,
        class: View, work: View, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BitShift { family: Elementwise, infer: Arithmetic, fold: BitShift, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BitwiseAnd { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BitwiseNot { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BitwiseOr { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BitwiseXor { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    BlackmanWindow { family: Signal, infer: Window, fold: none, fusion: Plain, batch: none,
        class: Transcendental, work: BlackmanWindow, lower: Signal, cpu: none, cuda: none, half: none, flags: [] }
    Cast { family: Elementwise, infer: Cast, fold: Cast, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Cast, lower: Elementwise, cpu: Map, cuda: none, half: none, flags: [] }
    CastLike { family: Elementwise, infer: CastLike, fold: CastLike, fusion: Plain, batch: CastLike,
        class: Elementwise, work: Cast, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    CausalConvWithState { family: Conv, infer: CausalConvWithState, fold: none, fusion: Plain, batch: CausalConvWithState,
        class: DepthwiseConv, work: CausalConvWithState, lower: Conv, cpu: none, cuda: none, half: none, flags: [] }
    Ceil { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Celu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: ScaledElu, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    CenterCropPad { family: Layout, infer: CenterCropPad, fold: none, fusion: Plain, batch: CenterCropPad,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Clip { family: Elementwise, infer: SameAsFirst, fold: Clip, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Clip, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Col2Im { family: Conv, infer: Col2Im, fold: none, fusion: Plain, batch: FirstAxis,
        class: Gather, work: Col2Im, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    Compress { family: Layout, infer: Compress, fold: none, fusion: Plain, batch: Compress,
        class: Gather, work: Compress, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Concat { family: Layout, infer: Concat, fold: Concat, fusion: Plain, batch: Concat,
        class: Copy, work: Copy, lower: Movement, cpu: Concat, cuda: Concat, half: Move, flags: [] }
    ConcatFromSequence { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Constant { family: Generate, infer: Constant, fold: Constant, fusion: Plain, batch: none,
        class: View, work: View, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    ConstantOfShape { family: Generate, infer: ConstantOfShape, fold: ConstantOfShape, fusion: Plain, batch: none,
        class: Copy, work: Fill, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Conv { family: Conv, infer: Conv, fold: none, fusion: Conv, batch: FirstAxis,
        class: Conv, work: Conv, lower: Conv, cpu: Conv, cuda: Conv, half: Sum, flags: [ComputeBound] }
    ConvInteger { family: Conv, infer: ConvInteger, fold: none, fusion: Plain, batch: FirstAxis,
        class: Conv, work: ConvInteger, lower: Conv, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    ConvTranspose { family: Conv, infer: ConvTranspose, fold: none, fusion: ConvTranspose, batch: FirstAxis,
        class: Conv, work: ConvTranspose, lower: Conv, cpu: none, cuda: none, half: Sum, flags: [ComputeBound] }
    Cos { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: SineCosine, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Cosh { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Hyperbolic, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    CumProd { family: Reduce, infer: Cumulative, fold: none, fusion: Plain, batch: AlongOperandAxis,
        class: Reduction, work: Cumulative, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    CumSum { family: Reduce, infer: Cumulative, fold: CumSum, fusion: Plain, batch: AlongOperandAxis,
        class: Reduction, work: Cumulative, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    DFT { family: Signal, infer: DFT, fold: none, fusion: Plain, batch: DFT,
        class: Other, work: DFT, lower: Signal, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    DeformConv { family: Conv, infer: DeformConv, fold: none, fusion: Plain, batch: DeformConv,
        class: Conv, work: DeformConv, lower: Conv, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    DepthToSpace { family: Layout, infer: DepthToSpace, fold: none, fusion: Plain, batch: FirstAxis,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    DequantizeLinear { family: Quantize, infer: DequantizeLinear, fold: none, fusion: Plain, batch: Quantize,
        class: Elementwise, work: DequantizeLinear, lower: Quantize, cpu: none, cuda: none, half: none, flags: [] }
    Det { family: MatMul, infer: Det, fold: none, fusion: Plain, batch: LastTwoAxes,
        class: Other, work: Det, lower: MatMul, cpu: none, cuda: none, half: none, flags: [] }
    Div { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Dropout { family: Generate, infer: Dropout, fold: none, fusion: none, batch: SameAsFirst,
        class: View, work: Dropout, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [Random] }
    DynamicQuantizeLinear { family: Quantize, infer: DynamicQuantizeLinear, fold: none, fusion: Plain, batch: none,
        class: Normalization, work: DynamicQuantizeLinear, lower: Quantize, cpu: none, cuda: none, half: none, flags: [] }
    Einsum { family: MatMul, infer: Einsum, fold: none, fusion: Plain, batch: Einsum,
        class: MatMul, work: Einsum, lower: MatMul, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    Elu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Elu, lower: Elementwise, cpu: none, cuda: none, half: Elementwise, flags: [] }
    Equal { family: Elementwise, infer: Comparison, fold: Compare, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Erf { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Erf, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Exp { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Exp, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Expand { family: Layout, infer: Expand, fold: Expand, fusion: Plain, batch: Expand,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    EyeLike { family: Generate, infer: EyeLike, fold: EyeLike, fusion: Plain, batch: none,
        class: Copy, work: Fill, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Flatten { family: Layout, infer: Flatten, fold: Flatten, fusion: View, batch: Flatten,
        class: View, work: View, lower: View, cpu: none, cuda: none, half: Move, flags: [] }
    Floor { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    GRU { family: Recurrent, infer: GRU, fold: none, fusion: Plain, batch: Recurrent,
        class: Recurrent, work: GRU, lower: Recurrent, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    Gather { family: Index, infer: Gather, fold: Gather, fusion: Plain, batch: Gather,
        class: Gather, work: Select, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    GatherElements { family: Index, infer: GatherElements, fold: GatherElements, fusion: Plain, batch: GatherScatterElements,
        class: Gather, work: Select, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    GatherND { family: Index, infer: GatherND, fold: GatherND, fusion: Plain, batch: GatherND,
        class: Gather, work: Select, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    Gelu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Gelu, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Gemm { family: MatMul, infer: Gemm, fold: none, fusion: Gemm, batch: Gemm,
        class: MatMul, work: Gemm, lower: MatMul, cpu: MatMul, cuda: MatMul, half: Sum, flags: [ComputeBound] }
    GlobalAveragePool { family: Pool, infer: GlobalPool, fold: none, fusion: Plain, batch: Pool,
        class: Reduction, work: GlobalAveragePool, lower: Pool, cpu: Mean, cuda: Mean, half: Sum, flags: [] }
    GlobalLpPool { family: Pool, infer: GlobalPool, fold: none, fusion: Plain, batch: Pool,
        class: Reduction, work: GlobalLpPool, lower: Pool, cpu: none, cuda: none, half: none, flags: [] }
    GlobalMaxPool { family: Pool, infer: GlobalPool, fold: none, fusion: Plain, batch: Pool,
        class: Reduction, work: GlobalMaxPool, lower: Pool, cpu: none, cuda: none, half: Move, flags: [] }
    Greater { family: Elementwise, infer: Comparison, fold: Compare, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    GreaterOrEqual { family: Elementwise, infer: Comparison, fold: Compare, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    GridSample { family: Image, infer: GridSample, fold: none, fusion: Plain, batch: GridSample,
        class: Gather, work: GridSample, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    GroupNormalization { family: Norm, infer: GroupNormalization, fold: none, fusion: Plain, batch: FirstAxis,
        class: Normalization, work: GroupNormalization, lower: Norm, cpu: none, cuda: none, half: Sum, flags: [] }
    HammingWindow { family: Signal, infer: Window, fold: none, fusion: Plain, batch: none,
        class: Transcendental, work: CosineWindow, lower: Signal, cpu: none, cuda: none, half: none, flags: [] }
    HannWindow { family: Signal, infer: Window, fold: none, fusion: Plain, batch: none,
        class: Transcendental, work: CosineWindow, lower: Signal, cpu: none, cuda: none, half: none, flags: [] }
    HardSigmoid { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations4, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    HardSwish { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations5, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Hardmax { family: Norm, infer: AlongAxis, fold: none, fusion: Plain, batch: AlongAxis,
        class: Softmax, work: Hardmax, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    Identity { family: Elementwise, infer: SameAsFirst, fold: Identity, fusion: View, batch: SameAsFirst,
        class: View, work: View, lower: View, cpu: none, cuda: none, half: Move, flags: [] }
    If { family: ControlFlow, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    ImageDecoder { family: Image, infer: ImageDecoder, fold: none, fusion: Plain, batch: none,
        class: Other, work: ImageDecoder, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    InstanceNormalization { family: Norm, infer: InstanceNormalization, fold: none, fusion: Plain, batch: FirstAxis,
        class: Normalization, work: InstanceNormalization, lower: Norm, cpu: none, cuda: none, half: Sum, flags: [] }
    IsInf { family: Elementwise, infer: Predicate, fold: IsInf, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    IsNaN { family: Elementwise, infer: Predicate, fold: IsNaN, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    LRN { family: Norm, infer: LRN, fold: none, fusion: Plain, batch: ExceptChannels,
        class: Normalization, work: LRN, lower: Norm, cpu: none, cuda: none, half: none, flags: [] }
    LSTM { family: Recurrent, infer: LSTM, fold: none, fusion: Plain, batch: Recurrent,
        class: Recurrent, work: LSTM, lower: Recurrent, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    LayerNormalization { family: Norm, infer: LayerNormalization, fold: none, fusion: Plain, batch: LayerNormalization,
        class: Normalization, work: LayerNormalization, lower: Norm, cpu: none, cuda: LayerNormalization, half: Sum, flags: [] }
    LeakyRelu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations2, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Less { family: Elementwise, infer: Comparison, fold: Compare, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    LessOrEqual { family: Elementwise, infer: Comparison, fold: Compare, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    LinearAttention { family: Attention, infer: LinearAttention, fold: none, fusion: Plain, batch: LinearAttention,
        class: Recurrent, work: LinearAttention, lower: Attention, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    Log { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Log, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    LogSoftmax { family: Norm, infer: AlongAxis, fold: none, fusion: Softmax, batch: AlongAxis,
        class: Softmax, work: LogSoftmax, lower: Reduce, cpu: none, cuda: none, half: Sum, flags: [] }
    Loop { family: ControlFlow, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    LpNormalization { family: Norm, infer: LpNormalization, fold: none, fusion: Plain, batch: AlongAxis,
        class: Normalization, work: LpNormalization, lower: Norm, cpu: none, cuda: none, half: none, flags: [] }
    LpPool { family: Pool, infer: Pool, fold: none, fusion: Plain, batch: Pool,
        class: AveragePool, work: LpPool, lower: Pool, cpu: none, cuda: none, half: none, flags: [] }
    MatMul { family: MatMul, infer: MatMul, fold: none, fusion: MatMul, batch: MatMul,
        class: MatMul, work: MatMul, lower: MatMul, cpu: MatMul, cuda: MatMul, half: Sum, flags: [ComputeBound] }
    MatMulInteger { family: MatMul, infer: MatMulInteger, fold: none, fusion: Plain, batch: MatMulInteger,
        class: MatMul, work: MatMul, lower: MatMul, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    Max { family: Elementwise, infer: Variadic, fold: Variadic, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Variadic, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    MaxPool { family: Pool, infer: MaxPool, fold: none, fusion: Plain, batch: MaxPool,
        class: MaxPool, work: MaxPool, lower: Pool, cpu: Pool, cuda: none, half: Move, flags: [] }
    MaxPoolSingleOut { family: Pool, infer: Pool, fold: none, fusion: Plain, batch: Pool,
        class: MaxPool, work: MaxPool, lower: Pool, cpu: Pool, cuda: none, half: Move, flags: [] }
    MaxRoiPool { family: Pool, infer: MaxRoiPool, fold: none, fusion: Plain, batch: none,
        class: MaxPool, work: MaxRoiPool, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    MaxUnpool { family: Pool, infer: MaxUnpool, fold: none, fusion: Plain, batch: none,
        class: Gather, work: MaxUnpool, lower: Pool, cpu: none, cuda: none, half: none, flags: [] }
    Mean { family: Elementwise, infer: Variadic, fold: Mean, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Mean, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    MeanVarianceNormalization { family: Norm, infer: MeanVarianceNormalization, fold: none, fusion: Plain, batch: MeanVarianceNormalization,
        class: Normalization, work: MeanVarianceNormalization, lower: Norm, cpu: none, cuda: none, half: none, flags: [] }
    MelWeightMatrix { family: Signal, infer: MelWeightMatrix, fold: none, fusion: Plain, batch: none,
        class: Elementwise, work: MelWeightMatrix, lower: Signal, cpu: none, cuda: none, half: none, flags: [] }
    Min { family: Elementwise, infer: Variadic, fold: Variadic, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Variadic, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Mish { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Mish, lower: Elementwise, cpu: none, cuda: none, half: Elementwise, flags: [] }
    Mod { family: Elementwise, infer: Arithmetic, fold: Mod, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations3, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Mul { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Multinomial { family: Generate, infer: Multinomial, fold: none, fusion: none, batch: FirstAxis,
        class: Softmax, work: Multinomial, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    Neg { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    NegativeLogLikelihoodLoss { family: Loss, infer: NegativeLogLikelihoodLoss, fold: none, fusion: Plain, batch: Loss,
        class: Gather, work: NegativeLogLikelihoodLoss, lower: Loss, cpu: none, cuda: none, half: none, flags: [] }
    NonMaxSuppression { family: Index, infer: NonMaxSuppression, fold: none, fusion: Plain, batch: none,
        class: Other, work: NonMaxSuppression, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    NonZero { family: Index, infer: NonZero, fold: NonZero, fusion: Plain, batch: none,
        class: Gather, work: NonZero, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Not { family: Elementwise, infer: SameAsFirst, fold: Not, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    OneHot { family: Index, infer: OneHot, fold: OneHot, fusion: Plain, batch: OneHot,
        class: Gather, work: Copy, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    OptionalGetElement { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    OptionalHasElement { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Or { family: Elementwise, infer: Comparison, fold: Logical, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    PRelu { family: Elementwise, infer: PRelu, fold: none, fusion: Activation, batch: Broadcast,
        class: Elementwise, work: Operations2, lower: Elementwise, cpu: none, cuda: none, half: Elementwise, flags: [] }
    Pad { family: Layout, infer: Pad, fold: Pad, fusion: Plain, batch: Pad,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    PadV11 { family: Layout, infer: Pad, fold: none, fusion: Plain, batch: none,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    PadV13 { family: Layout, infer: Pad, fold: none, fusion: Plain, batch: none,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    PadV18 { family: Layout, infer: Pad, fold: none, fusion: Plain, batch: none,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Pow { family: Elementwise, infer: Pow, fold: Pow, fusion: Elementwise, batch: Broadcast,
        class: Transcendental, work: Pow, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    QLinearConv { family: Conv, infer: QLinearConv, fold: none, fusion: Plain, batch: FirstAxis,
        class: Conv, work: QLinearConv, lower: Conv, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    QLinearMatMul { family: MatMul, infer: QLinearMatMul, fold: none, fusion: Plain, batch: QLinearMatMul,
        class: MatMul, work: QLinearMatMul, lower: MatMul, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    QuantizeLinear { family: Quantize, infer: QuantizeLinear, fold: none, fusion: Plain, batch: Quantize,
        class: Elementwise, work: QuantizeLinear, lower: Quantize, cpu: none, cuda: none, half: none, flags: [] }
    RMSLayerNormalization { family: Norm, infer: RMSLayerNormalization, fold: none, fusion: Plain, batch: LayerNormalization,
        class: Normalization, work: RmsNormalization, lower: Norm, cpu: none, cuda: none, half: none, flags: [] }
    RMSNormalization { family: Norm, infer: RMSNormalization, fold: none, fusion: Plain, batch: LayerNormalization,
        class: Normalization, work: RmsNormalization, lower: Norm, cpu: none, cuda: none, half: Sum, flags: [] }
    RNN { family: Recurrent, infer: RNN, fold: none, fusion: Plain, batch: Recurrent,
        class: Recurrent, work: RNN, lower: Recurrent, cpu: none, cuda: none, half: none, flags: [ComputeBound] }
    RandomNormal { family: Generate, infer: Random, fold: none, fusion: none, batch: none,
        class: Transcendental, work: RandomNormal, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    RandomNormalLike { family: Generate, infer: RandomLike, fold: none, fusion: none, batch: SameAsFirst,
        class: Transcendental, work: RandomNormal, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    RandomUniform { family: Generate, infer: Random, fold: none, fusion: none, batch: none,
        class: Elementwise, work: RandomUniform, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    RandomUniformLike { family: Generate, infer: RandomLike, fold: none, fusion: none, batch: SameAsFirst,
        class: Elementwise, work: RandomUniform, lower: none, cpu: none, cuda: none, half: none, flags: [Random] }
    Range { family: Generate, infer: Range, fold: Range, fusion: Plain, batch: none,
        class: Elementwise, work: Range, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Reciprocal { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    ReduceL1 { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceMapped, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceL2 { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceL2, lower: Reduce, cpu: none, cuda: none, half: Sum, flags: [] }
    ReduceLogSum { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceLogSum, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceLogSumExp { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceLogSumExp, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceMax { family: Reduce, infer: Reduce, fold: Reduce, fusion: Plain, batch: Reduce,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceMaxV18 { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: none,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceMean { family: Reduce, infer: Reduce, fold: Reduce, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceMean, lower: Reduce, cpu: Mean, cuda: Mean, half: Sum, flags: [] }
    ReduceMin { family: Reduce, infer: Reduce, fold: Reduce, fusion: Plain, batch: Reduce,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceMinV18 { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: none,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceProd { family: Reduce, infer: Reduce, fold: Reduce, fusion: Plain, batch: Reduce,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    ReduceSum { family: Reduce, infer: Reduce, fold: Reduce, fusion: Plain, batch: Reduce,
        class: Reduction, work: Reduce, lower: Reduce, cpu: none, cuda: none, half: Sum, flags: [] }
    ReduceSumSquare { family: Reduce, infer: Reduce, fold: none, fusion: Plain, batch: Reduce,
        class: Reduction, work: ReduceMapped, lower: Reduce, cpu: none, cuda: none, half: Sum, flags: [] }
    RegexFullMatch { family: Text, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Relu { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Reshape { family: Layout, infer: Reshape, fold: Reshape, fusion: View, batch: Reshape,
        class: View, work: View, lower: View, cpu: none, cuda: none, half: Move, flags: [] }
    Resize { family: Image, infer: Resize, fold: none, fusion: Plain, batch: Resize,
        class: Copy, work: Resize, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    ReverseSequence { family: Layout, infer: ReverseSequence, fold: none, fusion: Plain, batch: ReverseSequence,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    RoiAlign { family: Image, infer: RoiAlign, fold: none, fusion: Plain, batch: none,
        class: AveragePool, work: RoiAlign, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    RotaryEmbedding { family: Attention, infer: RotaryEmbedding, fold: none, fusion: Plain, batch: RotaryEmbedding,
        class: Elementwise, work: RotaryEmbedding, lower: Attention, cpu: none, cuda: none, half: none, flags: [] }
    Round { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    STFT { family: Signal, infer: STFT, fold: none, fusion: Plain, batch: FirstAxis,
        class: Other, work: STFT, lower: Signal, cpu: none, cuda: none, half: none, flags: [] }
    Scan { family: ControlFlow, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Scatter { family: Index, infer: ScatterElements, fold: none, fusion: Plain, batch: GatherScatterElements,
        class: Gather, work: Scatter, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    ScatterElements { family: Index, infer: ScatterElements, fold: ScatterElements, fusion: Plain, batch: GatherScatterElements,
        class: Gather, work: Scatter, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    ScatterND { family: Index, infer: ScatterND, fold: ScatterND, fusion: Plain, batch: ScatterND,
        class: Gather, work: Scatter, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Selu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: ScaledElu, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    SequenceAt { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceConstruct { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceEmpty { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceErase { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceInsert { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceLength { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SequenceMap { family: ControlFlow, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Shape { family: Generate, infer: Shape, fold: Shape, fusion: Plain, batch: none,
        class: View, work: View, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Shrink { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Plain, batch: SameAsFirst,
        class: Elementwise, work: Operations4, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Sigmoid { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Sigmoid, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Sign { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Sin { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: SineCosine, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Sinh { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Hyperbolic, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Size { family: Generate, infer: Size, fold: Size, fusion: Plain, batch: none,
        class: View, work: View, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Slice { family: Layout, infer: Slice, fold: Slice, fusion: Plain, batch: Slice,
        class: Copy, work: Select, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    Softmax { family: Norm, infer: AlongAxis, fold: none, fusion: Softmax, batch: AlongAxis,
        class: Softmax, work: Softmax, lower: Reduce, cpu: Softmax, cuda: Softmax, half: Sum, flags: [] }
    SoftmaxCrossEntropyLoss { family: Loss, infer: SoftmaxCrossEntropyLoss, fold: none, fusion: Plain, batch: Loss,
        class: Softmax, work: SoftmaxCrossEntropyLoss, lower: Loss, cpu: none, cuda: none, half: none, flags: [] }
    Softplus { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Softplus, lower: Elementwise, cpu: none, cuda: none, half: Elementwise, flags: [] }
    Softsign { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations3, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    SpaceToDepth { family: Layout, infer: SpaceToDepth, fold: none, fusion: Plain, batch: FirstAxis,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    Split { family: Layout, infer: Split, fold: Split, fusion: Plain, batch: Split,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    SplitToSequence { family: Sequence, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    SplitV13 { family: Layout, infer: Split, fold: none, fusion: Plain, batch: none,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Sqrt { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Squeeze { family: Layout, infer: Squeeze, fold: Squeeze, fusion: View, batch: Squeeze,
        class: View, work: View, lower: View, cpu: none, cuda: none, half: Move, flags: [] }
    StringNormalizer { family: Text, infer: none, fold: none, fusion: none, batch: none,
        class: Other, work: none, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    Sub { family: Elementwise, infer: Arithmetic, fold: Binary, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    Sum { family: Elementwise, infer: Variadic, fold: Variadic, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Variadic, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    SwiGLU { family: Attention, infer: SwiGLU, fold: none, fusion: Plain, batch: Broadcast,
        class: Transcendental, work: SwiGLU, lower: Attention, cpu: none, cuda: none, half: none, flags: [] }
    Swish { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Swish, lower: Elementwise, cpu: none, cuda: none, half: Elementwise, flags: [] }
    Tan { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Elementwise, batch: SameAsFirst,
        class: Transcendental, work: Tan, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Tanh { family: Elementwise, infer: SameAsFirst, fold: Unary, fusion: Activation, batch: SameAsFirst,
        class: Transcendental, work: Tanh, lower: Elementwise, cpu: Map, cuda: Map, half: Elementwise, flags: [] }
    TensorScatter { family: Layout, infer: TensorScatter, fold: none, fusion: Plain, batch: TensorScatter,
        class: Gather, work: Scatter, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    TfIdfVectorizer { family: Loss, infer: TfIdfVectorizer, fold: none, fusion: Plain, batch: TfIdfVectorizer,
        class: Other, work: TfIdfVectorizer, lower: none, cpu: none, cuda: none, half: none, flags: [] }
    ThresholdedRelu { family: Elementwise, infer: SameAsFirst, fold: none, fusion: Activation, batch: SameAsFirst,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
    Tile { family: Layout, infer: Tile, fold: Tile, fusion: Plain, batch: Tile,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    TopK { family: Index, infer: TopK, fold: none, fusion: Plain, batch: AlongAxis,
        class: Reduction, work: TopK, lower: Reduce, cpu: none, cuda: none, half: none, flags: [] }
    Transpose { family: Layout, infer: Transpose, fold: Transpose, fusion: Plain, batch: Transpose,
        class: Copy, work: Transpose, lower: Movement, cpu: none, cuda: none, half: Move, flags: [] }
    Trilu { family: Layout, infer: Trilu, fold: Trilu, fusion: Plain, batch: LastTwoAxes,
        class: Copy, work: Copy, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Unique { family: Index, infer: Unique, fold: none, fusion: Plain, batch: none,
        class: Other, work: Unique, lower: Movement, cpu: none, cuda: none, half: none, flags: [] }
    Unsqueeze { family: Layout, infer: Unsqueeze, fold: Unsqueeze, fusion: View, batch: Unsqueeze,
        class: View, work: View, lower: View, cpu: none, cuda: none, half: Move, flags: [] }
    Upsample { family: Image, infer: Upsample, fold: none, fusion: Plain, batch: Resize,
        class: Copy, work: Resize, lower: Image, cpu: none, cuda: none, half: none, flags: [] }
    Where { family: Elementwise, infer: Where, fold: Where, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Where, lower: Elementwise, cpu: none, cuda: none, half: Move, flags: [] }
    Xor { family: Elementwise, infer: Comparison, fold: Logical, fusion: Elementwise, batch: Broadcast,
        class: Elementwise, work: Operations1, lower: Elementwise, cpu: none, cuda: none, half: none, flags: [] }
}
