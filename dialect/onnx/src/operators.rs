//! Operators of the `onnx` dialect: one table that says of each which functions of the compiler serve it.
//!
//! | column | names | mapped to functions by |
//! |---|---|---|
//! | `infer` | shape and type inference | [`crate::infer`] |
//! | `fold` | evaluation on constants | [`crate::fold`] |
//! | `fusion` | role in clusters | `divi_passes::fuse` |
//! | `batch` | path of the batch dimension | `divi_passes::rebatch` |
//! | `class`, `work` | cost model, and operations and bytes | `divi_cost::work` |
//! | `lower` | plain kernel | `divi_codegen::ops` |
//! | `cpu`, `cuda` | fast kernels | `divi_codegen::cpu`, `divi_codegen::cuda` |
//! | `half` | treatment of half precision | `divi_codegen::widen` |
//!
//! `none` in a column is a feature that the operator lacks; `operators/lacking.txt` lists them all. The table holds the operators
//! of ONNX's newest opset and those that the dialect has beside them ([`OTHER_FORMS`]). `docs/add-an-operator.md` says how to add
//! one.

mod columns;
pub use columns::{
    BatchRule, CostClass, CpuKernel, CudaKernel, Family, Flag, FoldRule, FusionRole, HalfPrecision, InferRule,
    Lowering, WorkRule,
};
use std::fmt;

/// A row of the table.
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

/// The value of a column: `none`, or a variant of the column's type.
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
        /// An operator, by its name in the `onnx` dialect; ordered by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Op {
            $($name,)*
        }

        /// Every operator, sorted by name.
        pub(super) const ALL: &[Op] = &[$(Op::$name,)*];

        /// The row of each operator, at its place in [`Op`].
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

/// Operators of the dialect that have no schema of their own in ONNX's newest opset.
pub const OTHER_FORMS: &[Op] = &[
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
    /// Finds an operator by its name in the `onnx` dialect, without the dialect: `Conv`. `None` if the table has none of that
    /// name: operators of other domains, and operations that are not operators (`Return`, `NoValue`).
    pub fn from_name(name: &str) -> Option<Self> {
        let index = ROWS.binary_search_by(|row| row.name.cmp(name)).ok()?;
        Some(ALL[index])
    }

    /// Finds an operator by the name of an MLIR operation: `onnx.Conv`.
    pub fn from_operation(name: &str) -> Option<Self> {
        name.strip_prefix("onnx.").and_then(Self::from_name)
    }

    /// Every operator, sorted by name.
    pub fn all() -> &'static [Self] {
        ALL
    }

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Name in the `onnx` dialect, without the dialect: `Conv`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Name of the MLIR operation: `onnx.Conv`.
    pub const fn operation_name(self) -> &'static str {
        self.row().operation
    }

    pub fn family(self) -> Family {
        self.row().family
    }

    pub fn infer_rule(self) -> Option<InferRule> {
        self.row().infer
    }

    /// Returns whether there is shape inference for the operator: the rest of the compiler treats all others as opaque.
    pub fn is_inferred(self) -> bool {
        self.infer_rule().is_some()
    }

    pub fn fold_rule(self) -> Option<FoldRule> {
        self.row().fold
    }

    pub fn fusion_role(self) -> Option<FusionRole> {
        self.row().fusion
    }

    pub fn batch_rule(self) -> Option<BatchRule> {
        self.row().batch
    }

    /// Class of the cost model. Shapes and attributes can refine it: a Conv whose groups have one channel is a
    /// [`CostClass::DepthwiseConv`].
    pub fn class(self) -> CostClass {
        self.row().class
    }

    pub fn work_rule(self) -> Option<WorkRule> {
        self.row().work
    }

    pub fn lowering(self) -> Option<Lowering> {
        self.row().lower
    }

    pub fn cpu_kernel(self) -> Option<CpuKernel> {
        self.row().cpu
    }

    pub fn cuda_kernel(self) -> Option<CudaKernel> {
        self.row().cuda
    }

    pub fn half_precision(self) -> Option<HalfPrecision> {
        self.row().half
    }

    /// Returns whether results differ from run to run.
    pub fn is_random(self) -> bool {
        self.row().flags.contains(&Flag::Random)
    }

    /// Returns whether plain loops are much slower than a tuned kernel. All others are bound by memory.
    pub fn is_compute_bound(self) -> bool {
        self.row().flags.contains(&Flag::ComputeBound)
    }

    /// Returns whether the result has the bytes of operand 0 under another type.
    pub fn is_view(self) -> bool {
        self.fusion_role() == Some(FusionRole::View)
    }

    /// Operator of ONNX that the operator is written as in a model: itself, unless the dialect splits an operator in two.
    pub fn exported(self) -> Self {
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
