//! Completion of peak rates that a description gives partly.
//!
//! A missing rate of a type other than f32 is `flops` times the architecture's ratio of that type, so that a description of a
//! slower or faster card of the same architecture needs only `flops` and `bandwidth`.

use super::units::{BytesPerSecond, FlopsPerSecond};
use crate::device::{Kind, Rates};

/// Rates that a description gives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivenRates {
    pub(super) f32: Option<FlopsPerSecond>,
    pub(super) f64: Option<FlopsPerSecond>,
    pub(super) f16: Option<FlopsPerSecond>,
    pub(super) bf16: Option<FlopsPerSecond>,
    pub(super) i8: Option<FlopsPerSecond>,
    pub(super) bandwidth: Option<BytesPerSecond>,
}

/// Completes the rates of a description. The error is the remedy for missing rates.
pub(super) fn complete(
    kind: Kind,
    arch: Option<&str>,
    threads: Option<u32>,
    given: GivenRates,
) -> Result<Rates, &'static str> {
    let default = kind.default_rates(arch, threads);
    let f32 = given.f32.or(default.f32).ok_or(default.remedy)?;
    let bandwidth = given.bandwidth.or(default.bandwidth).ok_or(default.remedy)?;
    let rates = Rates::with_type_ratios(f32, bandwidth, default.type_ratios);
    Ok(Rates {
        f64: given.f64.unwrap_or(rates.f64),
        f16: given.f16.unwrap_or(rates.f16),
        bf16: given.bf16.unwrap_or(rates.bf16),
        i8: given.i8.unwrap_or(rates.i8),
        ..rates
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{CPU, CUDA};

    #[test]
    fn missing_rates_come_from_the_table() {
        let rates = complete(CUDA, Some("sm_80"), None, GivenRates::default()).unwrap();
        assert_eq!(rates.f32, FlopsPerSecond(19.5e12));
        assert!((rates.f16.0 / 312e12 - 1.0).abs() < 1e-12);
        assert_eq!(rates.bandwidth, BytesPerSecond(1555e9));
        let rates = complete(CPU, Some("x86-64-v4"), Some(4), GivenRates::default()).unwrap();
        assert_eq!(rates.f32, FlopsPerSecond(640e9));
        assert_eq!(rates.f64, FlopsPerSecond(320e9));
        assert_eq!(rates.bandwidth, BytesPerSecond(48e9));
    }

    #[test]
    fn ratios_apply_to_given_rates() {
        let given = GivenRates { f32: Some(FlopsPerSecond(14e12)), ..GivenRates::default() };
        let rates = complete(CUDA, Some("sm_70"), None, given).unwrap();
        assert!((rates.f16.0 / 111.5e12 - 1.0).abs() < 1e-3);
        let given = GivenRates { i8: Some(FlopsPerSecond(1e12)), ..given };
        assert_eq!(complete(CUDA, Some("sm_70"), None, given).unwrap().i8, FlopsPerSecond(1e12));
    }

    #[test]
    fn newer_architectures_need_explicit_rates() {
        assert!(complete(CUDA, Some("sm_103"), None, GivenRates::default()).is_err());
        let (f32, bandwidth) = (Some(FlopsPerSecond(80e12)), Some(BytesPerSecond(8e12)));
        let given = GivenRates { f32, bandwidth, ..GivenRates::default() };
        assert_eq!(complete(CUDA, Some("sm_103"), None, given).unwrap().f16, FlopsPerSecond(80e12 * 30.0));
        assert_eq!(complete(CUDA, None, None, given).unwrap().f16, FlopsPerSecond(80e12));
    }
}
