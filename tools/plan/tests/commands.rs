//! Tests of the command line.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn divi_plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_divi-plan")).args(arguments).output().expect("divi-plan runs")
}

fn with_stdin(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_divi-plan"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("divi-plan runs");
    child.stdin.take().expect("a pipe").write_all(stdin).expect("divi-plan reads");
    child.wait_with_output().expect("divi-plan ends")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks a failed run: nothing on stdout, one error on stderr.
#[track_caller]
fn fails(output: &Output, expected: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    assert!(output.stdout.is_empty());
    assert!(stderr(output).starts_with("divi-plan: error: "), "{}", stderr(output));
    assert!(stderr(output).contains(expected), "says\n{}\ninstead of\n{expected}", stderr(output));
}

fn problem(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems").join(name);
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Creates an empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn plans_are_deterministic_and_verified() {
    let folder = folder("solve");
    let plan = folder.join("plan.json");
    let plan = plan.to_str().unwrap();
    let problem = problem("rwnn/rwnn_ER_N32_m1_c1_sdep_s1.json");
    let solved = divi_plan(&["solve", &problem, "--objective=latency", "--algorithm", "heft", "--seed=7", "-o", plan]);
    assert!(stdout(&solved).is_empty());
    assert!(stderr(&solved).starts_with("heft: latency 25943.0 µs, bound "), "{}", stderr(&solved));
    let text = fs::read_to_string(plan).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    assert_eq!(stdout(&divi_plan(&["solve", &problem, "--algorithm=heft"])), text);
    assert_eq!(stdout(&divi_plan(&["verify", &problem, plan])), "25943\n");
    let verdict = stdout(&divi_plan(&["verify", &problem, plan, "--json"]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&verdict).unwrap()["value"], 25943.0);

    let summary = stdout(&divi_plan(&["solve", &problem, "--algorithm=heft", "--json"]));
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["value"], 25943.0);
    assert!(summary["seconds"].is_f64());
    fails(&divi_plan(&["solve", &problem, "--json", "-o", "-"]), "--json writes to stdout");
}

#[test]
fn pipes() {
    let problem = problem("batch/rwnn_ER_N6_m1_c1_sdep_s5_L4.json");
    let plan = stdout(&with_stdin(&["solve", "-", "-q", "--iterations=50"], &fs::read(&problem).unwrap()));
    assert!(plan.contains("\"objective\": \"batch\""));
    let verified = with_stdin(&["verify", &problem, "-"], plan.as_bytes());
    assert!(plan.contains(&format!("\"value\": {}", stdout(&verified).trim())));
    let shorter = stdout(&divi_plan(&["solve", &problem, "-q", "--iterations=50", "--inputs=2"]));
    assert!(shorter.contains("\"inputs\": 2"));
    let asked = with_stdin(&["verify", &problem, "-", "--inputs=2"], shorter.as_bytes());
    let value: f64 = stdout(&asked).trim().parse().unwrap();
    assert!(value < stdout(&verified).trim().parse().unwrap());
    fails(
        &divi_plan(&["solve", &problem, "--objective=latency", "--inputs=2"]),
        "objective latency takes one input, not 2",
    );
    fails(&divi_plan(&["verify", "-", "-"]), "stdin can be only one of the files");
}

#[test]
fn invalid_plans_are_rejected() {
    let problem = problem("rwnn/rwnn_ER_N10_m1_c1_sdep_s1.json");
    let plan = stdout(&divi_plan(&["solve", &problem, "--algorithm=greedy"]));
    let other = plan.replace("\"value\": 10704", "\"value\": 10000");
    assert_ne!(other, plan);
    fails(
        &with_stdin(&["verify", &problem, "-"], other.as_bytes()),
        "value: is 10000, but the plan takes 10704: off by 704",
    );
    fails(&with_stdin(&["verify", &problem, "-"], b"{}"), "stdin: not divi-plan/2: missing field `format`");
    fails(&with_stdin(&["verify", &problem, "-"], b"\xff"), "stdin: not UTF-8 text");
}

#[test]
fn nothing_is_written_on_errors() {
    let folder = folder("whole");
    let output = folder.join("plan.json");
    fs::write(&output, "before").unwrap();
    let file = output.to_str().unwrap();
    let bad = folder.join("bad.json");
    fs::write(&bad, "{\"format\": \"divi-problem/1\"}").unwrap();
    fails(
        &divi_plan(&["solve", bad.to_str().unwrap(), "-o", file]),
        "bad.json: not divi-problem/1: missing field `name`",
    );
    fails(&divi_plan(&["solve", "nowhere.json", "-o", file]), "nowhere.json: ");
    assert_eq!(fs::read_to_string(&output).unwrap(), "before");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    let problem = problem("rwnn/rwnn_ER_N10_m1_c1_sdep_s1.json");
    fails(&divi_plan(&["solve", &problem, "--iterations=50", "-o", folder.to_str().unwrap()]), "whole: ");
    assert!(divi_plan(&["solve", &problem, "--iterations=50", "-o", "/dev/null"]).status.success());
}

#[test]
fn arguments() {
    let problem = problem("rwnn/rwnn_ER_N10_m1_c1_sdep_s1.json");
    fails(&divi_plan(&[]), "requires a subcommand but one was not provided\n  [subcommands: solve, verify,");
    fails(&divi_plan(&["sovle"]), "unrecognized subcommand 'sovle'\n\n  tip: a similar subcommand exists: 'solve'");
    fails(&divi_plan(&["sovle"]), "available commands: solve, verify, bound, convert, generate, region");
    fails(&divi_plan(&["solve"]), "required arguments were not provided:\n  <PROBLEM>\n");
    fails(&divi_plan(&["solve", &problem, "more"]), "unexpected argument 'more' found");
    fails(
        &divi_plan(&["solve", &problem, "--sed=1"]),
        "unexpected argument '--sed' found\n\n  tip: a similar argument exists: '--seed'",
    );
    fails(&divi_plan(&["solve", &problem, "--seed=x"]), "invalid value 'x' for '--seed <N>': invalid digit");
    fails(
        &divi_plan(&["solve", &problem, "--objective=speed"]),
        "invalid value 'speed' for '--objective <NAME>'\n  [possible values: latency, batch, pipeline]",
    );
    fails(
        &divi_plan(&["solve", &problem, "--algorithm=magic"]),
        "invalid value 'magic' for '--algorithm <NAME>'\n  [possible values: auto, single, ",
    );
    fails(
        &divi_plan(&["solve", &problem, "--algorithm=heft", "--objective=pipeline"]),
        "algorithm 'heft' has no objective pipeline",
    );
    fails(
        &divi_plan(&["solve", &problem, "--iterations=5", "--time-limit=1"]),
        "the argument '--iterations <N>' cannot be used with '--time-limit <S>'",
    );
    fails(
        &divi_plan(&["solve", &problem, "--iterations=5", "--iterations=6"]),
        "'--iterations <N>' cannot be used multiple",
    );
    fails(
        &divi_plan(&["solve", &problem, "--time-limit=-1"]),
        "invalid value '-1' for '--time-limit <S>': must be a non-negative number of seconds",
    );
    for command in ["solve", "verify", "bound", "convert", "generate", "region", "simulate"] {
        for help in ["-h", "--help"] {
            assert!(stdout(&divi_plan(&[command, help])).contains(&format!("\nUsage: divi-plan {command} ")));
        }
    }
    assert!(stdout(&divi_plan(&["--help"])).contains("\nCommands:\n"));
    // The last value of an option counts, and values may begin with a dash.
    let solve = |more: &[&str]| divi_plan(&[&["solve", &problem, "--algorithm", "heft", "-q"], more].concat());
    assert_eq!(
        stdout(&solve(&["--seed=1", "--seed", "2", "-q", "-o", "none", "-o", "-"])),
        stdout(&solve(&["--seed=2"]))
    );
    fails(&solve(&["--inputs", "-1"]), "invalid value '-1' for '--inputs <N>'");
    assert!(stdout(&divi_plan(&["--version"])).starts_with("divi-plan "));
}

#[test]
fn queues_of_another_length() {
    let queue = problem("batch/rwnn_ER_N6_m1_c1_sdep_s5_L4.json");
    let solve = |more: &[&str]| divi_plan(&[&["solve", &queue, "--algorithm=heft", "-q"], more].concat());
    assert!(stdout(&solve(&["--inputs=2"])).contains("\"inputs\": 2,"));
    let one = stdout(&solve(&["--inputs=1"]));
    assert!(one.contains("\"objective\": \"latency\"") && !one.contains("\"inputs\""), "{one}");
    assert_eq!(one, stdout(&solve(&["--objective=latency"])));
    fails(&solve(&["--inputs=0"]), "L: 0 queued inputs; at least 1");
    fails(
        &solve(&["--inputs=3", "--objective=latency"]),
        "objective latency takes one input, not 3; batch queues them",
    );
}

#[test]
fn bounds() {
    let problem = problem("rwnn/rwnn_WS_N32_m1_c1_sdep_s1.json");
    let lines = stdout(&divi_plan(&["bound", &problem]));
    let names: Vec<&str> = lines.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["critical-path", "load", "load-with-ends", "load-in-windows", "mean-way", "best"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&divi_plan(&["bound", &problem, "--json"]))).unwrap();
    // The optimum is 37949, which the critical path proves.
    assert_eq!(json["bound"], 37949.0);
    assert_eq!(json["bound_by"], "critical-path");
}

