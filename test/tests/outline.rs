//! Stages compute the outputs of the model: random graphs on random devices, one input and queues, executed by launches.

use divi_dialect::{Operation, Value};
use divi_passes::{
    export::{self, write_stages},
    import::Options,
    outline::outline,
    rebatch::{Batch, Rebatched},
};
use divi_test::{operation_name, random::Random};
use melior::{
    Context,
    ir::{Attribute, Module},
};
use std::{fs, path::Path, process::Command};

const GRAPHS: usize = 400;
/// Minimum number of graphs compared; the others return values without a batch axis.
const MIN_SAME: usize = 390;
const DEVICES: [&str; 3] = ["cpu0", "gpu0", "gpu1"];
const QUEUED: usize = 4;
/// Maximum number of launches of a task on a device.
const LAUNCHES: usize = 2;

#[test]
fn stages_compute_the_outputs_of_the_model() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outline");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    python(&["prepare".as_ref(), root.as_os_str(), GRAPHS.to_string().as_ref()]);
    let (mut staged, mut cut) = (0, 0);
    for seed in 0..GRAPHS {
        let folder = root.join(format!("random_{seed}"));
        let mut random = Random(seed as u64);
        let (queued, launches) = [(1, 1), (QUEUED, 1), (QUEUED, LAUNCHES)][seed % 3];
        match plan_and_write(&folder, &mut random, queued, launches) {
            Ok(stages) => {
                staged += 1;
                cut += usize::from(stages.contains("\"slice\"") && stages.contains("\"gather\""));
            }
            Err(message) => {
                assert!(message.contains("mixes inputs and has a result without an axis"), "{seed}: {message}");
            }
        }
    }
    let output = python(&["compare".as_ref(), root.as_os_str()]);
    let wrong: Vec<_> = output.lines().filter(|line| !line.ends_with("\tsame")).collect();
    assert!(wrong.is_empty(), "{} of {staged} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(output.lines().count(), staged);
    assert!(staged >= MIN_SAME && cut > 200, "{staged} and {cut}");
}

