//! What the driver shows of a plan.

use divi_passes::session::Session;
use divi_planner::explain::explain;
use mlir_sys::MlirStringRef;
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

type Sink = extern "C" fn(MlirStringRef, *mut c_void);

#[unsafe(no_mangle)]
extern "C" fn diviSessionCreate(_show_progress: bool) -> *mut Session {
    Box::into_raw(Box::new(Session::new(None)))
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
    // Inputs are the problem's.
    let options = divi_planner::Options { inputs: None, ..planned.options.clone() };
    Ok(match view {
        "plan" => planned.plan.write(),
        "explain" => explain(&planned.problem, &planned.plan, planned.node_named(argument)?, &options).to_string(),
        _ => String::new(),
    })
}
