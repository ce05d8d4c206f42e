//! The processors that code is made for.

use crate::error::Error;

/// A processor: what LLVM calls it, and what kernels need to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As users name it.
    pub cpu: String,
    /// LLVM's name of it, and features beyond that.
    pub(crate) llvm_cpu: String,
    pub(crate) llvm_features: String,
    /// What `/proc/cpuinfo` of a machine that runs the code lists.
    pub(crate) features: Vec<String>,
    /// Elements of `f32` in a register.
    pub(crate) lanes: usize,
    /// Registers that kernels may use.
    pub(crate) registers: usize,
}

/// A GPU that code is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// LLVM's and the vendor's name of it: `sm_90`.
    pub arch: String,
    /// The version of PTX that has what the code needs.
    pub(crate) ptx: &'static str,
}

/// Architectures that LLVM compiles for, with the feature for the version of PTX: LLVM's default where it is empty.
const ARCHITECTURES: &[(&str, &str)] = &[
    ("sm_80", "+ptx80"),
    ("sm_86", "+ptx80"),
    ("sm_87", "+ptx80"),
    ("sm_89", "+ptx80"),
    ("sm_90", "+ptx80"),
    ("sm_90a", "+ptx80"),
    ("sm_100", ""),
    ("sm_100a", ""),
    ("sm_103", ""),
    ("sm_103a", ""),
    ("sm_120", ""),
    ("sm_120a", ""),
    ("sm_121", ""),
];

impl Gpu {
    /// A GPU by its architecture: `sm_80` and newer ones.
    pub fn named(arch: &str) -> Result<Self, Error> {
        let known = ARCHITECTURES.iter().find(|(name, _)| *name == arch);
        known.map(|&(_, ptx)| Self { arch: arch.into(), ptx }).ok_or_else(|| {
            let last = ARCHITECTURES[ARCHITECTURES.len() - 1].0;
            Error::Target(format!(
                "there are no kernels for the GPU architecture '{arch}': expected sm_80 to {last}, as sm_90"
            ))
        })
    }
}

const V3: &[&str] = &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"];
const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

impl Target {
    /// `x86-64-v3`, `x86-64-v4`, or `native`, which is this machine.
    pub fn named(cpu: &str) -> Result<Self, Error> {
        match cpu {
            "x86-64-v3" => Ok(Self::level(cpu, cpu, "", false)),
            "x86-64-v4" => Ok(Self::level(cpu, cpu, "", true)),
            "native" => Self::native(),
            other => Err(Error::Target(format!(
                "there are no kernels for the processor '{other}': choose native, x86-64-v3 or x86-64-v4"
            ))),
        }
    }

    fn level(cpu: &str, llvm_cpu: &str, llvm_features: &str, is_wide: bool) -> Self {
        let features = V3.iter().chain(if is_wide { V4 } else { &[] }).map(|&feature| feature.to_owned()).collect();
        let (lanes, registers) = if is_wide { (16, 32) } else { (8, 16) };
        Self {
            cpu: cpu.into(),
            llvm_cpu: llvm_cpu.into(),
            llvm_features: llvm_features.into(),
            features,
            lanes,
            registers,
        }
    }

    fn native() -> Result<Self, Error> {
        let has = |features: &[&str]| {
            let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let line = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default().to_owned();
            features.iter().all(|feature| line.split_whitespace().any(|flag| flag == *feature))
        };
        if has(V4) && has(V3) {
            Ok(Self::level("x86-64-v4", "x86-64-v4", "", true))
        } else if has(V3) {
            Ok(Self::level("x86-64-v3", "x86-64-v3", "", false))
        } else {
            Err(Error::Target(
                "this machine's processor has no AVX2: name the one that will run the code, x86-64-v3 or x86-64-v4"
                    .into(),
            ))
        }
    }
}
