//! Graphviz output: tasks in the colors of their devices, edges labeled with the bytes they transfer between devices.

use std::fmt::Write;

use divi_planner::units::{Bytes, human_bytes};
use rustc_hash::FxHashMap;

use crate::Report;
use crate::palette::{colour, text};
use crate::text::{micros, percent, quoted};

pub(crate) fn draw(report: &Report<'_>) -> String {
    let mut dot = String::new();
    write_graph(report, &mut dot).expect("writing to a string cannot fail");
    dot
}

fn write_graph(report: &Report<'_>, dot: &mut String) -> std::fmt::Result {
    let plan = report.plan;
    let heading = format!(
        "{}: {} {}, bound {}{}, gap {}",
        report.title(),
        plan.objective,
        micros(plan.value),
        micros(plan.bound),
        plan.bound_remark(),
        percent(plan.gap, 2)
    );
    writeln!(dot, "digraph {} {{", quoted(report.title()))?;
    writeln!(dot, "  label={}; labelloc=t; rankdir=TB; fontname=\"sans-serif\";", quoted(&heading))?;
    writeln!(dot, "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\", fontsize=11, penwidth=0];")?;
    writeln!(dot, "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#8a94a3\"];")?;
    let places = report.places();
    for (task, devices) in places.iter().enumerate() {
        let kind = report.about.task_kind(task);
        let name = report.task_name(task);
        let label = if kind.is_empty() { name } else { format!("{name}\n{kind}") };
        writeln!(dot, "  t{task} [label={}, {}];", quoted(&label), fill(devices))?;
    }
    write_edges(report, dot)?;
    writeln!(dot, "  subgraph cluster_legend {{")?;
    writeln!(dot, "    label=\"devices\"; color=\"#c5ccd6\"; fontsize=11;")?;
    for (index, device) in report.timeline.devices.iter().enumerate() {
        let kind = report.device_kind(index);
        let name = if kind.is_empty() { device.name.clone() } else { format!("{} ({kind})", device.name) };
        writeln!(dot, "    d{index} [label={}, {}];", quoted(&name), fill(&[index]))?;
    }
    writeln!(dot, "  }}\n}}")
}

/// Returns the fill attributes: one color, or a stripe for each device that runs some of the inputs.
fn fill(devices: &[usize]) -> String {
    match devices {
        [] => "fillcolor=\"#d5dae1\"".to_owned(),
        [device] => format!("fillcolor=\"{}\", fontcolor=\"{}\"", colour(*device), text(*device)),
        [first, ..] => {
            let colours: Vec<String> = devices.iter().map(|device| colour(*device)).collect();
            format!("style=striped, fillcolor=\"{}\", fontcolor=\"{}\"", colours.join(":"), text(*first))
        }
    }
}

/// Writes one edge per consumer of a tensor, labeled if the tensor is transferred to a device of that consumer.
fn write_edges(report: &Report<'_>, dot: &mut String) -> std::fmt::Result {
    let places = report.places();
    let mut moved: FxHashMap<(usize, usize), Bytes> = FxHashMap::default();
    for transfer in &report.timeline.transfers {
        if let Some(tensor) = transfer.tensor {
            *moved.entry((tensor, transfer.to)).or_default() += transfer.bytes;
        }
    }
    for (index, tensor) in report.problem.all_tensors().iter().enumerate() {
        for to in &tensor.to {
            let crosses: Bytes = places[*to].iter().filter_map(|device| moved.get(&(index, *device))).sum();
            let from = tensor.from;
            if crosses > Bytes::ZERO {
                let label = quoted(&human_bytes(crosses));
                writeln!(dot, "  t{from} -> t{to} [label={label}, color=\"#c0392b\", penwidth=1.6];")?;
            } else {
                writeln!(dot, "  t{from} -> t{to};")?;
            }
        }
    }
    Ok(())
}
