//! Prediction of the time of a first request whose weights are not on the device yet.

use crate::bundle::{Action, Bundle, Stage};
use std::collections::HashSet;

/// Microseconds from the first copy of weights to the end of the last stage, as the plan has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColdStart {
    /// Where calls run as soon as their weights are there.
    pub overlap_us: f64,
    /// Where all weights are copied first.
    pub copy_first_us: f64,
}

impl ColdStart {
    /// Predicts the time of the stages on devices with memory of their own, one after the other; `None` if there are none, or the plan
    /// has no times for them.
    pub fn predicted(bundle: &Bundle) -> Option<Self> {
        let mut known = HashSet::new();
        let (mut copied, mut latency, mut computed, mut computing) = (0.0, 0.0_f64, 0.0_f64, 0.0);
        for step in &bundle.steps {
            let Action::Launch { stage, .. } = step.action else { continue };
            let stage = &bundle.stages[stage];
            let Some(link) = bundle.devices[stage.device].inward else { continue };
            for call in &stage.calls {
                let takes = of_call(stage, call.task)?;
                let is_copied = !stage.reads_on_host(call);
                for index in call.constants() {
                    if is_copied && known.insert((stage.device, index)) {
                        copied += bundle.constants[index].bytes as f64 / link.bytes_per_s * 1e6;
                    }
                }
                computed = computed.max(copied + link.latency_us) + takes;
                computing += takes;
                latency = latency.max(link.latency_us);
            }
        }
        (computing > 0.0).then_some(Self { overlap_us: computed, copy_first_us: copied + latency + computing })
    }
}

/// A call's part of what its task takes.
fn of_call(stage: &Stage, task: usize) -> Option<f64> {
    let calls = stage.calls.iter().filter(|call| call.task == task).count();
    Some(stage.tasks.get(task)?.predicted_us? / calls.max(1) as f64)
}
