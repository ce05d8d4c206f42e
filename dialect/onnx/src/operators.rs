//! Operators of the `onnx` dialect: a table of the compiler functions that implement each operator.
//!
//! | column | contents | mapped to functions by |
//! |---|---|---|
//! | `infer` | shape and type inference | [`crate::infer`] |
//! | `fold` | evaluation on constants | [`crate::fold`] |
//! | `fusion` | role in clusters | `divi_passes::fuse` |
//! | `batch` | propagation of the batch dimension | `divi_passes::rebatch` |
//! | `class`, `work` | cost model, and operations and bytes | `divi_cost::work` |
//! | `lower` | plain kernel | `divi_codegen::ops` |
//! | `cpu`, `cuda` | optimized kernels | `divi_codegen::cpu`, `divi_codegen::cuda` |
//! | `half` | treatment of half precision | `divi_codegen::widen` |
//!
//! `none` in a column is a feature that the operator lacks; `operators/unsupported.txt` lists them all. The table contains the
//! operators of ONNX's newest opset and additional ones of the dialect ([`DIALECT_ONLY`]). `docs/add-an-operator.md` describes
//! how to add one.

mod columns;
pub use columns::{
    BatchRule, CostClass, CpuKernel, CudaKernel, Family, Flag, FoldRule, FusionRole, HalfPrecision, InferRule,
    Lowering, WorkRule,
};
use std::fmt;

/// Row of the table.
struct Row {
    name: &'static str,
    /// Name of the MLIR operation.
    operation: &'static str,
    family: Family,
    infer: Option<InferRule>,
    fold: Option<FoldRule>,
    fusion: Option<FusionRole>,
    batch: Option<BatchRule>,
    class: CostClass,
    work: Option<WorkRule>,
    lower: Option<Lowering>,
    cpu: Option<CpuKernel>,
    cuda: Option<CudaKernel>,
    half: Option<HalfPrecision>,
    flags: &'static [Flag],
}

/// Expands to the value of a column: `none`, or a variant of the column's type.
macro_rules! column {
    ($type:ident, none) => {
        None
    };
    ($type:ident, $variant:ident) => {
        Some($type::$variant)
    };
}

macro_rules! operators {
    ($($name:ident {
        family: $family:ident, infer: $infer:ident, fold: $fold:ident, fusion: $fusion:ident, batch: $batch:ident,
        class: $class:ident, work: $work:ident, lower: $lower:ident, cpu: $cpu:ident, cuda: $cuda:ident, half: $half:ident,
        flags: [$($flag:ident),*]
    })*) => {
        /// Operator of the `onnx` dialect. Variants are sorted by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op {
            $(#[doc = concat!("`onnx.", stringify!($name), "`.")] $name,)*
        }

        /// All operators, sorted by name.
        pub(super) const ALL: &[Op] = &[$(Op::$name,)*];

        /// Rows of all operators, in the order of [`Op`].
        pub(super) const ROWS: &[Row] = &[$(
            Row {
                name: stringify!($name),
                operation: concat!("onnx.", stringify!($name)),
                family: Family::$family,
                infer: column!(InferRule, $infer),
                fold: column!(FoldRule, $fold),
                fusion: column!(FusionRole, $fusion),
                batch: column!(BatchRule, $batch),
                class: CostClass::$class,
                work: column!(WorkRule, $work),
                lower: column!(Lowering, $lower),
                cpu: column!(CpuKernel, $cpu),
                cuda: column!(CudaKernel, $cuda),
                half: column!(HalfPrecision, $half),
                flags: &[$(Flag::$flag,)*],
            },
        )*];
    };
}

mod table;

pub use table::Op;
use table::{ALL, ROWS};

/// Operators of the dialect that have no schema in ONNX's newest opset.
pub const DIALECT_ONLY: &[Op] = &[
    Op::BatchNormalizationInferenceMode,
    Op::MaxPoolSingleOut,
    Op::PadV11,
    Op::PadV13,
    Op::PadV18,
    Op::RMSLayerNormalization,
    Op::ReduceMaxV18,
    Op::ReduceMinV18,
    Op::Scatter,
    Op::SplitV13,
    Op::Upsample,
];

impl Op {
    /// Finds an operator by its name without the dialect: `Conv`. `None` for operators of other domains, and for operations that
    /// are not operators (`Return`, `NoValue`).
    pub fn from_name(name: &str) -> Option<Self> {
        let index = ROWS.binary_search_by(|row| row.name.cmp(name)).ok()?;
        Some(ALL[index])
    }

    /// Finds an operator by the name of an MLIR operation: `onnx.Conv`.
    pub fn from_operation(name: &str) -> Option<Self> {
        name.strip_prefix("onnx.").and_then(Self::from_name)
    }

    /// Returns all operators, sorted by name.
    pub fn all() -> &'static [Self] {
        ALL
    }

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the name without the dialect: `Conv`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the name of the MLIR operation: `onnx.Conv`.
    pub const fn operation_name(self) -> &'static str {
        self.row().operation
    }

    /// Returns the family.
    pub fn family(self) -> Family {
        self.row().family
    }

    /// Returns the inference rule.
    pub fn infer_rule(self) -> Option<InferRule> {
        self.row().infer
    }

    /// Returns true if the operator has shape inference. All other operators are opaque to the compiler.
    pub fn is_inferred(self) -> bool {
        self.infer_rule().is_some()
    }

    /// Returns the constant folding rule.
    pub fn fold_rule(self) -> Option<FoldRule> {
        self.row().fold
    }

    /// Returns the role in clusters.
    pub fn fusion_role(self) -> Option<FusionRole> {
        self.row().fusion
    }

    /// Returns the rule that propagates the batch dimension.
    pub fn batch_rule(self) -> Option<BatchRule> {
        self.row().batch
    }

    /// Returns the class of the cost model. Shapes and attributes can refine it: a Conv whose groups have one channel is a
    /// [`CostClass::DepthwiseConv`].
    pub fn class(self) -> CostClass {
        self.row().class
    }

    /// Returns the rule that counts operations and bytes.
    pub fn work_rule(self) -> Option<WorkRule> {
        self.row().work
    }

    /// Returns the module of the plain kernel.
    pub fn lowering(self) -> Option<Lowering> {
        self.row().lower
    }

    /// Returns the optimized kernel of the CPU back end.
    pub fn cpu_kernel(self) -> Option<CpuKernel> {
        self.row().cpu
    }

    /// Returns the optimized kernel of the CUDA back end.
    pub fn cuda_kernel(self) -> Option<CudaKernel> {
        self.row().cuda
    }

    /// Returns the treatment of half precision.
    pub fn half_precision(self) -> Option<HalfPrecision> {
        self.row().half
    }

    /// Returns true if results differ from run to run.
    pub fn is_random(self) -> bool {
        self.row().flags.contains(&Flag::Random)
    }

    /// Returns true if plain loops are much slower than an optimized kernel. All others are memory-bound.
    pub fn is_compute_bound(self) -> bool {
        self.row().flags.contains(&Flag::ComputeBound)
    }

    /// Returns true if the result has the bytes of operand 0 with another type.
    pub fn is_view(self) -> bool {
        self.fusion_role() == Some(FusionRole::View)
    }

    /// Returns the ONNX operator that the operator is exported as: itself, unless the dialect splits an ONNX operator in two.
    pub fn onnx_op(self) -> Self {
        match self {
            Self::BatchNormalizationInferenceMode => Self::BatchNormalization,
            Self::MaxPoolSingleOut => Self::MaxPool,
            _ => self,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
