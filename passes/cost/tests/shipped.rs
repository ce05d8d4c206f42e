//! Tests that the models that are compiled in are fits of the tables in `test/profiles`.

use divi_cost::device::{CPU, CUDA};
use divi_cost::fit::{Sample, Target, fit};
use divi_cost::model::Launch;
use divi_cost::pytorch::{NetworkTimes, Operators};
use divi_cost::{Task, validate::ProfiledNetwork};
use std::{fs, path::Path};

fn table(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_model_of_cuda_devices_is_fresh() {
    let table_of_operators = Operators::read(&table("h200_xeon16_operators.json"), CUDA).expect("the table is right");
    let entries = table_of_operators.models.iter().flat_map(|model| &model.entries);
    let samples: Vec<Sample> = entries.flat_map(|entry| Sample::of(entry).expect("its work is known")).collect();
    let models = NetworkTimes::read(&table("h200_pytorch_models.json")).expect("the table is right");
    let replays = table_of_operators.replays(&models).expect("their work is known");
    let (device, runtime) = (&table_of_operators.device, &table_of_operators.runtime);
    let fitted = fit(&Target::of(CUDA), device, runtime, &samples, &replays).expect("there are samples");
    assert!(
        fitted.to_json() == CUDA.model().to_json(),
        "passes/cost/models/cuda.json is stale: divi-profile fit test/profiles/h200_xeon16_operators.json --device=cuda \
         --graphs=test/profiles/h200_pytorch_models.json -o passes/cost/models/cuda.json"
    );
}

#[test]
fn the_model_of_cpus_is_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles");
    let networks = ProfiledNetwork::read_all(&folder.join("cpu-1"), &folder.join("cpu-2")).expect("they are right");
    let samples: Vec<Sample> = networks.iter().flat_map(|network| Sample::of_profile(&network.single)).collect();
    let (device, runtime) = (&networks[0].single.device, &networks[0].single.runtime);
    let fitted = fit(&Target::of(CPU), device, runtime, &samples, &[]).expect("there are samples");
    assert!(
        fitted.to_json() == CPU.model().to_json(),
        "passes/cost/models/cpu.json is stale: divi-profile fit test/profiles/cpu-1/*.json -o passes/cost/models/cpu.json"
    );
}

/// Tasks that cannot be counted would be left out of fits and of their validation.
#[test]
fn the_work_of_measured_tasks_is_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/profiles");
    let networks = ProfiledNetwork::read_all(&folder.join("cpu-1"), &folder.join("cpu-2")).expect("they are right");
    for entry in networks.iter().flat_map(|network| [&network.single, &network.several]).flat_map(|it| it.entries()) {
        Sample::of(entry).unwrap_or_else(|error| panic!("{entry:?}: {error}"));
    }
}

/// The median error on whole networks in captured graphs, to which the captured launch was fitted, must be small.
#[test]
fn captured_graphs_are_predicted() {
    let operators = Operators::read(&table("h200_xeon16_operators.json"), CUDA).expect("the table is right");
    let models = NetworkTimes::read(&table("h200_pytorch_models.json")).expect("the table is right");
    let (model, replays) = (CUDA.model(), operators.replays(&models).expect("their work is known"));
    assert_eq!(replays.len(), 18, "nine models at two batch sizes");
    let ratios = replays.iter().map(|replay| {
        let time =
            |(task, count): &(Task, u64)| *count as f64 * model.time(&model.rates, task, Launch::Captured).micros.0;
        replay.tasks.iter().map(time).sum::<f64>() / replay.micros.0
    });
    let mut errors: Vec<f64> = ratios.map(|ratio| (ratio - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] < 0.15, "{errors:?}");
}