#[test]
fn problems_are_generated_and_converted() {
    let folder = folder("generate");
    let file = folder.join("network.json");
    let file = file.to_str().unwrap();
    let arguments =
        ["generate", "rwnn", "--kind=ws", "--modules=3", "--channels=2", "--dep=wdep", "--inputs=8", "-o", file];
    assert!(stdout(&divi_plan(&arguments)).is_empty());
    assert!(fs::read_to_string(file).unwrap().contains("\"name\": \"rwnn_WS_N10_m3_c2_wdep_s1_L8\""));
    let plan = stdout(&divi_plan(&["solve", file, "--algorithm=met", "-q"]));
    assert!(stdout(&with_stdin(&["verify", file, "-"], plan.as_bytes())).trim().parse::<f64>().unwrap() > 0.0);
    assert!(stdout(&divi_plan(&["generate", "regal", "--nodes=60"])).contains("\"mtpp\""));
    fails(&divi_plan(&["generate", "regal", "--modules=2"]), "--modules is for rwnn only");
    fails(
        &divi_plan(&["generate", "tree"]),
        "invalid value 'tree' for '<KIND>'\n  [possible values: rwnn, regal, chain, gpt3]",
    );
    fails(
        &divi_plan(&["generate", "rwnn", "--dep=loose"]),
        "invalid value 'loose' for '--dep <NAME>'\n  [possible values: sdep, wdep]",
    );

    let graph = r#"{"maxSizePerFPGA": 10, "maxFPGAs": 1, "maxCPUs": 1, "nodes": [
        {"id": 4, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1}], "edges": []}"#;
    let problem = stdout(&with_stdin(&["convert", "-", "--name=one"], graph.as_bytes()));
    assert!(problem.contains("\"name\": \"one\"") && problem.contains("\"time\": {\"1\": [1000, 2000]}"), "{problem}");
    fails(&with_stdin(&["convert", "-"], b"[]"), "stdin: not a graph of EfficientMIP");
}

