//! Predicted latency of a cold start: a first request whose weights are not on the device yet.

use crate::bundle::{Action, Bundle, Stage};
use std::collections::HashSet;

/// Predicted time from the first copy of weights to the end of the last stage, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColdStart {
    /// For [`ColdStartMode::Overlap`](crate::ColdStartMode::Overlap).
    pub overlap_us: f64,
    /// For [`ColdStartMode::CopyFirst`](crate::ColdStartMode::CopyFirst).
    pub copy_first_us: f64,
}

impl ColdStart {
    /// Predicts the time of the stages on devices with their own memory, executed sequentially; `None` if there are none or the
    /// plan has no times for them.
    pub fn predicted(bundle: &Bundle) -> Option<Self> {
        let mut known = HashSet::new();
        let (mut copied, mut latency, mut computed, mut computing) = (0.0, 0.0_f64, 0.0_f64, 0.0);
        for step in &bundle.steps {
            let Action::Launch { stage, .. } = step.action else { continue };
            let stage = &bundle.stages[stage];
            let Some(link) = bundle.devices[stage.device].link_from_host else { continue };
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

/// Returns the predicted time of a call: its task's time divided equally among the task's calls.
fn of_call(stage: &Stage, task: usize) -> Option<f64> {
    let calls = stage.calls.iter().filter(|call| call.task == task).count();
    Some(stage.tasks.get(task)?.predicted_us? / calls.max(1) as f64)
}
