//! HiGHS through its C interface.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::ControlFlow;

use highs_sys::*;

use super::{Column, Event, Limits, Outcome, Program, added_up};
use crate::error::Error;

/// How far a row may be off, and a whole variable from a whole number.
const TOLERANCE: f64 = 1e-9;

/// Version of the library that is linked, as "1.15.0".
pub fn version() -> String {
    // SAFETY: the library returns a text that lives as long as the process.
    unsafe { CStr::from_ptr(Highs_version()) }.to_string_lossy().into_owned()
}

type Watch<'a> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'a;

pub(super) fn solve(
    program: &Program,
    limits: &Limits,
    start: Option<&[f64]>,
    watch: &mut Watch<'_>,
) -> Result<Outcome, Error> {
    let solver = Solver::new()?;
    solver.set(limits)?;
    solver.pass(program)?;
    if let Some(start) = start.filter(|start| start.len() == program.columns()) {
        // SAFETY: HiGHS reads a value for each column, and copies them.
        let status = unsafe { Highs_setSolution(solver.0, start.as_ptr(), NULL, NULL, NULL) };
        check(status, "take a start")?;
    }
    let (columns, most) = (program.columns(), limits.iterations);
    let mut context = Context { watch, columns, most, bound: f64::NEG_INFINITY, stop: false };
    let data: *mut Context<'_, '_> = &mut context;
    // SAFETY: the context outlives the run, which is the only caller; callbacks come one at a time, from this thread.
    unsafe {
        check(Highs_setCallback(solver.0, Some(called), data.cast()), "take a callback")?;
        for kind in [
            kHighsCallbackMipImprovingSolution,
            kHighsCallbackMipLogging,
            kHighsCallbackMipInterrupt,
            kHighsCallbackCallbackMipUserSolution,
        ] {
            check(Highs_startCallback(solver.0, kind), "call back")?;
        }
        if Highs_run(solver.0) == kHighsStatusError {
            // It has been seen to fail at what its presolve made of a program, and not at the program.
            let off = Highs_setStringOptionValue(solver.0, c"presolve".as_ptr(), c"off".as_ptr());
            check(off, "leave out presolve")?;
            check(Highs_clearSolver(solver.0), "begin anew")?;
            check(Highs_run(solver.0), "solve")?;
        }
    }
    let bound = if program.whole.contains(&true) { c"mip_dual_bound" } else { c"objective_function_value" };
    solver.outcome(program.columns(), bound)
}

/// A program without whole variables, whose solutions are each other's starts.
pub(crate) struct Relaxation {
    solver: Solver,
    columns: usize,
}

impl Relaxation {
    pub(super) fn new(program: &Program, limits: &Limits) -> Result<Self, Error> {
        let solver = Solver::new()?;
        solver.set(limits)?;
        let most = c_int::try_from(limits.iterations).unwrap_or(c_int::MAX);
        // SAFETY: the name ends with zero.
        let status = unsafe { Highs_setIntOptionValue(solver.0, c"simplex_iteration_limit".as_ptr(), most) };
        check(status, "take a limit")?;
        solver.pass(program)?;
        Ok(Self { solver, columns: program.columns() })
    }

    pub(crate) fn solve(&mut self) -> Result<Outcome, Error> {
        // SAFETY: the instance has a program.
        check(unsafe { Highs_run(self.solver.0) }, "solve")?;
        self.solver.outcome(self.columns, c"objective_function_value")
    }

    /// Other limits of a column.
    pub(crate) fn bound(&mut self, column: Column, lower: f64, upper: f64) -> Result<(), Error> {
        let index = indices(&[column.0])?[0];
        // SAFETY: the column is one of the program's.
        check(unsafe { Highs_changeColBounds(self.solver.0, index, lower, upper) }, "take limits")
    }

    /// One more row.
    pub(crate) fn at_least(&mut self, lower: f64, terms: &[(Column, f64)]) -> Result<(), Error> {
        let terms = added_up(terms.iter().copied());
        let columns = indices(&terms.iter().map(|(column, _)| column.0).collect::<Vec<_>>())?;
        let values: Vec<f64> = terms.iter().map(|(_, value)| *value).collect();
        let count = indices(&[terms.len()])?[0];
        // SAFETY: both arrays have so many entries, and HiGHS copies them.
        let status =
            unsafe { Highs_addRow(self.solver.0, lower, f64::INFINITY, count, columns.as_ptr(), values.as_ptr()) };
        check(status, "take a row")
    }
}

