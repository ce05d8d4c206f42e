use super::{units::FlopsPerSecond, *};
use crate::device::CUDA;
use proptest::prelude::*;

/// Returns the messages for a text, without the file name.
fn errors(text: &str) -> Vec<String> {
    let errors = System::parse("s.toml", text).expect_err("this should be wrong");
    let lines = errors.to_string();
    lines.lines().map(|line| line.strip_prefix("s.toml:").expect("errors name the file").to_owned()).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(errors(text), expected);
}

const CPU: &str = "[[device]]\nid = 'cpu'\nkind = 'cpu'\nmemory = '1 GiB'\nthreads = 2\n";
const GPU: &str = "[[device]]\nid = 'gpu'\nkind = 'cuda'\nmemory = '80 GB'\narch = 'sm_80'\n";

/// Returns a device with additional lines, which start at line 4.
fn device(lines: &str) -> String {
    format!("[[device]]\nid = 'gpu0'\nkind = 'cuda'\n{lines}\n")
}

#[test]
fn every_key_is_read() {
    let text = "name = 'both'
contention = 'shared'
[[device]]
id = 'cpu'
kind = 'cpu'
memory = 1073741824
arch = 'x86-64-v4'
threads = 16
node = 'n0'
[[device]]
id = 'gpu'
kind = 'cuda'
memory = '80 GiB'
batch_sizes = [1, 4, 16]
arch = 'sm_90'
flops = '60 TFLOP/s'
flops_f64 = '30 TFLOP/s'
flops_f16 = '900 TFLOPS'
flops_bf16 = '901 TFLOPS'
flops_i8 = '1800 TOPS'
bandwidth = '4 TB/s'
launch = '3 us'
execution = 'captured'
profile = 'profiles/h200.json'
cost_model = 'h200-model.json'
[[link]]
from = 'cpu'
to = 'gpu'
bandwidth = '54 GB/s'
latency = '10 µs'
bus = 'pcie0'
";
    let system = System::parse("folder/s.toml", text).unwrap();
    assert_eq!((system.name.as_str(), system.contention, system.host()), ("both", Contention::Shared, 0));
    let [cpu, gpu] = &system.devices[..] else { panic!("two devices") };
    assert_eq!((cpu.memory, cpu.threads, cpu.node.as_deref()), (Bytes(1 << 30), Some(16), Some("n0")));
    assert_eq!((cpu.batch_sizes.as_slice(), cpu.execution, cpu.launch), (&[1][..], Execution::Eager, None));
    assert_eq!(cpu.rates.f32, FlopsPerSecond(16.0 * 2.5e9 * 64.0));
    let expected = Device {
        id: "gpu".to_owned(),
        kind: CUDA,
        memory: Bytes(80 << 30),
        batch_sizes: vec![1, 4, 16],
        arch: Some("sm_90".to_owned()),
        threads: None,
        rates: Rates {
            f32: FlopsPerSecond(60e12),
            f64: FlopsPerSecond(30e12),
            f16: FlopsPerSecond(900e12),
            bf16: FlopsPerSecond(901e12),
            i8: FlopsPerSecond(1800e12),
            bandwidth: BytesPerSecond(4e12),
        },
        launch: Some(Seconds(3e-6)),
        execution: Execution::Captured,
        profile: Some(PathBuf::from("folder/profiles/h200.json")),
        cost_model: Some(PathBuf::from("folder/h200-model.json")),
        streams_weights: false,
        node: None,
    };
    assert_eq!(gpu, &expected);
    let bus = Some("pcie0".to_owned());
    let link = Link { from: 0, to: 1, bandwidth: BytesPerSecond(54e9), latency: Seconds(10e-6), bus };
    assert_eq!((system.link(0, 1), system.link(1, 0)), (Some(&link), None));
}

