//! Peak rates of this CPU, derived from `/proc/cpuinfo`.

use super::{CORE_BYTES_PER_SECOND, DEFAULT_HERTZ, flops_per_cycle};
use crate::{
    device::{Rates, TypeRatios, detect::text},
    system::units::{BytesPerSecond, FlopsPerSecond},
};

/// Properties of a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Processor {
    /// Product name.
    pub(super) name: String,
    /// Hardware threads that this process may use.
    pub(super) threads: u32,
    /// Hardware threads per core, which share its execution units.
    pub(super) threads_per_core: u32,
    pub(super) sockets: u32,
    /// Nominal clock.
    pub(super) hertz: f64,
    /// True if the vendor is AMD, whose vector units and memory channels differ.
    pub(super) is_amd: bool,
    /// True for server models, which have more memory channels.
    pub(super) is_server: bool,
    features: Features,
    /// True for AArch64, false for x86-64.
    is_arm: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Features {
    avx: bool,
    avx2: bool,
    avx512: bool,
    avx512_fp16: bool,
    avx512_bf16: bool,
    vnni: bool,
    amx: bool,
}

impl Processor {
    pub(super) fn of_this_machine() -> Self {
        // The standard library takes affinity and cgroup quotas into account.
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        Self::from_cpuinfo(threads, &text("/proc/cpuinfo").unwrap_or_default(), cfg!(target_arch = "aarch64"))
    }

    /// Parses Linux's `/proc/cpuinfo`. The current clock varies, so the nominal one is used: it is part of an Intel CPU's name,
    /// and bogomips are derived from the time-stamp counter, which runs at it.
    fn from_cpuinfo(threads: u32, cpuinfo: &str, is_arm: bool) -> Self {
        let lines =
            || cpuinfo.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim()));
        let value = |key: &str| lines().find(|(other, _)| *other == key).map(|(_, value)| value);
        let number = |key: &str| value(key).and_then(|value| value.parse::<f64>().ok()).filter(|number| *number >= 1.0);
        let flags: Vec<&str> = value("flags").unwrap_or_default().split_whitespace().collect();
        let has = |flag: &str| flags.contains(&flag);
        let name = value("model name").unwrap_or_default();
        let siblings = number("siblings").zip(number("cpu cores")).map_or(1.0, |(threads, cores)| threads / cores);
        let sockets =
            lines().filter(|(key, _)| *key == "physical id").map(|(_, id)| id).max_by_key(|id| id.parse::<u32>().ok());
        let bogomips = if is_arm { None } else { number("bogomips") };
        Self {
            name: name.to_owned(),
            threads,
            threads_per_core: (siblings as u32).clamp(1, 8),
            sockets: sockets.and_then(|id| id.parse::<u32>().ok()).map_or(1, |id| id.min(63) + 1),
            hertz: nominal(name).or(bogomips.map(hertz_of_bogomips)).unwrap_or(DEFAULT_HERTZ).clamp(0.5e9, 6e9),
            is_amd: value("vendor_id") == Some("AuthenticAMD"),
            is_server: is_arm || ["Xeon", "EPYC"].iter().any(|line| name.contains(line)),
            features: Features {
                avx: has("avx"),
                avx2: has("avx2") && has("fma"),
                avx512: ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"].iter().all(|flag| has(flag)),
                avx512_fp16: has("avx512_fp16"),
                avx512_bf16: has("avx512_bf16"),
                vnni: has("avx512_vnni") || has("avx_vnni"),
                amx: has("amx_bf16") && has("amx_int8"),
            },
            is_arm,
        }
    }

    /// Returns LLVM's name of the architecture level.
    pub(super) fn arch(&self) -> &'static str {
        match self.features {
            _ if self.is_arm => "generic",
            Features { avx512: true, .. } => "x86-64-v4",
            Features { avx2: true, .. } => "x86-64-v3",
            _ => "x86-64-v2",
        }
    }

    /// Returns the peak rates of `threads` threads, which are distributed to as many cores as possible.
    pub(super) fn rates(&self, threads: u32) -> Rates {
        let cores = f64::from(threads.min(self.threads.div_ceil(self.threads_per_core)));
        // AMD executes 512-bit vectors in two cycles up to Zen 4; Zen 5 is not distinguished.
        let halved = self.is_amd && self.features.avx512;
        let level = if halved { "x86-64-v3" } else { self.arch() };
        // AVX without FMA: one multiplication and one addition of eight lanes per cycle.
        let per_cycle = if level == "x86-64-v2" && self.features.avx { 16.0 } else { flops_per_cycle(level) };
        let type_ratios = TypeRatios {
            f64: 0.5,
            f16: if self.features.avx512_fp16 { 2.0 } else { 1.0 },
            // AMX: 1024 operations per cycle on bf16 and 2048 on int8.
            bf16: match self.features {
                Features { amx: true, .. } => 16.0,
                Features { avx512_bf16: true, .. } => 2.0,
                _ => 1.0,
            },
            i8: match self.features {
                Features { amx: true, .. } => 32.0,
                Features { vnni: true, .. } => 4.0,
                _ => 1.0,
            },
        };
        let bandwidth = (cores * CORE_BYTES_PER_SECOND).min(self.socket_bytes_per_second() * f64::from(self.sockets));
        Rates::with_type_ratios(FlopsPerSecond(cores * self.hertz * per_cycle), BytesPerSecond(bandwidth), type_ratios)
    }

    /// Returns the memory bandwidth of a socket: channels times the rate of typical memory of that generation, of which four
    /// fifths are achievable.
    fn socket_bytes_per_second(&self) -> f64 {
        let peak = match (self.is_server, self.is_amd, self.features) {
            (false, ..) => 51.2e9,                                  // 2 x DDR4-3200
            (true, true, Features { avx512: true, .. }) => 460.8e9, // 12 x DDR5-4800
            (true, true, _) => 204.8e9,                             // 8 x DDR4-3200
            (true, false, Features { amx: true, .. }) => 307.2e9,   // 8 x DDR5-4800
            (true, false, Features { vnni: true, .. }) => 187.7e9,  // 8 x DDR4-2933
            (true, false, Features { avx512: true, .. }) => 128e9,  // 6 x DDR4-2666
            (true, false, _) if self.is_arm => 204.8e9,             // 8 x DDR4-3200
            (true, false, _) => 76.8e9,                             // 4 x DDR4-2400
        };
        peak * 0.8
    }
}

