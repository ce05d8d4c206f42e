//! Processors that code is generated for.

use crate::error::Error;

/// A CPU that code is generated for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name for users: `x86-64-v3`, `x86-64-v4` or `sapphirerapids`.
    pub cpu: String,
    /// Name of the CPU in LLVM.
    pub(crate) llvm_cpu: String,
    /// LLVM features in addition to those of the CPU.
    pub(crate) llvm_features: String,
    /// Required flags in `/proc/cpuinfo` of the machine that runs the code.
    pub(crate) features: Vec<String>,
    /// `f32` lanes of a vector register.
    pub(crate) lanes: usize,
    /// Vector registers that kernels may use.
    pub(crate) registers: usize,
    /// True if kernels may use tile registers of `bf16`; only then does the code require them.
    pub(crate) has_tiles: bool,
}

/// A GPU that code is generated for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Name of the architecture in LLVM and CUDA, such as `sm_90`.
    pub arch: String,
    /// LLVM feature of the required PTX version; LLVM's default if empty.
    pub(crate) ptx: &'static str,
}

/// Supported architectures, with the LLVM feature of the PTX version; LLVM's default if empty.
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
    /// Returns a GPU by its architecture: `sm_80` or newer.
    pub fn named(arch: &str) -> Result<Self, Error> {
        let known = ARCHITECTURES.iter().find(|(name, _)| *name == arch);
        known.map(|&(_, ptx)| Self { arch: arch.into(), ptx }).ok_or_else(|| {
            let last = ARCHITECTURES[ARCHITECTURES.len() - 1].0;
            Error::Target(format!("unsupported GPU architecture '{arch}'; expected sm_80 to {last}"))
        })
    }
}

/// CPU flags of x86-64-v3 beyond x86-64-v2, and of x86-64-v4 beyond x86-64-v3.
const V3: &[&str] = &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"];
const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

/// CPU flags of tile registers of `bf16`, and of conversions to it.
const TILES: &[&str] = &["amx_tile", "amx_bf16", "avx512_bf16"];

/// Name of the first processor with tile registers of `bf16`.
const SAPPHIRE_RAPIDS: &str = "sapphirerapids";

impl Target {
    /// Returns the target of code with instructions that only processors with tile registers have.
    pub(crate) fn with_tiles(&self) -> Self {
        let mut target = self.clone();
        target.cpu = SAPPHIRE_RAPIDS.into();
        target.llvm_features = "+amx-tile,+amx-bf16,+avx512bf16".into();
        target.features.extend(TILES.iter().map(|&feature| feature.to_owned()));
        target
    }

    /// Returns the processor `x86-64-v3`, `x86-64-v4`, `sapphirerapids`, or the one of this machine (`native`).
    pub fn named(cpu: &str) -> Result<Self, Error> {
        match cpu {
            "x86-64-v3" => Ok(Self::level(cpu, cpu, "", false)),
            "x86-64-v4" => Ok(Self::level(cpu, cpu, "", true)),
            SAPPHIRE_RAPIDS => Ok(Self { has_tiles: true, ..Self::level("x86-64-v4", "x86-64-v4", "", true) }),
            "native" => Self::native(),
            other => {
                let known = "native, x86-64-v3, x86-64-v4 or sapphirerapids";
                Err(Error::Target(format!("unsupported processor '{other}'; expected {known}")))
            }
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
            has_tiles: false,
        }
    }

    fn native() -> Result<Self, Error> {
        let has = |features: &[&str]| {
            let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let line = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default().to_owned();
            features.iter().all(|feature| line.split_whitespace().any(|flag| flag == *feature))
        };
        if has(V4) && has(V3) {
            let has_tiles = TILES.iter().all(|feature| divi_runtime::cpu::is_permitted(feature)) && has(TILES);
            Ok(Self { has_tiles, ..Self::level("x86-64-v4", "x86-64-v4", "", true) })
        } else if has(V3) {
            Ok(Self::level("x86-64-v3", "x86-64-v3", "", false))
        } else {
            Err(Error::Target(
                "the processor of this machine has no AVX2; name the target processor, x86-64-v3 or x86-64-v4".into(),
            ))
        }
    }
}
