//! Pages of file formats (`docs/formats/`): the readers accept the examples, and the pages mention all that the readers know.
//!
//! The keys of a reader are learned from its error messages: an unknown key or word is put into each place of valid files, and the
//! message lists those that were expected. `choices.md` is tested beside its reader, in `runtime/src/drivers/cuda/tests/choices.rs`.

use super::documents::Document;
use divi_cost::{Model, Profile, System};
use divi_dialect::Operation;
use divi_passes::{
    canonicalize::canonicalize,
    cost::annotate_cost,
    export::{self, write_stages},
    fuse::{self, fuse},
    outline::outline,
    partition::{self, partition},
};
use divi_planner::{Objective, Plan, Problem, verify};
use divi_readers::corpus;
use divi_runtime::{
    bundle::{Action, Bundle, DESCRIPTION, Step},
    drivers::cuda::launch::Launch,
    prepare::Expression,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Neither a key nor a word of any format, and no misspelling of one.
const UNKNOWN: &str = "not-in-any-format";

type Read = fn(&str) -> Result<(), String>;

fn page(name: &str) -> Document {
    Document::open(format!("docs/formats/{name}.md"))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Returns the names that a message lists as those that are known.
fn listed(message: &str) -> Vec<String> {
    const MARKERS: &[&str] = &["must be one of ", "(use ", "there are ", "expected one of ", "expected "];
    let is_about_names = ["unknown ", "no such ", "must be one of "].iter().any(|words| message.contains(words));
    let list = MARKERS.iter().find_map(|marker| message.rsplit_once(marker)).filter(|_| is_about_names);
    let Some(rest) = list.map(|(_, rest)| rest.split(" at line ").next().unwrap_or(rest)) else { return vec![] };
    let names: Vec<&str> = match rest.contains('`') {
        true => rest.split('`').skip(1).step_by(2).collect(),
        false => rest.trim_end_matches(')').split(", ").collect(),
    };
    // A list may be abridged.
    names.into_iter().filter(|name| *name != "…").map(str::to_owned).collect()
}

/// Calls `visit` with each variant of a value in which one key or string is unknown. `value` is where the variant differs.
fn each_mutant(root: &Value, pointer: &str, visit: &mut dyn FnMut(&Value)) {
    let mut change = |change: &dyn Fn(&mut Value)| {
        let mut mutant = root.clone();
        change(mutant.pointer_mut(pointer).expect("it is a place of the value"));
        visit(&mutant);
    };
    match root.pointer(pointer).expect("it is a place of the value") {
        Value::Object(fields) => {
            change(&|value| value[UNKNOWN] = Value::from(1));
            if fields.len() == 1 {
                // A variant of an enum.
                change(&|value| {
                    let only = value.as_object_mut().and_then(|fields| fields.values().next().cloned());
                    *value = Value::Object([(UNKNOWN.to_owned(), only.unwrap_or_default())].into_iter().collect());
                });
            }
            for key in fields.keys() {
                let key = key.replace('~', "~0").replace('/', "~1");
                each_mutant(root, &format!("{pointer}/{key}"), visit);
            }
        }
        Value::Array(items) => {
            (0..items.len()).for_each(|index| each_mutant(root, &format!("{pointer}/{index}"), visit));
        }
        Value::String(_) => change(&|value| *value = Value::from(UNKNOWN)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.keys().cloned());
            fields.values().for_each(|field| keys(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// Checks that a page mentions names in code spans.
fn check_mentions(page: &Document, names: &BTreeSet<String>, least: usize) {
    println!("{}: {} names", page.path.display(), names.len());
    assert!(names.len() >= least, "{}: fewer than {least} names: {names:?}", page.path.display());
    let is_part = |c: char| c.is_alphanumeric() || "_.-/".contains(c);
    let spans = page.spans();
    let mentioned: BTreeSet<&str> = spans.iter().flat_map(|(.., span)| span.split(|c| !is_part(c))).collect();
    let missing: Vec<_> = names.iter().filter(|name| !mentioned.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{} does not mention {missing:?}", page.path.display());
}

/// Reads the JSON examples of a page, and learns what else the reader knows from them and from the files of a corpus.
fn check_json(name: &str, corpus: &str, read: Read, least: usize) -> Vec<String> {
    let page = page(name);
    let examples = page.blocks("json");
    assert!(!examples.is_empty(), "{name} has no example");
    for example in &examples {
        read(example).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let files = corpus::files(corpus).into_iter().filter_map(|(_, bytes)| String::from_utf8(bytes).ok());
    let texts: Vec<String> = examples.iter().cloned().chain(files.filter(|text| read(text).is_ok())).collect();
    let mut names = BTreeSet::new();
    texts.iter().for_each(|text| learn(text, read, &mut names));
    check_mentions(&page, &names, least);
    examples
}

/// Adds the names that a reader lists for mutants of a text that it accepts.
fn learn(text: &str, read: Read, names: &mut BTreeSet<String>) {
    read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let value: Value = serde_json::from_str(text).expect("the reader accepts it");
    each_mutant(&value, "", &mut |mutant| {
        names.extend(read(&mutant.to_string()).err().iter().flat_map(|message| listed(message)));
    });
}

fn read_problem(text: &str) -> Result<(), String> {
    let problem = Problem::read(text).map_err(|error| error.to_string())?;
    problem.check_form().map_err(|error| error.to_string())
}

fn read_plan(text: &str) -> Result<(), String> {
    Plan::read(text).map(|_| ()).map_err(|error| error.to_string())
}

fn read_profile(text: &str) -> Result<(), String> {
    Profile::from_json(text).map(|_| ()).map_err(|error| error.to_string())
}

fn read_model(text: &str) -> Result<(), String> {
    Model::from_json(text).map(|_| ()).map_err(|error| error.to_string())
}

/// Newer versions are refused with the messages of the table.
#[test]
fn versions_are_documented() {
    let index = page("index");
    let readers: [(&str, &str, Read); 4] = [
        ("problem", "problem", read_problem),
        ("plan", "plan", read_plan),
        ("profile", "profile", read_profile),
        ("cost model", "cost-model", read_model),
    ];
    for (format, name, read) in readers {
        let example = &page(name).blocks("json")[0];
        let newer = example.replacen("/1\"", "/9\"", 1).replacen("/2\"", "/9\"", 1);
        let message = read(&newer).expect_err("the version is newer");
        let rows = index.text.lines().filter_map(|line| line.strip_prefix(&format!("| {format} | ")));
        let documented = rows.filter_map(|row| row.rsplit('`').nth(1)?.strip_suffix('…')).next();
        let documented = documented.unwrap_or_else(|| panic!("the table has no message for {format}"));
        assert!(message.contains(documented), "{format}: '{message}' is documented as '{documented}'");
    }
    let folder = folder("newer");
    let newer = page("bundle").blocks("json")[0].replacen("divi-bundle/3", "divi-bundle/9", 1);
    fs::write(folder.join(DESCRIPTION), newer).unwrap();
    let message = Bundle::read(&folder).expect_err("the version is newer").to_string();
    assert!(message.contains("divi-bundle/9") && message.contains("divi-bundle/3"), "{message}");
}

#[test]
fn problems_and_plans_are_documented() {
    let problems = check_json("problem", "problem", read_problem, 48);
    let plans = check_json("plan", "plan", read_plan, 50);
    assert_eq!(problems.len(), plans.len());
    for (of_problem, of_plan) in problems.iter().zip(&plans) {
        let (problem, plan) = (Problem::read(of_problem).unwrap(), Plan::read(of_plan).unwrap());
        let value = verify(&problem, &plan).unwrap_or_else(|error| panic!("plan: {error}"));
        assert_eq!(value, plan.value);
        assert_eq!((&problem.write(), &plan.write()), (of_problem, of_plan), "as the tools write them");
    }
}

#[test]
fn profiles_and_cost_models_are_documented() {
    check_json("profile", "profile", read_profile, 13);
    check_json("cost-model", "profile", read_model, 55);
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<(), String> {
    serde_json::from_str::<T>(text).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn bundles_are_documented() {
    let read: Read = |text| Bundle::from_text(text.as_bytes())?.validate();
    let examples = check_json("bundle", "bundle", read, 120);
    // Unknown keys of steps are ignored, so no message lists those that are known.
    let actions = [
        Action::Launch { stage: 0, inputs: vec![0], outputs: vec![1] },
        Action::Transfer { input: 0, output: 1 },
        Action::Slice { input: 0, output: 1, positions: vec![0], of: 2, axis: 0, outer: 1 },
        Action::Gather { inputs: vec![0], output: 1, of: vec![2], axis: 0, outer: 1 },
    ];
    let step = |action: Action| Step { action, start_us: Some(0.0), duration_us: Some(1.0), inputs: vec![0, 1] };
    let steps: Vec<Step> = actions.into_iter().map(step).collect();
    let mut names = BTreeSet::new();
    keys(&serde_json::to_value(steps).unwrap(), &mut names);
    check_mentions(&page("bundle"), &names, 15);
    // Parts that no file of the corpus has.
    let mut names = BTreeSet::new();
    let expression: Read = |text| parse::<Expression>(text);
    learn(include_str!("formats/expressions.json"), expression, &mut names);
    let launch: Read = |text| parse::<Launch>(text);
    let choices: Value = serde_json::from_str(&page("choices").blocks("json")[0]).unwrap();
    for choice in choices["gpus"][0]["calls"].as_array().unwrap() {
        let then = json!([{"kernel": "k", "blocks": 1, "threads": 32, "extent": 1}]);
        let library = json!({"way": choice["call"]["way"], "then": then});
        let payload = json!({"blocks": 1, "threads": 32, "can_fail": true, "then": then, "library": library});
        learn(&payload.to_string(), launch, &mut names);
    }
    check_mentions(&page("bundle"), &names, 65);
    // With its hash.
    let folder = folder("bundle");
    fs::write(folder.join(DESCRIPTION), &examples[0]).unwrap();
    Bundle::read(&folder).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn systems_are_documented() {
    let page = page("system");
    let of_pages = [page.blocks("toml"), self::page("index").blocks("toml")].concat();
    assert!(of_pages.len() >= 3);
    let files = corpus::files("system").into_iter().filter_map(|(_, bytes)| String::from_utf8(bytes).ok());
    let mut names = BTreeSet::new();
    for text in of_pages.iter().cloned().chain(files) {
        System::parse("system.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut learn = |mutant: String| {
            let message =
                System::parse("system.toml", &mutant).err().map(|error| error.to_string()).unwrap_or_default();
            names.extend(message.lines().flat_map(listed));
        };
        learn(format!("{UNKNOWN} = 1\n{text}"));
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let with = |line: String| [&lines[..index], &[&line[..]], &lines[index + 1..]].concat().join("\n");
            if line.starts_with('[') {
                learn(with(format!("{line}\n{UNKNOWN} = 1")));
            }
            if let Some((before, fields)) = line.split_once('{') {
                learn(with(format!("{before}{{ {UNKNOWN} = 1, {fields}")));
            }
            if let Some((key, _)) = line.split_once(" = \"") {
                // A word, or the unit of a quantity.
                learn(with(format!("{key} = \"{UNKNOWN}\"")));
                learn(with(format!("{key} = \"1 {UNKNOWN}\"")));
            }
        }
    }
    check_mentions(&page, &names, 70);
}

/// Plans the running example, with options of the caller's, up to stages.
fn plan(options: partition::Options, stages: &Path) {
    let index = page("index");
    let folder = stages.parent().expect("the folder is in one of ours");
    let system = folder.join("system.toml");
    fs::write(&system, &index.blocks("toml")[0]).expect("the folder is writable");
    let context = divi_test::context();
    let module = divi_test::parse(&context, index.blocks("mlir")[0].as_bytes()).expect("the example is valid");
    let raw = Operation::from(&module);
    let (outcome, messages) = divi_test::with_diagnostics(&context, || {
        canonicalize(raw);
        fuse(raw, &fuse::Options::default());
        annotate_cost(raw, &system.to_string_lossy(), None)?;
        partition(raw, &options, None)?;
        outline(raw, 1, None)?;
        let options = export::Options { ir_folder: folder.to_owned(), random_seed: None, referenced: None };
        write_stages(raw, stages, &options, &[])
    });
    outcome.unwrap_or_else(|_| panic!("{messages}"));
}

/// Removes start times, which depend on the cost model.
fn without_starts(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("stages are JSON");
    for step in value["steps"].as_array_mut().into_iter().flatten() {
        step.as_object_mut().and_then(|step| step.shift_remove("start"));
    }
    value
}

/// The example is what is written for the running example, and the page has the keys of all steps.
#[test]
fn stages_are_documented() {
    let page = page("stages");
    let [example] = &page.blocks("json")[..] else { panic!("one example") };
    let pins = ["classify=cpu0", "softmax=cpu1"].map(str::to_owned).to_vec();
    let options = partition::Options { objective: Some(Objective::Pipeline), pins, ..Default::default() };
    let folder = folder("stages");
    plan(options, &folder.join("written"));
    let written = fs::read_to_string(folder.join("written/stages.json")).unwrap();
    assert_eq!(without_starts(example), without_starts(&written));

    let mut names = BTreeSet::new();
    keys(&serde_json::from_str(example).unwrap(), &mut names);
    let context = divi_test::context();
    for (number, text) in
        [include_str!("../stages/diamond.mlir"), include_str!("../stages/queue.mlir")].iter().enumerate()
    {
        let module = divi_test::parse(&context, text.as_bytes()).unwrap();
        let written = folder.join(number.to_string());
        let options = export::Options { ir_folder: divi_test::models(), random_seed: Some(1), referenced: None };
        let (outcome, messages) =
            divi_test::with_diagnostics(&context, || write_stages(Operation::from(&module), &written, &options, &[]));
        outcome.unwrap_or_else(|_| panic!("{messages}"));
        let text = fs::read_to_string(written.join("stages.json")).unwrap();
        keys(&serde_json::from_str(&text).unwrap(), &mut names);
    }
    check_mentions(&page, &names, 25);
}

/// The example has all keys that the reader knows.
#[test]
fn placements_are_documented() {
    let page = page("placement");
    let [example] = &page.blocks("json")[..] else { panic!("one example") };
    let folder = folder("placement");
    let file = folder.join("placement.json");
    fs::write(&file, example).unwrap();
    plan(partition::Options { placement: Some(file), ..Default::default() }, &folder.join("stages"));
    let mut names = BTreeSet::new();
    keys(&serde_json::from_str(example).unwrap(), &mut names);
    check_mentions(&page, &names, 4);
}