/// Returns the clock in a name such as `Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz`.
fn nominal(name: &str) -> Option<f64> {
    let gigahertz = name.rsplit_once('@')?.1.trim().strip_suffix("GHz")?;
    gigahertz.trim().parse::<f64>().ok().filter(|gigahertz| gigahertz.is_finite()).map(|gigahertz| gigahertz * 1e9)
}

/// Returns the clock for a number of bogomips, rounded to 50 MHz, because the counter is measured at boot with some noise.
fn hertz_of_bogomips(bogomips: f64) -> f64 {
    (bogomips / 2.0 / 50.0).round() * 50e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const XEON: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor\ncpu MHz\t\t: 2100.004\n\
        physical id\t: 0\nsiblings\t: 2\ncpu cores\t: 2\nflags\t\t: fpu avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl \
        avx512_bf16 avx512_vnni avx512_fp16 amx_bf16 amx_tile amx_int8\nbogomips\t: 4200.01\n\nprocessor\t: 1\nphysical id\t: 0\n";

    #[test]
    fn xeon_with_amx() {
        let cpu = Processor::from_cpuinfo(2, XEON, false);
        assert_eq!((cpu.threads, cpu.threads_per_core, cpu.sockets, cpu.hertz), (2, 1, 1, 2.1e9));
        assert_eq!(cpu.arch(), "x86-64-v4");
        let rates = cpu.rates(2);
        assert_eq!(rates.f32, FlopsPerSecond(2.0 * 2.1e9 * 64.0));
        assert_eq!(rates.bf16, FlopsPerSecond(2.0 * 2.1e9 * 1024.0));
        assert_eq!(rates.bandwidth, BytesPerSecond(24e9));
        assert_eq!(cpu.rates(1).f32.0 * 2.0, rates.f32.0);
    }

    #[test]
    fn hyperthreads_share_a_core() {
        let text = "vendor_id : GenuineIntel\nmodel name : Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz\nphysical id : 1\n\
            siblings : 40\ncpu cores : 20\nflags : avx avx2 fma\nbogomips : 4395.00\n";
        let cpu = Processor::from_cpuinfo(80, text, false);
        assert_eq!((cpu.threads_per_core, cpu.sockets, cpu.hertz, cpu.arch()), (2, 2, 2.2e9, "x86-64-v3"));
        assert_eq!(cpu.rates(80).f32, FlopsPerSecond(40.0 * 2.2e9 * 32.0));
        assert_eq!(cpu.rates(40), cpu.rates(80), "each has a core");
        assert!((cpu.rates(80).bandwidth.0 - 2.0 * 76.8e9 * 0.8).abs() < 1.0);
    }

    #[test]
    fn epyc_executes_half_vectors() {
        let text = "vendor_id : AuthenticAMD\nmodel name : AMD EPYC 9654 96-Core Processor\nsiblings : 192\ncpu cores : 96\n\
            flags : avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni avx512_bf16\nbogomips : 4799.93\n";
        let cpu = Processor::from_cpuinfo(192, text, false);
        assert_eq!((cpu.arch(), cpu.hertz), ("x86-64-v4", 2.4e9));
        assert_eq!(cpu.rates(192).f32, FlopsPerSecond(96.0 * 2.4e9 * 32.0));
    }

    #[test]
    fn garbled_cpuinfo_still_yields_rates() {
        let garbled =
            "flags\nsiblings : x\ncpu cores : 0\nbogomips : -inf\nphysical id : 4294967295\nmodel name : @ NaNGHz";
        for (text, is_arm) in [("", false), ("", true), (garbled, false), (garbled, true)] {
            let rates = Processor::from_cpuinfo(3, text, is_arm).rates(3);
            assert!(rates.f32.0 > 1e9 && rates.f32.0.is_finite() && rates.bandwidth.0 > 1e9, "{rates:?}");
        }
    }
}
