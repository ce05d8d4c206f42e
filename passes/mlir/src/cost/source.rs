//! Source of a module's costs, as recorded in `divi.costs`.

use divi_cost::TimeSource;
use divi_dialect::{Operation, attr};
use melior::ir::Attribute;

/// Returns the number of tasks by the source of their times, from the entry of a device in `divi.costs`.
pub(super) fn counts(counted: Attribute<'_>) -> Vec<(TimeSource, i64)> {
    let count = |source: TimeSource| attr::entry(counted, source.name()).and_then(attr::as_integer);
    TimeSource::ALL.into_iter().filter_map(|source| Some((source, count(source)?))).collect()
}

/// Source of the times of a module's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostSource {
    /// Unknown: costs were written by hand or by another tool, and are assumed to be exact.
    Stated,
    /// All from profiles.
    Measured,
    /// At least nine in ten from profiles.
    MostlyMeasured,
    /// At least nine in ten from profiles, or from models that were fitted to the devices.
    Calibrated,
    /// From the models of the devices' kinds.
    Estimated,
}

impl CostSource {
    /// Returns the source of a module's costs.
    pub(crate) fn of(module: Operation<'_>) -> Self {
        let Some(costs) = module.get(attr::COSTS) else { return Self::Stated };
        let devices = attr::as_dictionary(costs).unwrap_or_default();
        let counts: Vec<_> = devices.into_iter().flat_map(|(_, counted)| counts(counted)).collect();
        let total = |source: TimeSource| {
            let own = counts.iter().filter(|(other, _)| *other == source);
            own.fold(0i64, |sum, (_, count)| sum.saturating_add((*count).max(0)))
        };
        let measured = total(TimeSource::Measured).saturating_add(total(TimeSource::Interpolated));
        Self::of_counts(measured, total(TimeSource::Calibrated), total(TimeSource::Estimated))
    }

    fn of_counts(measured: i64, calibrated: i64, estimated: i64) -> Self {
        let all = measured.saturating_add(calibrated).saturating_add(estimated);
        let is_few = |part: i64| part.saturating_mul(10) <= all;
        match () {
            () if all == 0 => Self::Stated,
            () if measured == all => Self::Measured,
            () if is_few(all - measured) => Self::MostlyMeasured,
            () if is_few(estimated) => Self::Calibrated,
            () => Self::Estimated,
        }
    }

    /// Returns the name in certificates and reports; `None` if the source is unknown.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Stated => None,
            Self::Measured => Some("measured"),
            Self::MostlyMeasured => Some("mostly measured"),
            Self::Calibrated => Some("calibrated"),
            Self::Estimated => Some("estimated"),
        }
    }

    /// Returns the minimum predicted gain for using several devices, as a fraction: a predicted gain below the prediction
    /// error may be a loss. ViT-tiny on two devices, with a predicted gain of 0.2 %, ran 9 % slower than on one.
    pub(crate) const fn least_gain(self) -> f64 {
        match self {
            Self::Stated => 0.0,
            Self::Measured => 0.02,
            Self::MostlyMeasured => 0.03,
            Self::Calibrated => 0.04,
            Self::Estimated => 0.05,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CostSource;

    #[test]
    fn the_source_is_that_of_nine_in_ten() {
        let cases = [
            ([0, 0, 0], CostSource::Stated),
            ([7, 0, 0], CostSource::Measured),
            ([9, 1, 0], CostSource::MostlyMeasured),
            ([9, 0, 1], CostSource::MostlyMeasured),
            ([5, 5, 0], CostSource::Calibrated),
            ([0, 9, 1], CostSource::Calibrated),
            ([8, 0, 2], CostSource::Estimated),
            ([0, 0, 3], CostSource::Estimated),
        ];
        let mut last = CostSource::Stated;
        for ([measured, calibrated, estimated], expected) in cases {
            assert_eq!(CostSource::of_counts(measured, calibrated, estimated), expected);
            let requires_more = expected.least_gain() > last.least_gain();
            assert!(requires_more || expected == last, "less exact costs require a larger gain");
            last = expected;
        }
    }
}
