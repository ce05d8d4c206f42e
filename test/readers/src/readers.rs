//! The readers. Each returns whether it accepts the bytes; an error is a violated property, hence a bug.

use crate::mutate::Kind;
use divi_cost::{
    Model, Profile, System, device, fit,
    pytorch::{NetworkTimes, Operators, transfers},
};
use divi_npy::{npy, npz};
use divi_papers::convert::{Conversion, convert};
use divi_planner::{Objective, Plan, Problem, verify};
use divi_runtime::bundle::{Bundle, Source};
use std::{path::Path, sync::LazyLock};

/// A reader of a format.
pub struct Reader {
    /// Name of the format and of its corpus.
    pub name: &'static str,
    /// Structure that mutations preserve.
    pub kind: Kind,
    /// Relative share of mutants.
    pub weight: u64,
    /// Reads a file; returns true if it is accepted.
    pub read: fn(&[u8]) -> Result<bool, String>,
}

/// All readers.
pub const READERS: &[Reader] = &[
    #[cfg(feature = "import")]
    Reader { name: "onnx", kind: Kind::Protobuf, weight: 4, read: model::read },
    Reader { name: "bundle", kind: Kind::Json, weight: 3, read: bundle },
    Reader { name: "npy", kind: Kind::Binary, weight: 2, read: read_npy },
    Reader { name: "npz", kind: Kind::Binary, weight: 2, read: read_npz },
    Reader { name: "system", kind: Kind::Lines, weight: 2, read: system },
    Reader { name: "profile", kind: Kind::Json, weight: 2, read: profile },
    Reader { name: "plan", kind: Kind::Json, weight: 2, read: plan },
    Reader { name: "problem", kind: Kind::Json, weight: 3, read: problem },
];

/// Returns the reader with a name.
pub fn find(name: &str) -> Option<&'static Reader> {
    READERS.iter().find(|reader| reader.name == name)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Reads a bundle's description, assuming a matching hash, and evaluates its computed constants.
fn bundle(bytes: &[u8]) -> Result<bool, String> {
    /// Larger constants are skipped: they only take longer.
    const MOST_BYTES: u64 = 1 << 16;
    let Ok(bundle) = Bundle::from_text(bytes) else { return Ok(false) };
    if bundle.validate().is_err() {
        return Ok(false);
    }
    let _ = bundle.weight_files();
    let _ = bundle.lanes();
    bundle.steps.iter().for_each(|step| drop(bundle.step_name(step)));
    for constant in bundle.constants.iter().filter(|constant| constant.bytes <= MOST_BYTES) {
        // Weight files are not read: this folder does not exist.
        if let Source::Evaluated(expression) = &constant.source
            && let Ok(made) = expression.evaluate(Path::new("/nonexistent"))
            && made.len() as u64 != constant.bytes
        {
            return Err(format!("a constant of {} bytes evaluates to {} bytes", constant.bytes, made.len()));
        }
    }
    Ok(true)
}

fn read_npy(bytes: &[u8]) -> Result<bool, String> {
    let Ok(tensor) = npy::read(bytes) else { return Ok(false) };
    let again = npy::read(&npy::write(tensor.view()));
    again.map(|_| true).map_err(|error| format!("does not round-trip: {error}"))
}

fn read_npz(bytes: &[u8]) -> Result<bool, String> {
    let Ok(tensors) = npz::read(bytes) else { return Ok(false) };
    let views: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.view())).collect();
    // Names that are not UTF-8 become longer, possibly too long.
    let Ok(archive) = npz::write(&views) else { return Ok(true) };
    let again = npz::read(&archive);
    again.map(|_| true).map_err(|error| format!("does not round-trip: {error}"))
}

fn system(bytes: &[u8]) -> Result<bool, String> {
    let Some(text) = text(bytes) else { return Ok(false) };
    match System::parse("fuzz.toml", text) {
        Ok(_) => Ok(true),
        Err(error) if error.to_string().contains("fuzz.toml") => Ok(false),
        Err(error) => Err(format!("the error does not name the file: {error}")),
    }
}

