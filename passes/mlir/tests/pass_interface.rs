//! Checks the code that the build script generates for a pass, from records in the format of TableGen's dump.

#[path = "../build/cpp.rs"]
mod cpp;
#[path = "../build/records.rs"]
mod records;
#[path = "../build/rust.rs"]
mod rust;

use serde_json::{Value, json};

/// Records of a pass with one option and one statistic.
fn dump(option: Value, writes_text: bool) -> String {
    let reference = |name: &str| json!([{"def": name, "kind": "def", "printable": name}]);
    let pass = json!({
        "argument": "divi-sample", "summary": "Do nothing", "options": reference("option"),
        "statistics": reference("counter"), "isReadOnly": 1, "usesSession": 1, "writesText": i32::from(writes_text),
    });
    let counter = json!({"cppName": "numTasks", "description": "Number of tasks"});
    let classes = json!({"DiviPass": ["Sample"], "PassBase": ["Sample"]});
    json!({"!instanceof": classes, "Sample": pass, "option": option, "counter": counter}).to_string()
}

fn option(class: &str, name: &str, r#type: &str, default: &str) -> Value {
    json!({"!superclasses": ["Option", class], "cppName": name, "type": r#type, "defaultValue": default, "description": "d"})
}

#[test]
fn both_sides_have_the_same_arguments() {
    for (class, r#type, in_rust, in_cpp) in [
        ("Option", "bool", "some_value: bool", "bool someValue"),
        ("Option", "int64_t", "some_value: i64", "int64_t someValue"),
        ("Option", "std::string", "some_value: MlirStringRef", "MlirStringRef someValue"),
        ("PathOption", "std::string", "some_value: MlirStringRef", "MlirStringRef someValue"),
        ("OptionalOption", "double", "some_value: *const f64", "const double *someValue"),
        (
            "ListOption",
            "std::string",
            "some_value: *const MlirStringRef, some_value_length: usize",
            "const MlirStringRef *someValue, size_t someValueLength",
        ),
    ] {
        let passes = records::read(&dump(option(class, "someValue", r#type, "-1"), false));
        let rust = format!(
            "diviRunSample(module: MlirOperation, {in_rust}, session: *mut Session, statistics: *mut [u64; 1])"
        );
        assert!(rust::entry_points(&passes).contains(&rust), "{rust}");
        let cpp = format!("diviRunSample(MlirOperation module, {in_cpp}, DiviSession *session, uint64_t *statistics)");
        assert!(cpp::classes(&passes).contains(&cpp), "{cpp}");
    }
}

#[test]
fn options_and_statistics_are_fields() {
    let passes = records::read(&dump(option("OptionalOption", "minGain", "double", "-1.0"), false));
    let declared = rust::declarations(&passes);
    assert!(declared.contains("pub(crate) min_gain: Option<f64>,") && declared.contains("pub num_tasks: u64,"));
    assert!(cpp::classes(&passes).contains("given(this->minGain, isParsed, -1.0)"));
    assert!(cpp::constructors(&passes).contains("createSample(SampleOptions options, DiviSession *session);"));
}

#[test]
#[should_panic(expected = "option 'factor' of Sample is Option of type float, which has no type in Rust")]
fn unknown_types_are_rejected() {
    records::read(&dump(option("Option", "factor", "float", "0"), false));
}

#[test]
#[should_panic(expected = "Sample writes a text and needs a PathOption 'output'")]
fn texts_need_an_output() {
    records::read(&dump(option("Option", "output", "std::string", ""), true));
}