/// An instance of HiGHS, freed when it goes out of scope.
struct Solver(*mut c_void);

impl Drop for Solver {
    fn drop(&mut self) {
        // SAFETY: HiGHS made it, and nobody else frees it.
        unsafe { Highs_destroy(self.0) };
    }
}

const NULL: *const f64 = std::ptr::null();

impl Solver {
    fn new() -> Result<Self, Error> {
        // SAFETY: it takes nothing, and null says that there is no memory.
        let solver = unsafe { Highs_create() };
        if solver.is_null() { Err(Error::Bug("HiGHS cannot be created".to_owned())) } else { Ok(Self(solver)) }
    }

    fn set(&self, limits: &Limits) -> Result<(), Error> {
        let seed = c_int::try_from(limits.seed % (1 << 31)).unwrap_or(0);
        // SAFETY: the names end with zero, and HiGHS copies what it is given.
        unsafe {
            check(Highs_setBoolOptionValue(self.0, c"output_flag".as_ptr(), 0), "be quiet")?;
            check(Highs_setIntOptionValue(self.0, c"threads".as_ptr(), 1), "use one thread")?;
            check(Highs_setIntOptionValue(self.0, c"random_seed".as_ptr(), seed), "take a seed")?;
            for (name, value) in [
                (c"mip_rel_gap", 0.0),
                (c"mip_abs_gap", TOLERANCE),
                (c"mip_feasibility_tolerance", TOLERANCE),
                (c"primal_feasibility_tolerance", TOLERANCE),
                (c"dual_feasibility_tolerance", TOLERANCE),
                (c"time_limit", limits.seconds.unwrap_or(f64::INFINITY)),
            ] {
                check(Highs_setDoubleOptionValue(self.0, name.as_ptr(), value), "take an option")?;
            }
        }
        Ok(())
    }

    fn pass(&self, program: &Program) -> Result<(), Error> {
        let sizes = indices(&[program.columns(), program.row_lower.len(), program.entry_value.len()])?;
        let (start, column) = (indices(&program.row_start)?, indices(&program.entry_column)?);
        let kind = |whole: &bool| if *whole { kHighsVarTypeInteger } else { kHighsVarTypeContinuous };
        let kinds: Vec<HighsInt> = program.whole.iter().map(kind).collect();
        // SAFETY: every array has the length that the sizes say, the entries' columns are columns, and HiGHS copies
        // all.
        let status = unsafe {
            Highs_passMip(
                self.0,
                sizes[0],
                sizes[1],
                sizes[2],
                kHighsMatrixFormatRowwise,
                kHighsObjSenseMinimize,
                0.0,
                program.cost.as_ptr(),
                program.lower.as_ptr(),
                program.upper.as_ptr(),
                program.row_lower.as_ptr(),
                program.row_upper.as_ptr(),
                start.as_ptr(),
                column.as_ptr(),
                program.entry_value.as_ptr(),
                kinds.as_ptr(),
            )
        };
        check(status, "take an integer program")
    }

    fn outcome(&self, columns: usize, bound: &CStr) -> Result<Outcome, Error> {
        // SAFETY: it only reads.
        let status = unsafe { Highs_getModelStatus(self.0) };
        let infeasible = [kHighsModelStatusInfeasible, kHighsModelStatusUnboundedOrInfeasible].contains(&status);
        let feasible = self.int(c"primal_solution_status")? == kHighsSolutionStatusFeasible;
        let mut values = vec![0.0; columns];
        if feasible {
            let null = std::ptr::null_mut();
            // SAFETY: there is room for a value for each column, and HiGHS leaves out what it has no place for.
            check(unsafe { Highs_getSolution(self.0, values.as_mut_ptr(), null, null, null) }, "give a solution")?;
        }
        Ok(Outcome {
            values: feasible.then_some(values),
            bound: if infeasible { f64::INFINITY } else { self.double(bound)? },
            finished: infeasible || status == kHighsModelStatusOptimal || status == kHighsModelStatusModelEmpty,
            // Negative where there were more than it can say.
            iterations: u64::try_from(self.int(c"simplex_iteration_count")?).unwrap_or(u64::MAX),
            nodes: self.nodes(),
        })
    }

