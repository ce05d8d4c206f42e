//! What the driver shows of a plan.

use divi_passes::session::Session;
use divi_planner::SolverEvent;
use divi_report::{About, Event, Found, Progress, Report, explain::explain};
use mlir_sys::MlirStringRef;
use std::{
    any::Any,
    ffi::c_void,
    io::{IsTerminal, stderr},
    panic::{AssertUnwindSafe, catch_unwind},
};

type Sink = extern "C" fn(MlirStringRef, *mut c_void);

#[unsafe(no_mangle)]
extern "C" fn diviSessionCreate(show_progress: bool, title: MlirStringRef) -> *mut Session {
    let line = || {
        let line = Progress::on_terminal()?;
        Some((line.observer(), Box::new(line) as Box<dyn Any>))
    };
    let mut session = if show_progress { Session::showing(line) } else { Session::default() };
    // SAFETY: the driver's string outlives the call.
    session.title = unsafe { divi_dialect::text(title) }.to_owned();
    Box::into_raw(Box::new(session))
}

#[unsafe(no_mangle)]
extern "C" fn diviSessionDestroy(session: *mut Session) {
    // SAFETY: it was made by diviSessionCreate, and the driver gives it back once.
    drop(unsafe { Box::from_raw(session) });
}

#[unsafe(no_mangle)]
extern "C" fn diviSessionShow(
    session: *mut Session,
    view: MlirStringRef,
    argument: MlirStringRef,
    sink: Sink,
    user: *mut c_void,
) -> bool {
    // SAFETY: the driver's session and strings outlive the call.
    let (session, view, argument) = unsafe { (&*session, divi_dialect::text(view), divi_dialect::text(argument)) };
    let outcome = catch_unwind(AssertUnwindSafe(|| show(session, view, argument)));
    match outcome.unwrap_or_else(|_| Err("showing the plan panicked, which is a bug: please report it".into())) {
        Ok(text) => {
            sink(MlirStringRef { data: text.as_ptr().cast(), length: text.len() }, user);
            true
        }
        Err(message) => {
            eprintln!("divi-opt: error: {message}");
            false
        }
    }
}

fn show(session: &Session, view: &str, argument: &str) -> Result<String, String> {
    let planned = session.planned_module().ok_or("there is no plan: the input has no builtin.module")?;
    match view {
        "plan" => return Ok(planned.plan.write()),
        "explain" => {
            // Inputs are the problem's.
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
