//! Minimum predicted gain for using several devices.
//!
//! A predicted gain below the prediction error may be a loss: ViT-tiny on two devices, with a predicted gain of 0.2 %,
//! ran 9 % slower than on one. So the default depends on the source of the costs, which is recorded in `divi.costs` of
//! the module.

use crate::ir::warning;
use divi_dialect::{Operation, attr};

/// Accuracy of the tasks' times, by their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exactness {
    /// Unknown source: costs were written by hand or by another tool, and are assumed to be exact.
    Stated,
    /// All from profiles.
    Measured,
    /// At least nine in ten from profiles.
    MostlyMeasured,
    /// From the cost model.
    Estimated,
}

impl Exactness {
    /// Returns the minimum predicted gain for using several devices, as a fraction.
    pub(super) fn share(self) -> f64 {
        match self {
            Self::Stated => 0.0,
            Self::Measured => 0.02,
            Self::MostlyMeasured => 0.03,
            Self::Estimated => 0.05,
        }
    }

    fn of_counts(measured: i64, all: i64) -> Self {
        match all - measured {
            _ if all == 0 => Self::Stated,
            0 => Self::Measured,
            estimated if estimated * 10 <= all => Self::MostlyMeasured,
            _ => Self::Estimated,
        }
    }
}

/// Returns the accuracy of a module's costs.
pub(super) fn least(module: Operation<'_>) -> Exactness {
    let Some(costs) = module.get(attr::COSTS) else { return Exactness::Stated };
    let (mut measured, mut all) = (0, 0);
    for (_, counts) in attr::as_dictionary(costs).unwrap_or_default() {
        let count = |name: &str| attr::entry(counts, name).and_then(attr::as_integer).unwrap_or(0).max(0);
        let known = count("measured").saturating_add(count("interpolated"));
        measured += known;
        all += known.saturating_add(count("estimated"));
    }
    Exactness::of_counts(measured, all)
}

/// Warns that one device is used although several had a predicted gain.
pub(super) fn explain(module: Operation<'_>, gain: f64, asked: Option<f64>) {
    let exactness = least(module);
    let (gain, least) = (gain * 100.0, asked.unwrap_or(exactness.share()) * 100.0);
    let reason = match (gain > 0.0, asked) {
        (false, _) => "no faster plan was found for several".to_owned(),
        (true, Some(_)) => format!("several would gain {gain:.1} %, less than the {least:.1} % that min-gain requires"),
        (true, None) => {
            let times = match exactness {
                Exactness::Stated | Exactness::Measured => "measured times",
                Exactness::MostlyMeasured => "times of which most were measured",
                Exactness::Estimated => "estimated times",
            };
            format!(
                "several would gain {gain:.1} %, less than the {least:.1} % accuracy of {times}; min-gain=0 uses \
                 several anyway"
            )
        }
    };
    warning(module, &format!("one device is used: {reason}"));
}

#[cfg(test)]
mod tests {
    use super::Exactness;

    #[test]
    fn minimum_gain_grows_with_the_share_of_estimates() {
        let cases = [
            ((0, 0), Exactness::Stated),
            ((7, 7), Exactness::Measured),
            ((9, 10), Exactness::MostlyMeasured),
            ((8, 10), Exactness::Estimated),
            ((0, 3), Exactness::Estimated),
        ];
        let mut before = -1.0;
        for ((measured, all), expected) in cases {
            assert_eq!(Exactness::of_counts(measured, all), expected);
            assert!(expected.share() > before || expected == Exactness::Estimated);
            before = expected.share();
        }
    }
}