/// Two tasks with parameters on two devices that share a bus.
const TWO_GPUS: &str = r#"{"format":"divi-problem/1","name":"two",
"devices":[{"id":0,"name":"cpu0"},{"id":1,"name":"gpu0"},{"id":2,"name":"gpu1"}],
"bandwidth":[[null,2,2],[2,null,50],[2,50,null]],"bus":[[null,"pcie","pcie"],["up","nv","nv"],["up","nv","nv"]],
"nodes":[
{"id":0,"time":{"1":[0,null,null]},"weight":0,"input":0,"output":40},
{"id":1,"time":{"1":[null,30,null]},"weight":100,"input":40,"output":2},
{"id":2,"time":{"1":[null,null,30]},"weight":200,"input":40,"output":2}],
"edges":[[0,1],[0,2]]}"#;

#[test]
fn buses_and_cold_starts() {
    let folder = folder("buses");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (problem, plan, cold) = (path("problem.json"), path("plan.json"), path("cold.json"));
    fs::write(&problem, TWO_GPUS).unwrap();
    let value = |arguments: &[&str]| {
        let all: Vec<&str> = ["solve", &problem, "--iterations=500", "--json", "-o", &plan]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let summary: serde_json::Value = serde_json::from_str(&stdout(&divi_plan(&all))).unwrap();
        summary["value"].as_f64().unwrap()
    };
    assert_eq!(value(&[]), 50.0);
    assert_eq!(value(&["--contention=exclusive"]), 70.0);
    assert!(fs::read_to_string(&plan).unwrap().contains("\"contention\": \"exclusive\""));
    fails(
        &divi_plan(&["verify", &problem, &plan]),
        "contention: is exclusive in the plan, but off in the problem; verify it with --contention=exclusive",
    );
    assert_eq!(stdout(&divi_plan(&["verify", &problem, &plan, "--contention=exclusive"])), "70\n");
    let mut bare: serde_json::Value = serde_json::from_str(TWO_GPUS).unwrap();
    bare.as_object_mut().unwrap().remove("bus");
    fs::write(path("bare.json"), bare.to_string()).unwrap();
    let warned = divi_plan(&["solve", &path("bare.json"), "--contention=shared", "-o", &path("bare-plan.json")]);
    assert!(String::from_utf8_lossy(&warned.stderr).contains("contention shared has no effect"));
    // Copies of parameters and transfers use the bus in sequence.
    let cold_value = value(&["--contention=exclusive", "--cold", "--algorithm=sortinghat", "--write-problem", &cold]);
    let verified = divi_plan(&["verify", &cold, &plan, "--contention=exclusive"]);
    assert_eq!(stdout(&verified), format!("{cold_value}\n"));
    assert!(cold_value >= 190.0, "{cold_value}");
    // A problem with a cold start keeps it: here, one without reads from host memory.
    let text = fs::read_to_string(&cold).unwrap();
    let (before, _) = text.split_once(", \"direct\"").unwrap();
    fs::write(&cold, format!("{before}}}}}")).unwrap();
    for again in [&["solve", &cold, "-q", "-o", &plan][..], &["solve", &cold, "--cold", "-q", "-o", &plan]] {
        stdout(&divi_plan(again));
        stdout(&divi_plan(&["verify", &cold, &plan]));
    }
    let bounds = stdout(&divi_plan(&["bound", &cold]));
    assert!(bounds.contains("cold-"), "{bounds}");
    let warm = value(&["--contention=exclusive", "--resident=1", "--algorithm=sortinghat"]);
    assert!(warm <= cold_value, "{warm}");
    fails(&divi_plan(&["verify", &problem, &plan]), "the plan is for another problem");
    fails(&divi_plan(&["solve", &problem, "--contention=some"]), "[possible values: off, exclusive, shared]");
    fails(
        &divi_plan(&["solve", &problem, "--resident=2"]),
        "invalid value '2' for '--resident <R>': must be a share from 0 to 1",
    );
    fails(&divi_plan(&["solve", &problem, "--cold", "--inputs=2"]), "a cold start is for one input");
}

