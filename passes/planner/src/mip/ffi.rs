//! HiGHS through its C interface.

use super::safe::Bounds;
use super::{Column, Event, Limits, Outcome, Program, added_up};
use crate::model::error::Error;
use highs_sys::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::ControlFlow;

/// Feasibility and integrality tolerance.
const TOLERANCE: f64 = 1e-9;

/// Returns the version of the linked library, as in "1.15.0".
pub fn version() -> String {
    // SAFETY: the function has no arguments.
    let version = unsafe { Highs_version() };
    // SAFETY: the text lives as long as the process.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}

/// Ends the process without running exit handlers.
pub(super) fn exit_now(status: u8) -> ! {
    // SAFETY: the function has an integer argument and does not return.
    unsafe { _exit(c_int::from(status)) }
}

type Observer<'a> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'a;

pub(super) fn solve(
    program: &Program,
    limits: &Limits,
    start: Option<&[f64]>,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    let solver = Solver::new()?;
    solver.set(limits)?;
    if !program.is_integer.contains(&true) {
        solver.limit_simplex(limits)?;
    }
    solver.pass(program)?;
    if let Some(start) = start.filter(|start| start.len() == program.columns()) {
        // SAFETY: HiGHS reads a value for each column, and copies them.
        let status = unsafe { Highs_setSolution(solver.0, start.as_ptr(), NULL, NULL, NULL) };
        check(status, "set a start solution")?;
    }
    let (columns, most) = (program.columns(), limits.iterations);
    let mut context = Context { observer, columns, most, bound: f64::NEG_INFINITY, stop: false };
    let data: *mut Context<'_, '_> = &mut context;
    // SAFETY: the context outlives the run, during which alone it is used; callbacks are called one at a time, from this
    // thread.
    check(unsafe { Highs_setCallback(solver.0, Some(called), data.cast()) }, "set a callback")?;
    for kind in [
        kHighsCallbackMipImprovingSolution,
        kHighsCallbackMipLogging,
        kHighsCallbackMipInterrupt,
        kHighsCallbackCallbackMipUserSolution,
    ] {
        // SAFETY: the instance is alive.
        check(unsafe { Highs_startCallback(solver.0, kind) }, "start a callback")?;
    }
    if solver.run() == kHighsStatusError {
        // HiGHS may fail on the presolved program though not on the program itself.
        solver.skip_presolve()?;
        // SAFETY: the instance is alive.
        check(unsafe { Highs_clearSolver(solver.0) }, "clear its state")?;
        check(solver.run(), "solve")?;
    }
    if program.is_integer.contains(&true) {
        solver.outcome(program.columns(), c"mip_dual_bound")
    } else {
        solver.linear_outcome(program.columns(), program.rows())
    }
}

/// Linear program that is solved repeatedly, each time from the last basis.
pub(crate) struct Relaxation {
    solver: Solver,
    columns: usize,
    rows: usize,
}

impl Relaxation {
    pub(super) fn new(program: &Program, limits: &Limits) -> Result<Self, Error> {
        let solver = Solver::new()?;
        solver.set(limits)?;
        solver.limit_simplex(limits)?;
        solver.pass(program)?;
        Ok(Self { solver, columns: program.columns(), rows: program.rows() })
    }

    pub(crate) fn solve(&mut self) -> Result<Outcome, Error> {
        check(self.solver.run(), "solve")?;
        self.solver.linear_outcome(self.columns, self.rows)
    }

    /// Disables presolve and stops a solve as soon as its objective exceeds `most`: for programs of which only bounds of
    /// columns change between solves.
    pub(super) fn until(&mut self, most: f64) -> Result<(), Error> {
        self.solver.skip_presolve()?;
        self.solver.set_number(c"objective_bound", most)
    }

    /// Changes the bounds of some columns.
    pub(super) fn narrow(&mut self, columns: &[usize], bounds: &Bounds) -> Result<(), Error> {
        let set = indices(columns)?;
        let of = |ends: &[f64]| columns.iter().map(|column| ends[*column]).collect::<Vec<f64>>();
        let (lower, upper) = (of(&bounds.lower), of(&bounds.upper));
        let count = indices(&[columns.len()])?[0];
        // SAFETY: the columns are the program's, ascending, with bounds for each.
        let status =
            unsafe { Highs_changeColsBoundsBySet(self.solver.0, count, set.as_ptr(), lower.as_ptr(), upper.as_ptr()) };
        check(status, "change bounds")
    }

    /// Changes the bounds of a column.
    pub(crate) fn bound(&mut self, column: Column, lower: f64, upper: f64) -> Result<(), Error> {
        let index = indices(&[column.0])?[0];
        // SAFETY: the column is one of the program's.
        check(unsafe { Highs_changeColBounds(self.solver.0, index, lower, upper) }, "change bounds")
    }

    /// Adds a row.
    pub(crate) fn at_least(&mut self, lower: f64, terms: &[(Column, f64)]) -> Result<(), Error> {
        let terms = added_up(terms.iter().copied());
        let columns = indices(&terms.iter().map(|(column, _)| column.0).collect::<Vec<_>>())?;
        let values: Vec<f64> = terms.iter().map(|(_, value)| *value).collect();
        let count = indices(&[terms.len()])?[0];
        // SAFETY: both arrays have `count` entries, and HiGHS copies them.
        let status =
            unsafe { Highs_addRow(self.solver.0, lower, f64::INFINITY, count, columns.as_ptr(), values.as_ptr()) };
        self.rows += 1;
        check(status, "add a row")
    }
}

/// Owned instance of HiGHS.
struct Solver(*mut c_void);

impl Drop for Solver {
    fn drop(&mut self) {
        // SAFETY: the instance was created by HiGHS and is destroyed only here.
        unsafe { Highs_destroy(self.0) };
    }
}

const NULL: *const f64 = std::ptr::null();

impl Solver {
    fn new() -> Result<Self, Error> {
        // SAFETY: the function has no arguments; null means out of memory.
        let solver = unsafe { Highs_create() };
        if solver.is_null() { Err(Error::Bug("HiGHS cannot be created".to_owned())) } else { Ok(Self(solver)) }
    }

    fn set(&self, limits: &Limits) -> Result<(), Error> {
        let seed = c_int::try_from(limits.seed % (1 << 31)).unwrap_or(0);
        // SAFETY: the name is NUL-terminated.
        check(unsafe { Highs_setBoolOptionValue(self.0, c"output_flag".as_ptr(), 0) }, "disable its output")?;
        self.set_integer(c"threads", 1)?;
        self.set_integer(c"random_seed", seed)?;
        for (name, value) in [
            (c"mip_rel_gap", 0.0),
            (c"mip_abs_gap", TOLERANCE),
            (c"mip_feasibility_tolerance", TOLERANCE),
            (c"primal_feasibility_tolerance", TOLERANCE),
            (c"dual_feasibility_tolerance", TOLERANCE),
            (c"time_limit", limits.seconds.unwrap_or(f64::INFINITY)),
        ] {
            self.set_number(name, value)?;
        }
        Ok(())
    }

    fn set_integer(&self, option: &CStr, value: c_int) -> Result<(), Error> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { Highs_setIntOptionValue(self.0, option.as_ptr(), value) }, "set an option")
    }

    fn set_number(&self, option: &CStr, value: f64) -> Result<(), Error> {
        // SAFETY: the name is NUL-terminated.
        check(unsafe { Highs_setDoubleOptionValue(self.0, option.as_ptr(), value) }, "set an option")
    }

    fn skip_presolve(&self) -> Result<(), Error> {
        // SAFETY: name and value are NUL-terminated, and HiGHS copies them.
        let status = unsafe { Highs_setStringOptionValue(self.0, c"presolve".as_ptr(), c"off".as_ptr()) };
        check(status, "disable presolve")
    }

    /// Solves the program that was passed. Returns HiGHS's status.
    fn run(&self) -> HighsInt {
        // SAFETY: the instance has a program.
        unsafe { Highs_run(self.0) }
    }

    /// Limits the iterations of linear programs; those of integer programs are counted in callbacks.
    fn limit_simplex(&self, limits: &Limits) -> Result<(), Error> {
        self.set_integer(c"simplex_iteration_limit", c_int::try_from(limits.iterations).unwrap_or(c_int::MAX))
    }

    fn pass(&self, program: &Program) -> Result<(), Error> {
        let sizes = indices(&[program.columns(), program.row_lower.len(), program.entry_value.len()])?;
        let (start, column) = (indices(&program.row_start)?, indices(&program.entry_column)?);
        let kind = |is_integer: &bool| if *is_integer { kHighsVarTypeInteger } else { kHighsVarTypeContinuous };
        let kinds: Vec<HighsInt> = program.is_integer.iter().map(kind).collect();
        // SAFETY: every array has the length that the sizes give, the entries' columns exist, and HiGHS copies all.
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
        check(status, "load an integer program")
    }

    fn outcome(&self, columns: usize, bound: &CStr) -> Result<Outcome, Error> {
        // SAFETY: the call only reads.
        let status = unsafe { Highs_getModelStatus(self.0) };
        let infeasible = [kHighsModelStatusInfeasible, kHighsModelStatusUnboundedOrInfeasible].contains(&status);
        let feasible = self.int(c"primal_solution_status")? == kHighsSolutionStatusFeasible;
        let mut values = vec![0.0; columns];
        if feasible {
            let null = std::ptr::null_mut();
            // SAFETY: there is space for a value for each column, and HiGHS skips null arrays.
            check(unsafe { Highs_getSolution(self.0, values.as_mut_ptr(), null, null, null) }, "return a solution")?;
        }
        let finished = infeasible || status == kHighsModelStatusOptimal || status == kHighsModelStatusModelEmpty;
        let bound = if infeasible { f64::INFINITY } else { self.double(bound)? };
        Ok(Outcome {
            values: feasible.then_some(values),
            // An infinite bound of an interrupted search is meaningless.
            bound: if bound == f64::INFINITY && !finished { f64::NEG_INFINITY } else { bound },
            verified: f64::NEG_INFINITY,
            duals: Vec::new(),
            ray: None,
            finished,
            // Negative on overflow.
            iterations: u64::try_from(self.int(c"simplex_iteration_count")?).unwrap_or(u64::MAX),
            nodes: self.nodes(),
        })
    }

    /// Returns the outcome with dual values and, if infeasible, a Farkas ray if HiGHS has one.
    fn linear_outcome(&self, columns: usize, rows: usize) -> Result<Outcome, Error> {
        let mut outcome = self.outcome(columns, c"objective_function_value")?;
        let (null, mut duals) = (std::ptr::null_mut(), vec![0.0; rows]);
        // SAFETY: there is space for a value for each row, and HiGHS skips null arrays.
        let status = unsafe { Highs_getSolution(self.0, null, null, null, duals.as_mut_ptr()) };
        if status != kHighsStatusError {
            outcome.duals = duals;
        }
        if outcome.bound == f64::INFINITY {
            let (mut has_ray, mut ray) = (0, vec![0.0; rows]);
            // SAFETY: there is space for a value for each row.
            let status = unsafe { Highs_getDualRay(self.0, &mut has_ray, ray.as_mut_ptr()) };
            outcome.ray = (status != kHighsStatusError && has_ray != 0).then_some(ray);
        }
        Ok(outcome)
    }

    /// Returns the number of explored nodes; zero for programs without integer columns.
    fn nodes(&self) -> u64 {
        let mut value = 0;
        // SAFETY: the name is NUL-terminated, and the destination is valid.
        let status = unsafe { Highs_getInt64InfoValue(self.0, c"mip_node_count".as_ptr(), &mut value) };
        if status == kHighsStatusError { 0 } else { u64::try_from(value).unwrap_or(0) }
    }

    fn int(&self, name: &CStr) -> Result<c_int, Error> {
        let mut value = 0;
        // SAFETY: the name is NUL-terminated, and the destination is valid.
        check(unsafe { Highs_getIntInfoValue(self.0, name.as_ptr(), &mut value) }, "return its statistics")?;
        Ok(value)
    }

    fn double(&self, name: &CStr) -> Result<f64, Error> {
        let mut value = 0.0;
        // SAFETY: the name is NUL-terminated, and the destination is valid.
        check(unsafe { Highs_getDoubleInfoValue(self.0, name.as_ptr(), &mut value) }, "return its statistics")?;
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

/// State of the callbacks.
struct Context<'a, 'b> {
    observer: &'a mut Observer<'b>,
    columns: usize,
    most: u64,
    bound: f64,
    /// Stop request; HiGHS accepts it only in some callbacks.
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
    // SAFETY: `data` is the context of `solve`, which is not accessed otherwise while HiGHS runs.
    let context = unsafe { &mut *data.cast::<Context<'_, '_>>() };
    // SAFETY: HiGHS keeps it valid for the duration of the call.
    let out = unsafe { &*out };
    let is_complete = usize::try_from(out.mip_solution_size).is_ok_and(|size| size == context.columns);
    if kind == kHighsCallbackMipImprovingSolution && is_complete && !out.mip_solution.is_null() {
        // SAFETY: HiGHS has set the size: a value for each column.
        let values = unsafe { std::slice::from_raw_parts(out.mip_solution, context.columns) };
        context.stop |= (context.observer)(Event::Solution(values)).is_break();
    }
    if out.mip_dual_bound.is_finite() && out.mip_dual_bound > context.bound {
        context.bound = out.mip_dual_bound;
        context.stop |= (context.observer)(Event::Bound(context.bound)).is_break();
    }
    if kind == kHighsCallbackCallbackMipUserSolution && !into.is_null() {
        let mut solution = None;
        context.stop |= (context.observer)(Event::SolutionRequest(&mut solution)).is_break();
        // SAFETY: HiGHS keeps it valid for the duration of the call.
        let into = unsafe { &mut *into };
        let fits = usize::try_from(into.user_solution_size).is_ok_and(|size| size == context.columns);
        if let Some(values) = solution.filter(|values| fits && values.len() == context.columns) {
            // SAFETY: HiGHS has set the size: space for a value for each column.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), into.user_solution, values.len()) };
            into.user_has_solution = 1;
        }
    }
    context.stop |= u64::try_from(out.mip_total_lp_iterations).is_ok_and(|spent| spent >= context.most);
    if context.stop && kind == kHighsCallbackMipInterrupt && !into.is_null() {
        // SAFETY: HiGHS keeps it valid for the duration of the call.
        unsafe { (*into).user_interrupt = 1 };
    }
}
