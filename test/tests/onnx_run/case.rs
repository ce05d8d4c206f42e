//! Compilation, execution and comparison of one case.

use divi_onnx::{DType, Tensor};
use divi_passes::import::Options;
use divi_runtime::Runtime;
use divi_test::{
    compiled::{Settings, compile, run},
    node_cases::NodeCase,
    numbers,
};
use std::{fs, path::Path};

/// Result of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Reason of a failure.
    pub(crate) problem: Option<String>,
    /// Reason why it only compiles with constant parameters.
    pub(crate) constants: Option<String>,
    /// Difference beyond the strict tolerance, within that of ONNX's runner.
    pub(crate) loose: Option<String>,
}

/// Numbers of threads of the device.
const THREADS: [usize; 2] = [1, 2];

/// Compiles a case into a temporary folder, and runs it.
pub(crate) fn attempt(case: &NodeCase, folder: &Path, settings: &Settings) -> Outcome {
    let mut outcome = Outcome::default();
    let mut result = attempt_model(case, &case.model(), folder, settings);
    if let (Err(Problem::Compile(reason)), Some(model)) = (&result, case.parameter_model()) {
        let again = attempt_model(case, &model, folder, settings);
        if !matches!(again, Err(Problem::Compile(_))) {
            outcome.constants = Some(reason.clone());
            result = again;
        }
    }
    let _ = fs::remove_dir_all(folder);
    match result {
        Ok(loose) => outcome.loose = loose,
        Err(Problem::Compile(message) | Problem::Run(message)) => outcome.problem = Some(message),
    }
    outcome
}

enum Problem {
    Compile(String),
    Run(String),
}

/// Compiles and runs a model; returns the difference if the outputs only meet the loose tolerance.
fn attempt_model(case: &NodeCase, model: &Path, folder: &Path, settings: &Settings) -> Result<Option<String>, Problem> {
    let is_data = |ty: &Option<divi_onnx::TensorType>| ty.as_ref().is_some_and(|ty| ty.dtype != DType::String);
    if !case.inputs.iter().map(|(_, ty)| ty).chain(&case.outputs).all(is_data) {
        return Err(Problem::Compile("inputs or outputs are strings, sequences or optionals".into()));
    }
    // A new context for each model: contexts keep all types and attributes.
    let context = divi_test::context();
    let (module, _) = divi_test::import_file(&context, model, Options::default())
        .map_err(|error| Problem::Compile(without_place(&error.to_string(), case)))?;
    compile(&context, &module, folder, &settings.for_model(model))
        .map_err(|messages| Problem::Compile(without_place(&messages, case)))?;
    let mut loose = None;
    for threads in THREADS {
        let found = run_bundle(case, folder, threads)
            .map_err(|problem| Problem::Run(format!("with {threads} threads: {}", problem.replace('\n', " "))))?;
        loose = loose.or(found);
    }
    Ok(loose)
}

fn run_bundle(case: &NodeCase, folder: &Path, threads: usize) -> Result<Option<String>, String> {
    let options = divi_runtime::Options { threads: Some(threads), ..Default::default() };
    let runtime = Runtime::load(folder, options).map_err(|error| error.to_string())?;
    let of_name = |name: &str| case.inputs.iter().position(|(input, _)| input == name);
    let inputs: Option<Vec<Tensor>> = runtime.inputs().map(|(name, _)| Some(case.input(of_name(name)?))).collect();
    let inputs = inputs.ok_or("the bundle has an input that the case does not have")?;
    let outputs = run(&runtime, &inputs)?;
    if outputs.len() != case.outputs.len() {
        return Err(format!("there are {} outputs; expected {}", outputs.len(), case.outputs.len()));
    }
    let mut loose = None;
    for (i, output) in outputs.iter().enumerate() {
        let expected = case.expected(i);
        if let Err(message) = numbers::compare_computed(output, &expected) {
            numbers::compare_loosely(output, &expected).map_err(|message| format!("output {i}: {message}"))?;
            loose.get_or_insert_with(|| format!("output {i}: {message}"));
        }
    }
    Ok(loose)
}

/// Returns the last message, the error, without the file's name, so that equal reasons have equal texts.
fn without_place(messages: &str, case: &NodeCase) -> String {
    let line = messages.lines().next_back().unwrap_or("no message");
    let line = match line.find(&case.name) {
        Some(_) => line.split_once("error: ").map_or(line, |(_, rest)| rest),
        None => line,
    };
    line.trim().to_owned()
}