fn python(arguments: &[&std::ffi::OsStr]) -> String {
    let script = divi_test::repository().join("test/tests/outline/compare.py");
    let output =
        Command::new(divi_test::python()).arg(&script).args(arguments).output().expect("tools/setup installs Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

/// Plans a graph at random, outlines it, and writes its stages; returns `stages.json`.
fn plan_and_write(folder: &Path, random: &mut Random, queued: usize, launches: usize) -> Result<String, String> {
    let context = divi_test::context();
    let imported = divi_test::import_file(&context, &folder.join("model.onnx"), Options::default());
    let (model, _) = imported.map_err(|error| error.to_string())?;
    let planned = plan(&context, &model, random, queued, launches);
    let module = divi_test::parse(&context, planned.as_bytes()).map_err(|error| format!("{error}\n{planned}"))?;
    divi_test::verify(&context, &module)?;
    let places = places(&module, queued)?;
    let min_stage_ops = random.below(4);
    let (outcome, messages) = divi_test::with_diagnostics(&context, || {
        let raw = Operation::from(&module);
        outline(raw, min_stage_ops, None)?;
        let options = export::Options { ir_folder: folder.to_owned(), ..export::Options::default() };
        write_stages(raw, &folder.join("stages"), &options, &[])
    });
    outcome.map_err(|_| messages)?;
    divi_test::verify(&context, &module)?;
    let places = format!("{{\"count\": {queued}, \"places\": [{}]}}\n", places.join(", "));
    fs::write(folder.join("places.json"), places).expect("the folder is writable");
    Ok(fs::read_to_string(folder.join("stages/stages.json")).expect("it was written"))
}

/// Returns the module as text, with devices, costs and a plan; starts are the positions of the tasks, not feasible times.
fn plan(context: &Context, model: &Module<'_>, random: &mut Random, queued: usize, launches: usize) -> String {
    // By input: its device and launch there.
    let mut split: Vec<usize> = vec![0; queued];
    for (start, task) in block(divi_test::function(model)).into_iter().enumerate() {
        if matches!(operation_name(task), "onnx.Constant" | "onnx.NoValue" | "func.return") {
            continue;
        }
        if random.below(3) == 0 {
            split.iter_mut().for_each(|on| *on = random.below(launches * DEVICES.len()));
        }
        let sizes: Vec<String> = (1..=queued).map(|size| format!("{size} = {}.0", 1 + size)).collect();
        let costs: Vec<String> = DEVICES.iter().map(|device| format!("@{device} = {{{}}}", sizes.join(", "))).collect();
        set(context, task, "divi.cost", &format!("#divi.cost<{}>", costs.join(", ")));
        if queued == 1 {
            set(context, task, "divi.device", &format!("@{}", DEVICES[split[0]]));
            set(context, task, "divi.start", &format!("{start}.0 : f64"));
            continue;
        }
        let batch = |on: usize| {
            let name = DEVICES[on / launches];
            let inputs: Vec<String> =
                (0..queued).filter(|input| split[*input] == on).map(|input| input.to_string()).collect();
            let inputs = Some(inputs.join(", ")).filter(|inputs| !inputs.is_empty())?;
            Some(format!("#divi.batch<@{name}, start = {start}.0, inputs = [{inputs}]>"))
        };
        let batches: Vec<String> = (0..launches * DEVICES.len()).filter_map(batch).collect();
        set(context, task, "divi.batches", &format!("[{}]", batches.join(", ")));
    }
    let text = divi_test::print(model);
    // Without devices, the module is invalid and therefore printed in generic form.
    let (_, body) = text.split_once("({\n").expect("a module has a body");
    let (body, _) = body.rsplit_once("\n})").expect("a body ends");
    let objective = if queued == 1 { "latency" } else { "batch" };
    let mut inputs = if queued == 1 { String::new() } else { format!(", inputs = {queued} : i64") };
    if launches > 1 {
        inputs += ", launches = \"many\"";
    }
    let header = format!(
        "module attributes {{divi.plan = {{objective = \"{objective}\", value = 1.0 : f64, bound = 0.0 : f64, gap = 1.0 : \
         f64, bound_by = \"nothing\", algorithm = \"test\", seed = 0 : i64{inputs}}}}} {{\n"
    );
    header + &machine(queued) + body + "\n}\n"
}

/// Returns the devices, fully connected.
fn machine(queued: usize) -> String {
    let sizes: Vec<String> = (1..=queued).map(|size| size.to_string()).collect();
    let mut text = String::new();
    for device in DEVICES {
        let kind = if device.starts_with("cpu") { "cpu" } else { "cuda" };
        text += &format!(
            "divi.device @{device} {{kind = \"{kind}\", memory = 1000000 : i64, batch_sizes = [{}]}}\n",
            sizes.join(", ")
        );
        for other in DEVICES.iter().filter(|other| **other != device) {
            text += &format!("divi.link @{device} -> @{other} {{bandwidth = 1.0e9 : f64, latency = 1.0e-6 : f64}}\n");
        }
    }
    text
}

/// Returns the batch layout of each output.
fn places(module: &Module<'_>, queued: usize) -> Result<Vec<String>, String> {
    let main = divi_test::function(module);
    let end = *block(main).last().expect("a function ends");
    let returned = end.operands();
    if queued == 1 {
        return Ok(vec!["\"same\"".to_owned(); returned.len()]);
    }
    let rebatched = Rebatched::of(main, queued as i64).map_err(|_| "the model cannot be rebatched".to_owned())?;
    let place = |value: Value<'_>| match rebatched.batch_of(value) {
        Batch::Same => "\"same\"".to_owned(),
        Batch::At(layout) => format!("\"at {} {}\"", layout.axis, layout.outer),
        Batch::Separate => "\"separate\"".to_owned(),
    };
    Ok(returned.into_iter().map(place).collect())
}

/// Returns the operations of a function.
fn block(function: Operation<'_>) -> Vec<Operation<'_>> {
    function.children()
}

fn set<'m>(context: &'m Context, operation: Operation<'m>, name: &str, text: &str) {
    let attribute = Attribute::parse(context, text).unwrap_or_else(|| panic!("{text} is not an attribute"));
    operation.set_attribute(name, attribute);
}
