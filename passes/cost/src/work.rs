//! How much work an operator is: operations, bytes, and the loops that its efficiency depends on.

use divi_onnx::DType;

/// Operators that behave alike on a device: each class has coefficients of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The same bytes under another type: Reshape, Flatten, Squeeze, Unsqueeze, Identity. Takes no time.
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

/// The loops of an operator, as far as its efficiency depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// A convolution: `pixels` of the output (of the input, if transposed) for each of `images`, `taps` of the kernel.
    Conv {
        images: u64,
        groups: u64,
        /// Of one group.
        in_channels: u64,
        /// Of one group.
        out_channels: u64,
        pixels: u64,
        /// The innermost spatial dimension of the output.
        width: u64,
        taps: u64,
        /// The product of the strides.
        stride: u64,
    },
    /// `count` products of a `rows` x `depth` by a `depth` x `columns` matrix.
    Product { count: u64, rows: u64, columns: u64, depth: u64 },
    /// `outer` results of `inner` elements each: reductions, normalizations, softmax, pooling windows.
    Reduce { outer: u64, inner: u64 },
    /// `count` elements, one by one.
    Elements { count: u64 },
}

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub class: Class,
    /// Arithmetic operations; a multiplication and an addition are two.
    pub flops: u64,
    /// Bytes of operands that other tasks compute.
    pub read: u64,
    /// Bytes of operands that are constant.
    pub weights: u64,
    /// Bytes of results.
    pub written: u64,
    /// Bytes that it needs while it runs, beside operands and results.
    pub scratch: u64,
    /// What the arithmetic is done in.
    pub dtype: DType,
    pub geometry: Geometry,
}