/// Reads profiles, tables and cost models, which are distinguished by their contents.
fn profile(bytes: &[u8]) -> Result<bool, String> {
    let Some(text) = text(bytes) else { return Ok(false) };
    let mut is_accepted = Model::from_json(text).is_ok() || NetworkTimes::read(text).is_ok();
    if let Ok(links) = transfers::read(text) {
        is_accepted = true;
        links.iter().for_each(|link| drop(link.to_toml("cpu0", "gpu0")));
    }
    if let Ok(table) = Operators::read(text, device::CUDA) {
        is_accepted = true;
        table.profile();
    }
    if let Ok(profile) = Profile::from_json(text) {
        is_accepted = true;
        for entry in profile.entries() {
            let _ = fit::Sample::of(entry);
        }
        Profile::from_json(&profile.to_json()).map_err(|error| format!("does not round-trip: {error}"))?;
    }
    Ok(is_accepted)
}

/// Problems of the plans in the corpus.
static PLANNED: LazyLock<Vec<Problem>> = LazyLock::new(|| {
    let texts = [
        include_str!("../corpus/problem/queue.json"),
        include_str!("../corpus/problem/cold.json"),
        include_str!("../corpus/problem/pipeline.json"),
        include_str!("../corpus/problem/chain.json"),
    ];
    texts.iter().map(|text| Problem::read(text).expect("a test reads it")).collect()
});

/// Reads and verifies plans.
fn plan(bytes: &[u8]) -> Result<bool, String> {
    let Some(mut plan) = text(bytes).and_then(|text| Plan::read(text).ok()) else { return Ok(false) };
    Plan::read(&plan.write()).map_err(|error| format!("does not round-trip: {error}"))?;
    for problem in PLANNED.iter() {
        plan.problem = problem.hash();
        let _ = verify(problem, &plan);
    }
    Ok(true)
}

/// Reads problems and EfficientMIP graphs.
fn problem(bytes: &[u8]) -> Result<bool, String> {
    let Some(text) = text(bytes) else { return Ok(false) };
    let converted = convert(text, &Conversion { name: "fuzz".to_owned(), cpus: None, colocate: true });
    let Ok(problem) = Problem::read(text).or(converted) else { return Ok(false) };
    if problem.check_form().is_err() {
        return Ok(false);
    }
    Problem::read(&problem.write()).map_err(|error| format!("does not round-trip: {error}"))?;
    for objective in [Objective::Latency, Objective::Batch, Objective::Pipeline] {
        let _ = problem.check_for(objective);
    }
    Ok(true)
}

#[cfg(feature = "import")]
mod model {
    use divi_passes::import::{Options, Source, import};
    use melior::{Context, ir::operation::OperationLike};
    use std::cell::RefCell;

    /// Number of models per context: a context keeps the types and attributes of all its models.
    const MODELS_A_CONTEXT: usize = 500;

    thread_local! {
        static CONTEXT: RefCell<Option<(Context, usize)>> = const { RefCell::new(None) };
    }

    pub(super) fn read(bytes: &[u8]) -> Result<bool, String> {
        // After a panic the context may be inconsistent, so it is put back only after success.
        let taken = CONTEXT.with_borrow_mut(Option::take).filter(|(_, used)| *used < MODELS_A_CONTEXT);
        let (context, used) = taken.unwrap_or_else(|| (divi_passes::new_context(), 0));
        let outcome = import_into(&context, bytes);
        CONTEXT.set(Some((context, used + 1)));
        outcome
    }

    fn import_into(context: &Context, bytes: &[u8]) -> Result<bool, String> {
        let source = Source::from_memory("fuzz.onnx", bytes.to_vec().into());
        let handler = context.attach_diagnostic_handler(|_| true);
        let outcome = match import(context, &source, &Options::default()) {
            Ok((module, _)) => {
                // The verifier may reject an imported module, but must not crash.
                let _ = module.as_operation().verify();
                Ok(true)
            }
            Err(error) if error.to_string().contains("fuzz.onnx") => Ok(false),
            Err(error) => Err(format!("the error does not name the file: {error}")),
        };
        context.detach_diagnostic_handler(handler);
        outcome
    }
}
