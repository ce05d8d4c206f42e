//! `divi-verify-plan` on plans of random graphs: results of planning and outlining are accepted, and errors introduced
//! afterwards are found. `DIVI_SEED=7` selects other graphs, `DIVI_GRAPHS=1000` more.

#[path = "verify_plan/graph.rs"]
mod graph;
#[path = "verify_plan/mutants.rs"]
mod mutants;

use divi_test::random::Random;
use graph::random_module;
use melior::{Context, pass::PassManager, utility::parse_pass_pipeline};
use std::sync::OnceLock;

/// Options of `divi-partition`.
const OPTIONS: [&str; 15] = [
    "algorithm=heft",
    "objective=batch inputs=4 algorithm=heft",
    "objective=batch inputs=4 launches=many iterations=50",
    "objective=pipeline algorithm=slicegraph iterations=20",
    "objective=pipeline pipeline-cost=overlap algorithm=slicegraph iterations=20",
    "objective=pipeline allow-shared-devices k=4 algorithm=slicegraph iterations=20",
    "algorithm=heft contention=exclusive",
    "algorithm=heft contention=shared",
    "objective=batch inputs=4 algorithm=heft contention=exclusive",
    "objective=batch inputs=5 launches=many iterations=50 contention=exclusive",
    "objective=pipeline algorithm=slicegraph iterations=20 contention=shared",
    "algorithm=heft contention=exclusive cold",
    "algorithm=sortinghat iterations=20 contention=shared resident=0.5",
    "objective=pipeline max-batch=4 allow-shared-devices iterations=20 min-gain=0",
    "objective=pipeline max-batch=2 replicas=2 pipeline-cost=overlap iterations=20 min-gain=0",
];
/// Default number of random graphs; overridden by `DIVI_GRAPHS`.
const GRAPHS: u64 = 15;
/// Options with which parameters arrive with the input, so that stages cannot be merged.
const COLD: [&str; 2] = ["cold", "resident"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

/// Runs passes on a module's text; returns the new text and the warnings, or an error with the diagnostics.
fn run(context: &Context, text: &str, passes: &str) -> Result<(String, String), String> {
    let mut module = divi_test::parse(context, text.as_bytes())?;
    let manager = PassManager::new(context);
    parse_pass_pipeline(manager.as_operation_pass_manager(), &format!("builtin.module({passes})"))
        .expect("the passes are registered");
    let (outcome, messages) = divi_test::with_diagnostics(context, || manager.run(&mut module));
    match outcome {
        Ok(()) => Ok((divi_test::print(&module), messages)),
        Err(_) => Err(messages),
    }
}

/// A plan of a random graph.
struct Planned {
    options: &'static str,
    text: String,
    /// Generator after the graph was drawn.
    random: Random,
}

/// Returns plans of random graphs, with all options in turn. All tests share them, since planning takes most of the time.
fn plans() -> &'static [Planned] {
    static PLANS: OnceLock<Vec<Planned>> = OnceLock::new();
    PLANS.get_or_init(|| {
        divi_passes::register();
        let first = number("DIVI_SEED", 1) << 32;
        (first..first + number("DIVI_GRAPHS", GRAPHS)).filter_map(plan).collect()
    })
}

fn plan(seed: u64) -> Option<Planned> {
    let context = divi_test::context();
    let mut random = Random(seed);
    let size = [5, 30, 30, 200][random.below(4)];
    let text = random_module(&mut random, size);
    let options = OPTIONS[seed as usize % OPTIONS.len()];
    match run(&context, &text, &format!("divi-partition{{{options}}}")) {
        Ok((text, _)) => Some(Planned { options, text, random }),
        // A device may be too small for a random graph, and there may be too few stages for its constraints.
        Err(messages) => {
            let is_known = ["short", "no plan", "no pipeline"].iter().any(|reason| messages.contains(reason));
            assert!(is_known, "seed {seed}, {options}: {messages}\n{text}");
            None
        }
    }
}

/// Calls `check` with plans of random graphs.
fn for_each_plan(mut check: impl FnMut(&Context, &mut Random, &str, &str)) {
    for Planned { options, text, random } in plans() {
        check(&divi_test::context(), &mut random.clone(), options, text);
    }
}

#[test]
fn planned_and_outlined_modules_are_accepted() {
    let mut plans = 0;
    for_each_plan(|context, random, options, planned| {
        let must = |text: &str, passes: &str| {
            run(context, text, passes).unwrap_or_else(|messages| panic!("{options}, {passes}: {messages}\n{text}")).0
        };
        must(planned, "divi-verify-plan");
        let most = if COLD.iter().any(|word| options.contains(word)) { 2 } else { 3 };
        let merged = random.below(most);
        let outlined = must(planned, &format!("divi-outline{{min-stage-ops={merged}}}"));
        assert_eq!(must(&outlined, "divi-verify-plan"), outlined, "the verifier changes the module");
        if !options.contains("batch") {
            assert!(outlined.contains("model = \""), "stages have no reference model");
            let inlined = must(&outlined, "divi-inline-stages");
            must(&inlined, "divi-verify-plan");
            must(&inlined, "divi-outline,divi-verify-plan");
        }
        plans += 1;
    });
    assert!(plans >= 7, "only {plans} graphs have plans");
}

#[test]
fn mutants_are_rejected() {
    let mut tried = std::collections::BTreeMap::<&str, usize>::new();
    for_each_plan(|context, random, options, planned| {
        let outlined = match run(context, planned, "divi-outline") {
            Ok((outlined, _)) => outlined,
            Err(messages) => panic!("{options}: {messages}\n{planned}"),
        };
        for (name, broken) in mutants::of(random, planned, &outlined) {
            let found = run(context, &broken, "divi-verify-plan");
            assert!(found.is_err(), "{options}: undetected mutation '{name}' in\n{broken}");
            *tried.entry(name).or_default() += 1;
        }
    });
    for name in mutants::NAMES {
        assert!(tried.get(name).is_some_and(|&count| count > 1), "'{name}' was tried too rarely: {tried:?}");
    }
}

#[test]
fn edited_placements_are_rejected_or_accepted_with_a_warning() {
    let (mut refused, mut accepted) = (0, 0);
    for_each_plan(|context, random, options, planned| {
        if options.contains("batch") {
            return;
        }
        let Some(edited) = mutants::moved(random, planned) else { return };
        match run(context, &edited, "divi-verify-plan") {
            Ok((_, messages)) => {
                assert!(
                    messages.contains("the placement was edited after planning"),
                    "{options}: {messages}\n{edited}"
                );
                let outlined = run(context, &edited, "divi-outline,divi-verify-plan");
                assert!(outlined.is_ok(), "{options}: {}\n{edited}", outlined.unwrap_err());
                accepted += 1;
            }
            Err(messages) => {
                assert!(!messages.contains("bug"), "{options}: {messages}\n{edited}");
                refused += 1;
            }
        }
    });
    assert!(refused > 1 && accepted > 1, "{refused} rejected, {accepted} accepted");
}
