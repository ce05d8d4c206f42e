//! Minimum predicted gain for using several devices, which depends on the source of the costs.

use crate::{cost::CostSource, ir::warning};
use divi_dialect::Operation;

/// Warns that one device is used although several had a predicted gain.
pub(super) fn explain(module: Operation<'_>, gain: f64, asked: Option<f64>) {
    let source = CostSource::of(module);
    let (gain, least) = (gain * 100.0, asked.unwrap_or(source.least_gain()) * 100.0);
    let reason = match (gain > 0.0, asked) {
        (false, _) => "no faster plan was found for several".to_owned(),
        (true, Some(_)) => format!("several would gain {gain:.1} %, less than the {least:.1} % that min-gain requires"),
        (true, None) => {
            let times = match source {
                CostSource::Stated | CostSource::Measured => "measured times",
                CostSource::MostlyMeasured => "times of which most were measured",
                CostSource::Calibrated => "calibrated times",
                CostSource::Estimated => "estimated times",
            };
            format!(
                "several would gain {gain:.1} %, less than the {least:.1} % accuracy of {times}; min-gain=0 uses \
                 several anyway"
            )
        }
    };
    warning(module, &format!("one device is used: {reason}"));
}