#[test]
fn edge_networks() {
    let folder = folder("edge");
    let files = ["chain.json", "plan.json", "map.svg", "one.json"].map(|name| folder.join(name).display().to_string());
    let [chain, plan, map, one] = &files;
    stdout(&divi_plan(&["generate", "chain", "--seed=3", "-o", chain]));
    let solved = divi_plan(&["solve", chain, "--objective=pipeline", "--algorithm=branch-and-bound", "-o", plan]);
    assert!(stdout(&solved).is_empty());
    let says = stderr(&solved);
    assert!(says.starts_with("branch-and-bound: pipeline ") && says.contains(" nodes explored, "), "{says}");
    let value: f64 = stdout(&divi_plan(&["verify", chain, plan])).trim().parse().unwrap();
    let summary = |splits: &str| -> serde_json::Value {
        let solved = divi_plan(&["solve", chain, "--objective=pipeline", splits, "--json"]);
        serde_json::from_str(&stdout(&solved)).unwrap()
    };
    let three = summary("--splits=3");
    assert_eq!((three["value"].as_f64(), &three["found_by"]), (Some(value), &"branch-and-bound".into()));
    assert!(three["explored"].as_u64().unwrap() > 0 && three["gap"].as_f64().unwrap() < 1e-6);
    assert!(summary("--splits=0")["value"].as_f64().unwrap() > value);

    let bounds = stdout(&divi_plan(&["bound", chain, "--objective=pipeline", "--splits=3"]));
    let names: Vec<&str> = bounds.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["work", "links", "branch-and-bound", "best"]);
    assert!(bounds.ends_with(&format!(" {value:.3}\n")), "{bounds}");

    let region = stdout(&divi_plan(&["region", chain, "--svg", map]));
    for line in [
        "4 machines, up to 5000 operations/µs; links up to 10 MB/s; ratio 2.0000e-3 bytes per operation",
        "eq. (10), (11): links of more than 8.2000 MB/s are necessary, though not always sufficient; ratio 1.6400e-3",
        "partitioning improvement boundary 1.6400e-3 (8.2000 MB/s)",
        "maximum complexity boundary       1.6800e-1 (840.0000 MB/s)",
        "; zone 2: partitioning may help, faster links would help more",
    ] {
        assert!(region.contains(line), "{region}");
    }
    let map = fs::read_to_string(map).unwrap();
    assert!(map.starts_with("<svg ") && map.ends_with("</svg>\n") && map.matches("<rect ").count() > 2 * 48 * 36);
    let numbers: serde_json::Value = serde_json::from_str(&stdout(&divi_plan(&["region", chain, "--json"]))).unwrap();
    assert_eq!((&numbers["boundaries"]["zone"], &numbers["may_help"]), (&2.into(), &true.into()));
    // Links that are too slow.
    stdout(&divi_plan(&["generate", "chain", "--seed=3", "--link=8", "-o", chain]));
    let slow = stdout(&divi_plan(&["region", chain]));
    assert!(
        slow.contains("partitioning cannot help: the smallest transfer takes 2050000.0 µs >= 2000000.0 µs"),
        "{slow}"
    );

    let text = r#"{"format":"divi-problem/1","name":"one","devices":[{"id":0,"name":"a"}],"bandwidth":[[null]],
        "nodes":[{"id":0,"time":{"1":[1]},"weight":0,"input":0,"output":1}],"edges":[],
        "edge":{"flops":[6],"rate":[2],"bandwidth":[[null]],"edge_bytes":[]}}"#;
    fs::write(one, text).unwrap();
    let alone = stdout(&divi_plan(&["region", one]));
    assert!(alone.contains("there is only one machine; there is nothing to partition"), "{alone}");
    assert!(alone.contains("here: 3.0 µs per input, 1.000 times one machine"), "{alone}");
    fails(&divi_plan(&["region", one, "--svg", plan]), "links do not affect this network; there is nothing to draw");
    fails(&divi_plan(&["region", &problem("rwnn/rwnn_ER_N10_m1_c1_sdep_s1.json")]), "has no edge network (edge)");
    fails(&divi_plan(&["generate", "chain", "--kind=ER"]), "--kind is for rwnn and regal only");
    fails(&divi_plan(&["generate", "rwnn", "--splits=2"]), "--splits is for chain only");
    fails(
        &divi_plan(&["generate", "chain", "--ratios=1,2"]),
        "invalid value '1,2' for '--ratios <A,B,C>': must be three numbers",
    );
    fails(&divi_plan(&["generate", "chain", "--splits=4"]), "splits is 4; it must be at least 1 and at most 3");
    fails(&divi_plan(&["generate", "chain", "--ratios=0.1,0.01,1"]), "do not fit");
}