#[test]
fn duplex_links_go_both_ways() {
    let buses = |duplex: &str| {
        let text = format!("{CPU}{GPU}[[link]]\nfrom='cpu'\nto='gpu'\nbandwidth='1 GB/s'\nbus='b'\nduplex={duplex}\n");
        let system = System::parse("s.toml", &text).unwrap();
        [(0, 1), (1, 0)].map(|(from, to)| system.link(from, to).and_then(|link| link.bus.clone()))
    };
    let both = |a: &str, b: &str| [Some(a.to_owned()), Some(b.to_owned())];
    assert_eq!(buses("'full'"), both("b", "b.reverse"));
    assert_eq!(buses("true"), both("b", "b.reverse"));
    assert_eq!(buses("'half'"), both("b", "b"));
    assert_eq!(buses("false"), [Some("b".to_owned()), None]);
}

#[test]
fn patterns_link_many_devices() {
    let gpu = |id: &str| GPU.replace("'gpu'", id);
    let devices = format!("{}{}{}", gpu("'a_0'"), gpu("'a_1'"), gpu("'b_0'"));
    let inside = "[[link]]\nfrom='a_*'\nto='a_*'\nbandwidth='2 GB/s'\n";
    let across = "[[link]]\nfrom='a_*'\nto='b_*'\nbandwidth='1 GB/s'\nduplex='full'\n";
    let system = System::parse("s.toml", &format!("{devices}{inside}{across}")).unwrap();
    let mut pairs: Vec<_> = system.links.iter().map(|link| (link.from, link.to, link.bandwidth.0)).collect();
    pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(pairs, [(0, 1, 2e9), (0, 2, 1e9), (1, 0, 2e9), (1, 2, 1e9), (2, 0, 1e9), (2, 1, 1e9)]);
    let known = "(devices: a_0, a_1, b_0)";
    let message = format!("17:6: error: 'from' of link 'c_*' -> 'a_*' names unknown device 'c_*' {known}");
    check(&format!("{devices}{}", inside.replacen("a_", "c_", 1)), &[&message]);
    let everything = format!("{devices}{inside}[[link]]\nfrom='*'\nto='a_0'\nbandwidth='1 GB/s'\n");
    check(&everything, &["20:1: error: link 'a_1' -> 'a_0' is already on line 16"]);
}

#[test]
fn quantities_are_checked() {
    let of = |value: &str| device(&format!("memory = {value}\narch = 'sm_80'"));
    let units = "(use B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)";
    check(
        &of("\"80 XiB\""),
        &[&format!("4:10: error: 'memory' of device 'gpu0' is \"80 XiB\": unknown unit 'XiB' {units}")],
    );
    check(&of("''"), &["4:10: error: 'memory' of device 'gpu0' is \"\": '' is not a number"]);
    check(&of("'0 GB'"), &["4:10: error: 'memory' of device 'gpu0' is \"0 GB\": it must be more than zero"]);
    check(&of("-5"), &["4:10: error: 'memory' of device 'gpu0' is -5: it must be more than zero"]);
    check(&of("'1.5 B'"), &["4:10: error: 'memory' of device 'gpu0' is \"1.5 B\": it is not a whole number of bytes"]);
    check(&of("'9e99 TB'"), &["4:10: error: 'memory' of device 'gpu0' is \"9e99 TB\": it is too large"]);
    check(&of("1.5"), &["4:10: error: 'memory' of device 'gpu0' is 1.5: it needs a unit, as in \"80 GiB\""]);
    check(&of("nan"), &["4:10: error: 'memory' of device 'gpu0' is nan: 'nan' is not a number"]);
    check(
        &of("true"),
        &["4:10: error: 'memory' of device 'gpu0' must be a string with a number and a unit, not a boolean"],
    );
    let of = |line: &str| device(&format!("memory = '1 GB'\narch = 'sm_80'\n{line}"));
    check(
        &of("flops = 19.5e12"),
        &["6:9: error: 'flops' of device 'gpu0' is 19.5e12: it needs a unit, as in \"66.9 TFLOP/s\""],
    );
    check(
        &of("bandwidth = 'inf GB/s'"),
        &["6:13: error: 'bandwidth' of device 'gpu0' is \"inf GB/s\": 'inf GB/s' is not a number"],
    );
    check(&of("launch = '-1 us'"), &["6:10: error: 'launch' of device 'gpu0' is \"-1 us\": it must not be negative"]);
    check(&of("launch = 5"), &["6:10: error: 'launch' of device 'gpu0' is 5: it needs a unit, as in \"10 us\""]);
}

