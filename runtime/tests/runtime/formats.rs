//! Conversion of descriptions of older versions.

use crate::kit::{BundleBuilder, CODE, Folder, SIZE, call, full, numbers, options};
use divi_runtime::{
    Error, Runtime,
    bundle::{Buffer, Bundle, DESCRIPTION, Mode, Source},
    prepare::Expression,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs;

const CPU_2: &str = include_str!("formats/cpu_2.json");
const CPU_3: &str = include_str!("formats/cpu_3.json");
const GPU_1: &str = include_str!("formats/gpu_1.json");
const GPU_1_UPGRADED: &str = include_str!("formats/gpu_1_upgraded.json");
const GPU_2: &str = include_str!("formats/gpu_2.json");
const GPU_3: &str = include_str!("formats/gpu_3.json");

fn read(text: &str) -> Result<Bundle, Error> {
    let folder = Folder::new();
    fs::write(folder.join(DESCRIPTION), text).unwrap();
    Bundle::read(folder.path())
}

fn load_error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn version_2_is_read_as_version_3() {
    assert_eq!(read(CPU_2).unwrap(), read(CPU_3).unwrap());
    assert_eq!(read(GPU_2).unwrap(), read(GPU_3).unwrap());
    // An upgraded description is written in the current format.
    let folder = Folder::new();
    read(GPU_2).unwrap().write(folder.path()).unwrap();
    assert_eq!(fs::read_to_string(folder.join(DESCRIPTION)).unwrap(), GPU_3);
}

#[test]
fn version_1_is_read_as_version_3() {
    let mut expected = Bundle::from_text(GPU_1_UPGRADED.as_bytes()).unwrap();
    assert!(expected.validate().is_err(), "the extents of its calls are missing");
    expected.lacks_extents = true;
    assert_eq!(read(GPU_1).unwrap(), expected);
    let error = expected.write(Folder::new().path()).unwrap_err().to_string();
    assert!(error.ends_with("version 1 lacks the extents of calls; compile the model again"), "{error}");
}

#[test]
fn invalid_older_versions_are_rejected() {
    for text in [CPU_2, GPU_1, GPU_2, GPU_3] {
        let damaged = text.replacen("\"memory\":1", "\"memory\":2", 1).replacen("\"memory\":4", "\"memory\":5", 1);
        assert_ne!(damaged, text);
        assert!(load_error(&damaged).ends_with("its SHA-256 does not match its contents; compile the model again"));
    }
    assert!(load_error(&CPU_2.replace("divi-bundle/2", "divi-bundle/3")).contains("unknown field `target`"));
    assert!(load_error(&CPU_3.replace("divi-bundle/3", "divi-bundle/2")).contains("unknown field `executables`"));
    let other = GPU_2.replace("{\"arch\":\"sm_90\",\"code\"", "{\"arch\":\"sm_80\",\"code\"");
    assert!(load_error(&other).ends_with("no executable for 'sm_90', the architecture of device 'gpu0'"));
    let invalid = GPU_2.replace("\"after\":[0]", "\"after\":[-1]");
    assert!(load_error(&invalid).contains("kernel 'ke9487aebe826044c29ae8ffa': after: invalid value"));
    let newer = "it has fields of a newer format than it names";
    let blocked = "\"bytes\":2304,\"layout\":{\"nchwc\":{\"block\":8}}}";
    assert!(load_error(&GPU_2.replacen("\"bytes\":2304}", blocked, 1)).ends_with(newer));
    let with_folder = GPU_1.replace(" \"values\"", " \"model_folder\": \"..\",\n \"values\"");
    assert!(load_error(&with_folder).ends_with(newer));
}

/// Rewrites the description in a folder as an older version.
fn downgrade(folder: &Folder, version: u32) {
    let path = folder.join(DESCRIPTION);
    let current: Map<String, Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut old = Map::new();
    for (name, mut field) in current {
        let entries = |field: &mut Value| std::mem::take(field.as_array_mut().unwrap());
        match &name[..] {
            "format" => field = json!(format!("divi-bundle/{version}")),
            "sha256" => field = json!(""),
            "prepare_executable" => continue,
            "executables" => {
                let target = &field[0]["target"];
                let target = json!({"cpu": target["cpu"], "features": target["features"], "code": field[0]["file"]});
                old.insert("target".into(), target);
                continue;
            }
            "stages" | "prepare" | "constants" => {
                let keep = |mut entry: Value| {
                    let fields = entry.as_object_mut().unwrap();
                    fields.shift_remove("executable");
                    let unknown = if version == 1 { &["bytes", "writes", "crc32"][..] } else { &[] };
                    let calls = fields.get_mut("calls").map(|calls| calls.as_array_mut().unwrap().iter_mut());
                    for call in calls.into_iter().flatten() {
                        unknown.iter().for_each(|name| drop(call.as_object_mut().unwrap().shift_remove(*name)));
                    }
                    let unknown = unknown.iter().filter(|it| name == "prepare" || **it == "crc32");
                    unknown.for_each(|it| drop(fields.shift_remove(*it)));
                    entry
                };
                field = entries(&mut field).into_iter().map(keep).collect();
            }
            _ => {}
        }
        old.insert(name, field);
    }
    let hash = Sha256::digest(serde_json::to_vec(&old).unwrap());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    old.insert("sha256".into(), json!(digits));
    fs::write(path, serde_json::to_vec(&old).unwrap()).unwrap();
}

/// Builds `y = x + 10 * 2`, with the product computed at load.
fn prepared() -> BundleBuilder {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let (two, product) = (builder.packed(2.0), builder.constant(SIZE * 4, Source::Computed));
    let tens = builder.constant(SIZE * 4, Source::Evaluated(Expression::bytes(full(10.0).bytes())));
    builder.bundle.prepare = vec![call("scale", &[product, tens, two].map(Buffer::Constant))];
    builder.bundle.prepare_executable = Some(0);
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let add = call("add", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(product)]);
    builder.launch("main", vec![add], &[x], &[y]);
    builder.output("y", y);
    builder
}

#[test]
fn bundles_of_older_versions_run() {
    let folder = prepared().write();
    downgrade(&folder, 2);
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    assert_eq!(runtime.bundle().prepare_executable, Some(0));
    let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [21.0; SIZE as usize]);

    // Code with signatures must not be called from a version 1 description, whose calls have no extents.
    let folder = prepared().write();
    downgrade(&folder, 1);
    let bundle = Bundle::read(folder.path()).unwrap();
    assert!(bundle.lacks_extents && bundle.stages[0].calls[0].bytes.is_empty());
    let error = Runtime::load(folder.path(), options()).err().unwrap().to_string();
    let expected =
        format!("{CODE}' cannot be loaded: its kernel 'scale' was not compiled for a call of the description");
    assert!(error.ends_with(&expected), "{error}");
}
