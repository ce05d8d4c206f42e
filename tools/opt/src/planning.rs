//! Views of a plan for the driver.

use divi_passes::session::Session;
use divi_planner::SolverEvent;
use divi_report::{About, Event, Found, Progress, Report, explain::explain};
use std::{
    any::Any,
    io::{IsTerminal, stderr},
};

/// Creates a session, with a progress line on a terminal if requested.
pub(crate) fn session(show_progress: bool, title: &str) -> Session {
    let line = || {
        let line = Progress::on_terminal()?;
        Some((line.observer(), Box::new(line) as Box<dyn Any>))
    };
    let mut session = if show_progress { Session::showing(line) } else { Session::default() };
    session.title = title.to_owned();
    session
}

/// Renders a view of the session's plan.
pub(crate) fn show(session: &Session, view: &str, argument: &str) -> Result<String, String> {
    let planned = session.planned_module().ok_or("no plan: the input has no builtin.module")?;
    match view {
        "plan" => return Ok(planned.plan.write()),
        "explain" => {
            // The number of inputs is already part of the problem.
            let options = divi_planner::Options { inputs: None, ..planned.options.clone() };
            let node = planned.node_named(argument)?;
            return Ok(explain(&planned.problem, &planned.plan, node, &options).to_string());
        }
        _ => {}
    }
    let about = About {
        title: (!session.title.is_empty()).then(|| session.title.clone()),
        task_kinds: planned.kinds.clone(),
        device_kinds: planned.device_kinds.clone(),
        operators: planned.operators(),
        costs: planned.costs.map(str::to_owned),
    };
    let report = Report::new(&planned.problem, &planned.staged).map_err(|error| error.to_string())?;
    let report = report.about(about).history(session.events().into_iter().filter_map(event).collect());
    Ok(match view {
        "dot" => report.dot(),
        "svg" => report.svg(),
        "html" => report.html(),
        "json" => format!("{}\n", report.summary_json()),
        _ => report.summary(stderr().is_terminal()),
    })
}

fn event((seconds, event): (f64, SolverEvent)) -> Option<Event> {
    let (part, found) = match event {
        SolverEvent::Plan(value, part) => (part, Found::Plan(value)),
        SolverEvent::Bound(value, part) => (part, Found::Bound(value)),
        SolverEvent::Taken(_) | SolverEvent::Explored(..) | SolverEvent::Failed(_) => return None,
    };
    Some(Event { seconds, part: part.to_owned(), found })
}