#[test]
fn keys_are_checked() {
    check(
        &device("memmory = '1 GB'\narch = 'sm_80'"),
        &[
            "1:1: error: device 'gpu0' has no 'memory'",
            "4:1: error: unknown key 'memmory' of device 'gpu0'; did you mean 'memory'?",
        ],
    );
    check(
        &format!("colour = 'red'\n{CPU}"),
        &[
            "1:1: error: unknown key 'colour' of the system; expected one of name, contention, device, link, node, network",
        ],
    );
    check("[[device]]\nmemory = '1 GB'\nkind = 'cpu'\nthreads = 1\n", &["1:1: error: device 1 has no 'id'"]);
    check("[[device]]\nid = 'x'\nmemory = '1 GB'\n", &["1:1: error: device 'x' has no 'kind'"]);
    check(
        "[[device]]\nid = 'x'\nkind = 'tpu'\nmemory = '1 GB'\n",
        &["3:8: error: 'kind' of device 'x' is \"tpu\": it must be one of cpu, cuda"],
    );
    check(&format!("name = ' '\n{CPU}"), &["1:8: error: 'name' of the system is empty"]);
    check(&format!("name = 3\n{CPU}"), &["1:8: error: 'name' of the system must be a string, not an integer"]);
    check(
        &format!("contention = 'on'\n{CPU}"),
        &["1:14: error: 'contention' of the system is \"on\": it must be one of off, exclusive, shared"],
    );
    check("", &["1:1: error: the system has no device: add a [[device]]"]);
    check("[device]\nid = 'x'\n", &["1:1: error: 'device' must be written as [[device]], once for each"]);
    check(&format!("link = 1\n{CPU}"), &["1:8: error: 'link' must be written as [[link]], once for each"]);
}

#[test]
fn devices_are_checked() {
    check(&format!("{CPU}{CPU}"), &["7:6: error: device 'cpu' is already on line 2"]);
    check(
        &CPU.replace("'cpu'\nkind", "'cpu 0'\nkind"),
        &[
            "2:6: error: 'id' of device 1 is \"cpu 0\": it must be a letter or '_', followed by letters, digits, '_', '$' or '.'",
        ],
    );
    check(&CPU.replace("= 2", "= 0"), &["5:11: error: 'threads' of device 'cpu' is 0: it must be from 1 to 65536"]);
    check(&CPU.replace("= 2", "= 2.0"), &["5:11: error: 'threads' of device 'cpu' must be an integer, not a float"]);
    check(
        &CPU.replace("= 2", "= 99999999999999999999"),
        &["5:11: error: 'threads' of device 'cpu' is 99999999999999999999: it must be from 1 to 65536"],
    );
    check(
        &CPU.replace("threads = 2\n", ""),
        &["1:1: error: cannot determine the rates of device 'cpu': give 'threads', or 'flops' and 'bandwidth'"],
    );
    check(
        &GPU.replace("arch = 'sm_80'", "flops = '1 TFLOPS'"),
        &["1:1: error: cannot determine the rates of device 'gpu': give 'arch', or 'flops' and 'bandwidth'"],
    );
    check(
        &GPU.replace("sm_80", "sm_121"),
        &["1:1: error: cannot determine the rates of device 'gpu': \
           its 'arch' is not in the table, so give 'flops' and 'bandwidth'"],
    );
    check(
        &GPU.replace("sm_80", "volta"),
        &["5:8: error: 'arch' of device 'gpu' is \"volta\": it must be a compute capability, as in \"sm_90\""],
    );
    check(&format!("{GPU}threads = 3\n"), &["6:11: error: 'threads' of device 'gpu' is for cpu devices only"]);
    check(
        &format!("{GPU}execution = 'lazy'\n"),
        &["6:13: error: 'execution' of device 'gpu' is \"lazy\": it must be one of eager, captured"],
    );
}

