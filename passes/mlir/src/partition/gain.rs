//! The gain from which on several devices are worth using.
//!
//! A predicted gain that is smaller than the error of predictions may be a loss: ViT-tiny on two devices for a predicted 0.2 %
//! ran 9 % slower than on one. So the default follows from where the costs come from, which `divi.costs` on the module says.

use crate::ir::warning;
use divi_dialect::{Operation, attr};

/// Source of the tasks' times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exactness {
    /// Not stated: costs were written by hand or by another tool, and are taken for exact.
    Stated,
    /// All from profiles.
    Measured,
    /// At least nine in ten from profiles.
    MostlyMeasured,
    /// From the cost model.
    Estimated,
}

impl Exactness {
    /// The gain that a prediction must show so that several devices are used.
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

/// Returns how exact the costs of a module are.
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

/// Warns that one device is used although several were predicted to gain a share.
pub(super) fn explain(module: Operation<'_>, gain: f64, asked: Option<f64>) {
    let exactness = least(module);
    let (gain, least) = (gain * 100.0, asked.unwrap_or(exactness.share()) * 100.0);
    let reason = match (gain > 0.0, asked) {
        (false, _) => "no plan was found with which several are faster".to_owned(),
        (true, Some(_)) => format!("several would gain {gain:.1} %, less than the {least:.1} % that min-gain asks for"),
        (true, None) => {
            let times = match exactness {
                Exactness::Stated | Exactness::Measured => "measured times",
                Exactness::MostlyMeasured => "times of which most were measured",
                Exactness::Estimated => "estimated times",
            };
            format!(
                "several would gain {gain:.1} %, less than the {least:.1} % that {times} are exact to; min-gain=0 uses \
                 several all the same"
            )
        }
    };
    warning(module, &format!("one device is used: {reason}"));
}

#[cfg(test)]
mod tests {
    use super::Exactness;

    #[test]
    fn the_less_is_measured_the_more_must_be_gained() {
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