    /// Nothing for programs without whole columns.
    fn nodes(&self) -> u64 {
        let mut value = 0;
        // SAFETY: the name ends with zero, and the place is there.
        let status = unsafe { Highs_getInt64InfoValue(self.0, c"mip_node_count".as_ptr(), &mut value) };
        if status == kHighsStatusError { 0 } else { u64::try_from(value).unwrap_or(0) }
    }

    fn int(&self, name: &CStr) -> Result<c_int, Error> {
        let mut value = 0;
        // SAFETY: the name ends with zero, and the place is there.
        check(unsafe { Highs_getIntInfoValue(self.0, name.as_ptr(), &mut value) }, "say how it went")?;
        Ok(value)
    }

    fn double(&self, name: &CStr) -> Result<f64, Error> {
        let mut value = 0.0;
        // SAFETY: the name ends with zero, and the place is there.
        check(unsafe { Highs_getDoubleInfoValue(self.0, name.as_ptr(), &mut value) }, "say how it went")?;
        Ok(value)
    }
}

fn indices(values: &[usize]) -> Result<Vec<HighsInt>, Error> {
    let too_many = |_| Error::Unsupported("the integer program is too large for HiGHS".to_owned());
    values.iter().map(|value| HighsInt::try_from(*value).map_err(too_many)).collect()
}

fn check(status: HighsInt, what: &str) -> Result<(), Error> {
    if status == kHighsStatusError { Err(Error::Bug(format!("HiGHS could not {what}"))) } else { Ok(()) }
}

/// What callbacks need.
struct Context<'a, 'b> {
    watch: &'a mut Watch<'b>,
    columns: usize,
    most: u64,
    bound: f64,
    /// HiGHS listens at some callbacks only.
    stop: bool,
}

unsafe extern "C" fn called(
    kind: c_int,
    _: *const c_char,
    out: *const HighsCallbackDataOut,
    into: *mut HighsCallbackDataIn,
    data: *mut c_void,
) {
    if out.is_null() || data.is_null() {
        return;
    }
    // SAFETY: the data are the context that `solve` keeps, and nobody else holds it while HiGHS runs.
    let context = unsafe { &mut *data.cast::<Context<'_, '_>>() };
    // SAFETY: HiGHS keeps it for the duration of the call.
    let out = unsafe { &*out };
    let whole = usize::try_from(out.mip_solution_size).is_ok_and(|size| size == context.columns);
    if kind == kHighsCallbackMipImprovingSolution && whole && !out.mip_solution.is_null() {
        // SAFETY: HiGHS says that there is a value for each column.
        let values = unsafe { std::slice::from_raw_parts(out.mip_solution, context.columns) };
        context.stop |= (context.watch)(Event::Solution(values)).is_break();
    }
    if out.mip_dual_bound.is_finite() && out.mip_dual_bound > context.bound {
        context.bound = out.mip_dual_bound;
        context.stop |= (context.watch)(Event::Bound(context.bound)).is_break();
    }
    if kind == kHighsCallbackCallbackMipUserSolution && !into.is_null() {
        let mut wanted = None;
        context.stop |= (context.watch)(Event::Wanted(&mut wanted)).is_break();
        // SAFETY: HiGHS keeps it for the duration of the call.
        let into = unsafe { &mut *into };
        let fits = usize::try_from(into.user_solution_size).is_ok_and(|size| size == context.columns);
        if let Some(values) = wanted.filter(|values| fits && values.len() == context.columns) {
            // SAFETY: HiGHS says that there is room for a value for each column.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), into.user_solution, values.len()) };
            into.user_has_solution = 1;
        }
    }
    context.stop |= u64::try_from(out.mip_total_lp_iterations).is_ok_and(|spent| spent >= context.most);
    if context.stop && kind == kHighsCallbackMipInterrupt && !into.is_null() {
        // SAFETY: HiGHS keeps it for the duration of the call.
        unsafe { (*into).user_interrupt = 1 };
    }
}