#[test]
fn plans_are_simulated() {
    let folder = folder("simulate");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (problem, plan, run) = (path("problem.json"), path("plan.json"), path("run.json"));
    fs::write(&problem, TWO_GPUS).unwrap();
    stdout(&divi_plan(&["solve", &problem, "--contention=exclusive", "-q", "-o", &plan]));
    let simulate = |more: &[&str]| divi_plan(&[&["simulate", &problem, &plan], more].concat());
    // Without variation, a request takes the makespan of the plan.
    let text = stdout(&simulate(&[]));
    assert!(text.lines().all(|line| line.starts_with("simulated")), "{text}");
    assert!(text.contains(" 1      1     14285.71  100.0 %         70.0         70.0 "), "{text}");
    let json = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stdout(&simulate(&[&["--json"], more].concat()))).unwrap()
    };
    let varied = ["--jitter=0.3", "--straggler=0.01,3", "--slow-hosts=0.1,1.5", "--failures=3600", "--hosts=1..16"];
    let result = json(&varied);
    assert_eq!((&result["simulated"], &result["rows"][4]["hosts"]), (&true.into(), &16.into()));
    let row = &result["rows"][4];
    assert!(row["simulated_throughput_per_s"].as_f64() < row["planned_throughput_per_s"].as_f64(), "{row}");
    assert!(row["simulated_latency_us"]["p99"].as_f64() > row["simulated_latency_us"]["p50"].as_f64(), "{row}");
    assert!(row["simulated_lost"].as_u64() > Some(0) && row["simulated_down"].as_f64() > Some(0.0), "{row}");
    assert_eq!(result, json(&varied));
    assert_ne!(result["rows"], json(&[&varied[..], &["--seed=2"]].concat())["rows"]);
    // Measured runs of the second device only, or of all devices.
    let steps = |first: &str| {
        format!(
            r#"{{"inputs": 1, "steps": [{{"name": "a", "us": 40, "device": "{first}", "runs_us": [40, 40]}},
            {{"name": "b", "us": 60, "device": "gpu1", "runs_us": [60, 60]}},
            {{"name": "t", "us": 60, "from": "cpu0", "to": "gpu1", "runs_us": [100, 100]}}]}}"#
        )
    };
    fs::write(&run, steps("gpu0")).unwrap();
    let measured = json(&["--measured", &run]);
    let kept = json(&["--measured", &run, "--links=keep"]);
    assert!(
        measured["rows"][0]["simulated_latency_us"]["p50"].as_f64()
            > kept["rows"][0]["simulated_latency_us"]["p50"].as_f64()
    );
    fs::write(&run, steps("gpu7")).unwrap();
    fails(&simulate(&["--measured", &run]), "the measured runs have no launches on device 'gpu0': measure a bundle of");
    fails(&simulate(&["--measured", &problem]), "problem.json: field 'inputs' is missing");
    fails(
        &simulate(&["--hosts=0"]),
        "invalid value '0' for '--hosts <N,...|A..B>': must be numbers from 1 to 65536, as in",
    );
    fails(&simulate(&["--hosts=8..4"]), "invalid value '8..4' for '--hosts <N,...|A..B>': must be numbers");
    fails(&simulate(&["--jitter=2"]), "invalid value '2' for '--jitter <CV>': must be from 0 to 1");
    fails(&simulate(&["--straggler=0.5"]), "must be a share from 0 to 1 and a factor from 1 to 1000000, as in 0.01,3");
    fails(
        &simulate(&["--failures=-1"]),
        "invalid value '-1' for '--failures <RATE>': must be a number that is not negative",
    );
    fails(&simulate(&["--requests=0"]), "invalid value '0' for '--requests <N>': must be a positive integer");
    fails(&simulate(&["--requests=100000000"]), "are more than 20000000: simulate fewer");
    // Plans that are not simulated, or of another problem.
    let (cold, other) = (path("cold.json"), path("other.json"));
    stdout(&divi_plan(&["solve", &problem, "--cold", "-q", "--write-problem", &cold, "-o", &other]));
    fails(&divi_plan(&["simulate", &cold, &other]), "a cold start is one request: simulate a plan without copies");
    fails(&divi_plan(&["simulate", &cold, &plan]), "the plan is for another problem");
    stdout(&divi_plan(&["generate", "regal", "--nodes=60", "-o", &cold]));
    stdout(&divi_plan(&["solve", &cold, "--objective=pipeline", "--k=2", "--iterations=50", "-q", "-o", &other]));
    fails(&divi_plan(&["simulate", &cold, &other]), "pipelines of equal devices (mtpp) are not simulated yet");
    stdout(&divi_plan(&["generate", "chain", "-o", &cold]));
    stdout(&divi_plan(&["solve", &cold, "--objective=pipeline", "-q", "-o", &other]));
    fails(&divi_plan(&["simulate", &cold, &other]), "plans of edge networks are not simulated yet");
}

/// Tests that an input file is never overwritten, under any name.
#[test]
fn outputs_do_not_replace_inputs() {
    let folder = folder("inputs");
    let copy = folder.join("problem.json");
    fs::copy(problem("rwnn/rwnn_ER_N32_m1_c1_sdep_s1.json"), &copy).unwrap();
    let link = folder.join("link.json");
    std::os::unix::fs::symlink("problem.json", &link).unwrap();
    let before = fs::read(&copy).unwrap();
    let [copy, link] = [&copy, &link].map(|path| path.to_str().unwrap());
    let plan = folder.join("plan.json");
    let plan = plan.to_str().unwrap();
    let solve = ["solve", copy, "--algorithm=heft", "-q"];
    for output in [&["-o", copy][..], &["-o", link], &["-o", plan, "--write-problem", copy]] {
        fails(&divi_plan(&[&solve[..], output].concat()), "it is an input itself: choose another name");
    }
    fails(&divi_plan(&[&solve[..], &["-o", plan, "--write-problem", plan]].concat()), "both write");
    assert_eq!(fs::read(copy).unwrap(), before);
    assert!(divi_plan(&[&solve[..], &["-o", plan]].concat()).status.success());
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["link.json", "plan.json", "problem.json"]);
}
