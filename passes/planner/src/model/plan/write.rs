//! Writer of plans: the same text for the same plan.

use super::{
    Batch, FORMAT, FORMAT_OF_MANY_LAUNCHES, LaunchRule, Limit, ParameterCopy, Plan, Schedule, Transfer, Turns,
};
use crate::model::json::{Lines, integers, list, numbers, row, string};
use crate::model::units::number;

impl Plan {
    /// Returns the text of the plan: keys in a fixed order without unset ones, one batch or transfer per line.
    pub fn write(&self) -> String {
        let mut object = Lines::object();
        let has_batches = matches!(self.schedule, Schedule::BatchedPipeline { .. });
        let is_new = has_batches || self.launches == LaunchRule::Many;
        let format = if is_new { FORMAT_OF_MANY_LAUNCHES } else { FORMAT };
        object.key("format", &string(format));
        object.key("problem", &string(&self.problem));
        object.key("algorithm", &string(&self.algorithm));
        object.key("objective", &string(self.objective.name()));
        object.key("value", &number(self.value));
        object.key("bound", &number(self.bound));
        object.key("bound_by", &string(&self.bound_by));
        object.key("proof", &string(self.proof.name()));
        if let Some(verified) = self.verified_bound {
            object.key("verified_bound", &number(verified));
        }
        object.key("gap", &number(self.gap));
        object.key("seed", &self.seed.to_string());
        match self.limit {
            Some(Limit::Iterations(count)) => object.key("limit", &format!("{{\"iterations\": {count}}}")),
            Some(Limit::Seconds(seconds)) => object.key("limit", &format!("{{\"seconds\": {}}}", number(seconds))),
            None => {}
        }
        if let Some(inputs) = self.inputs {
            object.key("inputs", &inputs.to_string());
        }
        if let Some(contention) = self.contention {
            object.key("contention", &string(&contention.to_string()));
        }
        if let Some(cost) = &self.pipeline_cost {
            object.key("pipeline_cost", &string(cost));
        }
        if self.shared_devices {
            object.key("shared_devices", "true");
        }
        if let Some(splits) = self.splits {
            object.key("splits", &splits.to_string());
        }
        if let Some(size) = self.max_batch {
            object.key("max_batch", &size.to_string());
        }
        if let Some(replicas) = self.max_replicas {
            object.key("max_replicas", &replicas.to_string());
        }
        self.schedule_keys(&mut object);
        if !self.transfers.is_empty() {
            object.key("transfers", &list(&self.transfers, transfer));
        }
        if !self.copies.is_empty() {
            object.key("copies", &list(&self.copies, copy));
        }
        if let Some(names) = &self.names {
            object.key("names", &list(names, |name| string(name)));
        }
        object.finish() + "\n"
    }

    fn schedule_keys(&self, object: &mut Lines) {
        match &self.schedule {
            Schedule::Latency { device, start, makespan } => {
                object.key("makespan", &number(*makespan));
                object.key("device", &integers(device));
                object.key("start", &numbers(start));
            }
            Schedule::Batch { batches, makespan } => {
                object.key("makespan", &number(*makespan));
                object.key("batches", &list(batches, batch));
            }
            Schedule::Pipeline { block, k, bottleneck, stages } => {
                object.key("k", &k.to_string());
                object.key("bottleneck", &number(*bottleneck));
                object.key("block", &integers(block));
                if let Some(stages) = stages {
                    if let Some(devices) = &stages.block_device {
                        object.key("block_device", &integers(devices));
                    }
                    if let Some(order) = &stages.order {
                        object.key("order", &row(order, |tasks| integers(tasks)));
                    }
                }
            }
            Schedule::BatchedPipeline { block, k, bottleneck, turns, order } => {
                object.key("k", &k.to_string());
                object.key("bottleneck", &number(*bottleneck));
                object.key("block", &integers(block));
                match turns {
                    Turns::Devices { batch, devices } => {
                        object.key("batch", &integers(batch));
                        object.key("block_devices", &row(devices, |devices| integers(devices)));
                    }
                    Turns::Equal { replicas } => object.key("replicas", &integers(replicas)),
                }
                if let Some(order) = order {
                    object.key("order", &row(order, |tasks| integers(tasks)));
                }
            }
            Schedule::Edge { place, period } => {
                object.key("period", &number(*period));
                object.key("place", &integers(place));
            }
        }
    }
}

fn batch(batch: &Batch) -> String {
    format!(
        "{{\"node\": {}, \"device\": {}, \"inputs\": {}, \"start\": {}}}",
        batch.node,
        batch.device,
        integers(&batch.inputs),
        number(batch.start)
    )
}

fn transfer(transfer: &Transfer) -> String {
    let inputs = transfer.inputs.as_ref().map(|inputs| format!(", \"inputs\": {}", integers(inputs)));
    let inputs = inputs.unwrap_or_default();
    format!(
        "{{\"tensor\": {}, \"from\": {}, \"to\": {}{inputs}, \"start\": {}, \"end\": {}}}",
        transfer.tensor,
        transfer.from,
        transfer.to,
        number(transfer.start),
        number(transfer.end)
    )
}

fn copy(copy: &ParameterCopy) -> String {
    let via = copy.via.map(|via| format!(", \"via\": {via}")).unwrap_or_default();
    format!(
        "{{\"node\": {}, \"to\": {}{via}, \"start\": {}, \"end\": {}}}",
        copy.node,
        copy.to,
        number(copy.start),
        number(copy.end)
    )
}
