//! `divi-verify-plan` on plans of random graphs: what planning and outlining make is accepted, and what is then broken is
//! found. `DIVI_SEED=7` tries others, `DIVI_GRAPHS=1000` more.

#[path = "verify_plan/graph.rs"]
mod graph;
#[path = "verify_plan/mutants.rs"]
mod mutants;

use divi_test::random::Random;
use graph::random_module;
use melior::{Context, pass::PassManager, utility::parse_pass_pipeline};
use std::sync::OnceLock;

/// A way to plan a graph.
const WAYS: [&str; 11] = [
    "algorithm=heft",
    "objective=batch inputs=4 algorithm=heft",
    "objective=pipeline algorithm=slicegraph iterations=20",
    "objective=pipeline pipeline-cost=overlap algorithm=slicegraph iterations=20",
    "objective=pipeline allow-shared-devices k=4 algorithm=slicegraph iterations=20",
    "algorithm=heft contention=exclusive",
    "algorithm=heft contention=shared",
    "objective=batch inputs=4 algorithm=heft contention=exclusive",
    "objective=pipeline algorithm=slicegraph iterations=20 contention=shared",
    "algorithm=heft contention=exclusive cold",
    "algorithm=sortinghat iterations=20 contention=shared resident=0.5",
];
/// Random graphs, where `DIVI_GRAPHS` does not say how many.
const GRAPHS: u64 = 11;
/// Ways whose parameters come with the input, so that stages cannot be merged.
const COLD: [&str; 2] = ["cold", "resident"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

/// Runs passes on a module's text; returns the new text, or an error with what was said. Warnings come with the text.
fn run(context: &Context, text: &str, passes: &str) -> Result<(String, String), String> {
    let mut module = divi_test::parse(context, text.as_bytes())?;
    let manager = PassManager::new(context);
    parse_pass_pipeline(manager.as_operation_pass_manager(), &format!("builtin.module({passes})"))
        .expect("the passes are there");
    let (outcome, said) = divi_test::with_diagnostics(context, || manager.run(&mut module));
    match outcome {
        Ok(()) => Ok((divi_test::print(&module), said)),
        Err(_) => Err(said),
    }
}

/// A plan of a random graph.
struct Planned {
    way: &'static str,
    text: String,
    /// Continues behind the graph.
    random: Random,
}

/// Returns plans of random graphs, one way after the other. All tests look at the same ones: planning takes most of the time.
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
    let way = WAYS[seed as usize % WAYS.len()];
    match run(&context, &text, &format!("divi-partition{{{way}}}")) {
        Ok((text, _)) => Some(Planned { way, text, random }),
        // Devices may be too small for a random graph, and stages too few for its constraints.
        Err(said) => {
            let is_known = ["short", "no plan", "no pipeline"].iter().any(|reason| said.contains(reason));
            assert!(is_known, "seed {seed}, {way}: {said}\n{text}");
            None
        }
    }
}

/// Calls `check` with plans of random graphs.
fn for_each_plan(mut check: impl FnMut(&Context, &mut Random, &str, &str)) {
    for Planned { way, text, random } in plans() {
        check(&divi_test::context(), &mut random.clone(), way, text);
    }
}

#[test]
fn what_is_planned_and_outlined_is_accepted() {
    let mut plans = 0;
    for_each_plan(|context, random, way, planned| {
        let must = |text: &str, passes: &str| {
            run(context, text, passes).unwrap_or_else(|said| panic!("{way}, {passes}: {said}\n{text}")).0
        };
        must(planned, "divi-verify-plan");
        let most = if COLD.iter().any(|word| way.contains(word)) { 2 } else { 3 };
        let merged = random.below(most);
        let outlined = must(planned, &format!("divi-outline{{min-stage-ops={merged}}}"));
        assert_eq!(must(&outlined, "divi-verify-plan"), outlined, "a verifier changes nothing");
        if !way.contains("batch") {
            assert!(outlined.contains("model = \""), "stages say what they are to compute");
            let inlined = must(&outlined, "divi-inline-stages");
            must(&inlined, "divi-verify-plan");
            must(&inlined, "divi-outline,divi-verify-plan");
        }
        plans += 1;
    });
    assert!(plans >= 7, "most graphs have plans, not {plans}");
}

#[test]
fn what_is_broken_is_found() {
    let mut tried = std::collections::BTreeMap::<&str, usize>::new();
    for_each_plan(|context, random, way, planned| {
        let outlined = match run(context, planned, "divi-outline") {
            Ok((outlined, _)) => outlined,
            Err(said) => panic!("{way}: {said}\n{planned}"),
        };
        for (name, broken) in mutants::of(random, planned, &outlined) {
            let found = run(context, &broken, "divi-verify-plan");
            assert!(found.is_err(), "{way}: {name} is not found in\n{broken}");
            *tried.entry(name).or_default() += 1;
        }
    });
    for name in mutants::NAMES {
        assert!(tried.get(name).is_some_and(|&count| count > 1), "{name} was hardly tried: {tried:?}");
    }
}

#[test]
fn what_is_edited_is_refused_or_goes_on() {
    let (mut refused, mut accepted) = (0, 0);
    for_each_plan(|context, random, way, planned| {
        if way.contains("batch") {
            return;
        }
        let Some(edited) = mutants::moved(random, planned) else { return };
        match run(context, &edited, "divi-verify-plan") {
            Ok((_, said)) => {
                assert!(said.contains("the placement was edited since it was planned"), "{way}: {said}\n{edited}");
                let outlined = run(context, &edited, "divi-outline,divi-verify-plan");
                assert!(outlined.is_ok(), "{way}: {}\n{edited}", outlined.unwrap_err());
                accepted += 1;
            }
            Err(said) => {
                assert!(!said.contains("bug"), "{way}: {said}\n{edited}");
                refused += 1;
            }
        }
    });
    assert!(refused > 1 && accepted > 1, "{refused} refused, {accepted} accepted");
}
