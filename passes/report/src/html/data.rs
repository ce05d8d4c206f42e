//! Data of the page's scripts. Launches, transfers and edges are stored as columns, since there may be thousands.

use divi_planner::plan::{Limit, Schedule};
use divi_planner::units::Micros;
use serde_json::{Value, json};

use crate::about::Found;
use crate::layout::Layout;
use crate::palette::{colour, text};
use crate::timeline::{StageCost, Way, ports};
use crate::{Launch, Report};

pub(super) fn of(report: &Report<'_>) -> Value {
    let (plan, timeline) = (report.plan, &report.timeline);
    let limit = plan.limit.map(|limit| match limit {
        Limit::Iterations(count) => json!({"iterations": count}),
        Limit::Seconds(seconds) => json!({"seconds": seconds}),
    });
    let inputs = match plan.schedule {
        Schedule::Batch { .. } => plan.inputs.unwrap_or(report.problem.inputs),
        _ => 1,
    };
    json!({
        "title": report.title(),
        "objective": plan.objective.name(),
        "algorithm": plan.algorithm,
        "seed": plan.seed,
        "limit": limit,
        "inputs": inputs,
        "value": plan.value,
        "bound": plan.bound,
        "boundBy": plan.bound_by,
        "proof": plan.proof.name(),
        "verifiedBound": plan.verified_bound,
        "gap": plan.gap,
        "costs": report.about.costs,
        "cost": timeline.cost.map(StageCost::name),
        "end": timeline.end,
        "devices": devices(report),
        "links": links(report),
        "tasks": tasks(report),
        "launches": launches(report),
        "handovers": handovers(report),
        "transfers": transfers(report),
        "graph": graph(report),
        "history": history(report),
    })
}

fn devices(report: &Report<'_>) -> Vec<Value> {
    let device = |(index, device): (usize, &crate::DeviceUse)| {
        let memory = &device.memory;
        json!({
            "name": device.name,
            "kind": report.device_kind(index),
            "colour": colour(index),
            "text": text(index),
            "tasks": device.tasks,
            "share": device.share,
            "busy": device.busy,
            "idle": device.idle,
            "weights": memory.weights,
            "peak": memory.peak,
            "counted": memory.counted,
            "capacity": memory.capacity,
            "profile": memory.profile,
            "stages": device.stages,
            "bottleneck": device.bottleneck,
            "rows": device.rows,
        })
    };
    report.timeline.devices.iter().enumerate().map(device).collect()
}

fn links(report: &Report<'_>) -> Vec<Value> {
    let link = |link: &crate::LinkUse| {
        json!({
            "name": link.name, "transfers": link.transfers, "bytes": link.bytes, "busy": link.busy, "rows": link.rows,
            "bottleneck": link.bottleneck,
        })
    };
    report.timeline.links.iter().map(link).collect()
}

fn tasks(report: &Report<'_>) -> Value {
    let count = report.problem.nodes.len();
    let ports = ports(report.problem);
    json!({
        "name": (0..count).map(|task| report.task_name(task)).collect::<Vec<_>>(),
        "label": report.labels(),
        "kind": (0..count).map(|task| report.about.task_kind(task)).collect::<Vec<_>>(),
        "weight": report.problem.nodes.iter().map(|node| node.weight).collect::<Vec<_>>(),
        "output": report.problem.output_bytes(),
        "port": (0..count).filter(|task| ports[*task]).collect::<Vec<_>>(),
        "devices": report.places(),
    })
}

fn launches(report: &Report<'_>) -> Value {
    let all = &report.timeline.launches;
    let column = |of: fn(&Launch) -> Value| all.iter().map(of).collect::<Vec<_>>();
    json!({
        "task": column(|launch| launch.task.into()),
        "device": column(|launch| launch.device.into()),
        "start": column(|launch| launch.start.0.into()),
        "end": column(|launch| launch.end.0.into()),
        "inputs": column(|launch| ranges(&launch.inputs).into()),
    })
}