#[test]
fn batch_sizes_are_checked() {
    let of = |value: &str| format!("{GPU}batch_sizes = {value}\n");
    check(&of("[]"), &["6:15: error: 'batch_sizes' of device 'gpu' is empty"]);
    check(&of("4"), &["6:15: error: 'batch_sizes' of device 'gpu' must be a list of integers, not an integer"]);
    check(&of("[1, 0]"), &["6:19: error: 'batch_sizes' of device 'gpu' is 0: it must be from 1 to 1073741824"]);
    check(&of("[4, 1]"), &["6:19: error: 'batch_sizes' of device 'gpu' must increase, but 1 follows 4"]);
    check(&of("[4, 4]"), &["6:19: error: 'batch_sizes' of device 'gpu' must increase, but 4 follows 4"]);
    check(&of("[1, '2']"), &["6:19: error: 'batch_sizes' of device 'gpu' must be an integer, not a string"]);
}

#[test]
fn links_are_checked() {
    let of = |lines: &str| format!("{CPU}{GPU}[[link]]\n{lines}\n");
    check(&of("from = 'cpu'"), &["11:1: error: link 1 has no 'to'", "11:1: error: link 1 has no 'bandwidth'"]);
    check(
        &of("from = 'cpu'\nto = 'tpu'\nbandwidth = '1 GB/s'"),
        &["13:6: error: 'to' of link 'cpu' -> 'tpu' names unknown device 'tpu' (devices: cpu, gpu)"],
    );
    check(
        &of("from = 'cpu'\nto = 'cpu'\nbandwidth = '1 GB/s'"),
        &["13:6: error: device 'cpu' needs no link to itself"],
    );
    let link = "from = 'cpu'\nto = 'gpu'\nbandwidth = '1 GB/s'\n";
    check(&of(&format!("{link}[[link]]\n{link}")), &["15:1: error: link 'cpu' -> 'gpu' is already on line 11"]);
    let back = "from = 'gpu'\nto = 'cpu'\nbandwidth = '1 GB/s'\nduplex = true\n";
    check(&of(&format!("{link}[[link]]\n{back}")), &["15:1: error: link 'cpu' -> 'gpu' is already on line 11"]);
    check(
        &of(&format!("{link}duplex = 'half'")),
        &["15:10: error: 'duplex' of link 'cpu' -> 'gpu' is \"half\": it needs the 'bus' that both directions share"],
    );
    check(
        &of(&format!("{link}duplex = 'both'")),
        &["15:10: error: 'duplex' of link 'cpu' -> 'gpu' is \"both\": it must be one of full, half"],
    );
    check(
        &of(&format!("{link}latancy = '1 us'")),
        &["15:1: error: unknown key 'latancy' of link 'cpu' -> 'gpu'; did you mean 'latency'?"],
    );
}

#[test]
fn syntax_errors_have_locations() {
    let first = |text: &str| errors(text).remove(0);
    assert_eq!(first("name = \n"), "1:8: error: string values must be quoted, expected literal string");
    assert_eq!(first("é = 'x' y\n").split_once(": error").map(|(place, _)| place.to_owned()), Some("1:1".to_owned()));
    assert_eq!(first("name = 'a'\nname = 'b'\n"), "2:1: error: duplicate key");
    let deep = format!("x = {}", "[".repeat(100_000));
    assert!(errors(&deep)[0].contains("error: "));
}