/// Formats sorted numbers as ranges: `0–3, 7`.
fn ranges(inputs: &[u32]) -> String {
    let ranges: Vec<String> = inputs
        .chunk_by(|a, b| a + 1 == *b)
        .map(|range| match range {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}–{last}"),
            [] => String::new(),
        })
        .collect();
    ranges.join(", ")
}

fn handovers(report: &Report<'_>) -> Value {
    let all = &report.timeline.handovers;
    let column = |of: fn(&crate::Handover) -> Value| all.iter().map(of).collect::<Vec<_>>();
    json!({
        "way": column(|handover| match handover.way {
            Way::In => "in",
            Way::Out => "out",
            Way::Spill => "spill",
        }.into()),
        "task": column(|handover| handover.task.into()),
        "device": column(|handover| handover.device.into()),
        "row": column(|handover| handover.row.into()),
        "bytes": column(|handover| handover.bytes.0.into()),
        "start": column(|handover| handover.start.0.into()),
        "end": column(|handover| handover.end.0.into()),
    })
}

fn transfers(report: &Report<'_>) -> Value {
    let all = &report.timeline.transfers;
    let column = |of: fn(&crate::Transfer) -> Value| all.iter().map(of).collect::<Vec<_>>();
    json!({
        "task": column(|transfer| transfer.task.into()),
        "weights": column(|transfer| transfer.tensor.is_none().into()),
        "from": column(|transfer| transfer.from.into()),
        "to": column(|transfer| transfer.to.into()),
        "link": column(|transfer| transfer.link.into()),
        "row": column(|transfer| transfer.row.into()),
        "inputs": column(|transfer| transfer.inputs.len().into()),
        "bytes": column(|transfer| transfer.bytes.0.into()),
        "start": column(|transfer| transfer.start.0.into()),
        "end": column(|transfer| transfer.end.0.into()),
    })
}

/// Layout of the graph, rounded to hundredths of a layer or row.
fn graph(report: &Report<'_>) -> Value {
    let layout = Layout::of(report.problem);
    let round = |row: &f64| (row * 100.0).round() / 100.0;
    let bends = |bends: &[f64]| bends.iter().map(round).collect::<Vec<_>>();
    json!({
        "layers": layout.layers,
        "height": round(&layout.height),
        "layer": layout.layer,
        "row": layout.row.iter().map(round).collect::<Vec<_>>(),
        "from": layout.edges.iter().map(|edge| edge.from).collect::<Vec<_>>(),
        "to": layout.edges.iter().map(|edge| edge.to).collect::<Vec<_>>(),
        "bends": layout.edges.iter().map(|edge| bends(&edge.bends)).collect::<Vec<_>>(),
    })
}

/// Events of the search. Reported bounds above the certificate's bound were withdrawn and are dropped; if no reported bound
/// attains the certificate's, it is appended as the last event.
fn history(report: &Report<'_>) -> Vec<Value> {
    const ROUNDING: f64 = 1e-9;
    let (proven, by) = (report.plan.bound, &report.plan.bound_by);
    let holds = |event: &&crate::Event| match event.found {
        Found::Plan(_) => true,
        Found::Bound(bound) => bound <= proven * (1.0 + ROUNDING),
    };
    let event = |event: &crate::Event| match event.found {
        Found::Plan(value) => json!({"seconds": event.seconds, "part": event.part, "plan": value}),
        Found::Bound(bound) => json!({"seconds": event.seconds, "part": event.part, "bound": bound}),
    };
    let reported = report.history.iter().filter(holds).filter_map(|event| match event.found {
        Found::Plan(_) => None,
        Found::Bound(bound) => Some(bound),
    });
    let is_reported = reported.fold(Micros(f64::NEG_INFINITY), Micros::max) >= proven * (1.0 - ROUNDING);
    let end = report.history.iter().map(|event| event.seconds).fold(0.0, f64::max);
    let last = (!is_reported && !report.history.is_empty() && proven > Micros::ZERO)
        .then(|| json!({"seconds": end, "part": by, "bound": proven}));
    report.history.iter().filter(holds).map(event).chain(last).collect()
}