#[test]
fn errors_are_single_lines() {
    let long = GPU.replace("80 GB", &"x".repeat(5000));
    assert_eq!(errors(&long)[0].len(), 500 + "4:10: error: ...".len());
    let units = "(use B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)";
    check(
        &GPU.replace("'80 GB'", r#""1 G\nB""#),
        &[&format!(r#"4:10: error: 'memory' of device 'gpu' is "1 G\nB": unknown unit 'G\nB' {units}"#)],
    );
}

#[test]
fn all_errors_are_reported_in_order() {
    let text = "[[device]]\nid = 'a'\nkind = 'x'\nmemory = '1'\nbatch_sizes = []\n[[link]]\nfrom = 'b'\nto = 'a'\nbandwidth = 1\n";
    let places: Vec<_> = errors(text).iter().map(|error| error.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(places, ["3", "4", "5", "7", "9"]);
    let many = "a = 1\n".to_owned() + &(0..70).map(|i| format!("b{i} = 1\n")).collect::<String>();
    let shown = System::parse("s.toml", &format!("{many}{CPU}")).unwrap_err();
    assert_eq!((shown.diagnostics.len(), shown.omitted), (Errors::MAX_DIAGNOSTICS, 21));
    assert!(shown.to_string().ends_with("\ns.toml: error: 21 more errors"));
}

#[test]
fn excessive_descriptions_are_rejected() {
    let device = |i| CPU.replace("'cpu'\nk", &format!("'c{i}'\nk"));
    let devices: String = (0..1025).map(device).collect();
    check(&devices, &["5121:1: error: there are more than 1024 devices"]);
    let devices: String = (0..1024).map(device).collect();
    let all = format!("{devices}[[link]]\nfrom = '*'\nto = '*'\nbandwidth = '1 GB/s'\n");
    check(&all, &["5121:1: error: there are more than 65536 links"]);
}

#[test]
fn files_are_read() {
    let folder = std::env::temp_dir().join(format!("divi-system-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good.toml", format!("{GPU}profile = 'p.json'\n").as_bytes());
    let system = System::load(&good).unwrap();
    assert_eq!((system.name.as_str(), system.host()), (good.as_str(), 0));
    assert_eq!(system.devices[0].profile.as_deref(), Some(folder.join("p.json").as_path()));
    let binary = file("binary.toml", b"name = 'x'\nid = '\xff'\n");
    assert_eq!(System::load(&binary).unwrap_err().to_string(), format!("{binary}:2:7: error: this is not UTF-8 text"));
    let large = file("large.toml", &vec![b'#'; (1 << 20) + 1]);
    let message = format!("{large}: error: more than 1.0 MiB: this is not a system description");
    assert_eq!(System::load(&large).unwrap_err().to_string(), message);
    let directory = folder.to_str().unwrap();
    assert!(
        System::load(directory).unwrap_err().to_string().starts_with(&format!("{directory}: error: cannot be read: "))
    );
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        System::load("h100").unwrap_err().to_string(),
        "error: 'h100' is neither a file nor a preset (presets: host, cpu-2, cpu-2x1, cpu-6x4, cpu+h200, diviml, v100-dgx, v100-hetero, a6000, gpt3-6x4)"
    );
}

proptest! {
    /// Damaged descriptions are parsed or rejected without a panic.
    #[test]
    fn damaged_descriptions_do_not_panic(preset in 0..presets::PRESETS.len(), cuts in prop::collection::vec((0usize..4000, 0usize..40, "[\\[\\]a-z0-9=.'\" \\n*-]{0,6}"), 1..4)) {
        let mut text: Vec<char> = presets::PRESETS[preset].text.chars().collect();
        for (at, length, replacement) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, replacement.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(errors) = System::parse("s.toml", &text) {
            prop_assert!(!errors.diagnostics.is_empty());
            let lines = text.lines().count().max(1) + 1;
            prop_assert!(errors.diagnostics.iter().all(|diagnostic| (1..=lines).contains(&diagnostic.line) && diagnostic.column > 0));
        }
    }
}

#[test]
fn gpus_may_stream_their_weights() {
    let cpu = "[[device]]\nid = 'c'\nkind = 'cpu'\nmemory = 1\nthreads = 1\n";
    let gpu = "[[device]]\nid = 'g'\nkind = 'cuda'\nmemory = 1\narch = 'sm_90'\nweights = 'streamed'\n";
    let link = "[[link]]\nfrom = 'c'\nto = 'g'\nbandwidth = '8 GB/s'\nlatency = '1 us'\n";
    let system = System::parse("s.toml", &format!("{cpu}{gpu}{link}")).unwrap();
    assert_eq!(system.devices.iter().map(|device| device.streams_weights).collect::<Vec<_>>(), [false, true]);
    assert_eq!(system.weight_link(1).map(|link| link.bandwidth), Some(BytesPerSecond(8e9)));
    assert!(system.warnings.is_empty());
    let system = System::parse("s.toml", &format!("{cpu}{gpu}")).unwrap();
    assert_eq!(
        system.warnings,
        ["device 'g' streams its weights, but has no [[link]] from the host: the time of these copies is not counted"]
    );
    let error = System::parse("s.toml", &format!("{cpu}weights = 'streamed'\n")).unwrap_err().to_string();
    assert!(error.contains("weights"), "{error}");
}
