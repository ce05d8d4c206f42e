use super::*;
use crate::{
    device::{CPU, CUDA},
    system::System,
};

fn systems() -> impl Iterator<Item = System> {
    PRESETS.iter().map(|preset| System::load(preset.name).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn presets_have_the_names_of_their_systems() {
    let loaded: Vec<_> = systems().map(|system| system.name).collect();
    assert_eq!(loaded, PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>());
    assert_eq!(System::load(HOST).unwrap().name, HOST);
    assert_eq!(names().count(), PRESETS.len() + 1);
}

#[test]
fn presets_link_every_pair() {
    for system in systems() {
        for from in 0..system.devices.len() {
            for to in (0..system.devices.len()).filter(|to| *to != from) {
                assert!(system.link(from, to).is_some(), "{}: {from} -> {to}", system.name);
            }
        }
    }
}

#[test]
fn presets_have_plausible_rates() {
    for system in systems() {
        for device in &system.devices {
            let (rates, what) = (device.rates, format!("{} of {}", device.id, system.name));
            assert!((1e9..1e13).contains(&(device.memory.0 as f64)), "{what}");
            assert!((5e10..1e14).contains(&rates.f32.0), "{what}");
            assert!((1e9..1e13).contains(&rates.bandwidth.0), "{what}");
            assert!(rates.f64 <= rates.f32 && rates.f16 >= rates.f32, "{what}");
            // Machine balance: operations per byte at the ridge of the roofline.
            assert!((3.0..100.0).contains(&(rates.f32.0 / rates.bandwidth.0)), "{what}");
            assert!(device.batch_sizes.contains(&1), "{what}");
        }
        for link in &system.links {
            let slower = |index: usize| system.devices[index].rates.bandwidth;
            assert!(
                link.bandwidth <= slower(link.from) && link.bandwidth <= slower(link.to) || link.bandwidth.0 < 33e9
            );
            assert!((0.0..1e-3).contains(&link.latency.0), "{}", system.name);
        }
    }
}

#[test]
fn presets_have_the_named_devices() {
    let kinds = |name: &str| {
        let system = System::load(name).unwrap();
        let count = |kind| system.devices.iter().filter(|device| device.kind == kind).count();
        (count(CPU), count(CUDA))
    };
    assert_eq!(kinds("cpu-2"), (2, 0));
    assert_eq!(kinds("cpu+h200"), (1, 1));
    assert_eq!(kinds("diviml"), (1, 2));
    assert_eq!(kinds("v100-dgx"), (1, 4));
    assert_eq!(kinds("v100-hetero"), (1, 4));
    assert_eq!(kinds("a6000"), (1, 3));
    assert_eq!(kinds("gpt3-6x4"), (0, 24));
    assert_eq!(kinds("cpu-2x1"), (2, 0));
    assert_eq!(kinds("cpu-6x4"), (24, 0));
    let nodes = |name: &str| {
        let devices = System::load(name).unwrap().devices;
        devices.into_iter().map(|device| device.node).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!([nodes("gpt3-6x4"), nodes("cpu-2x1"), nodes("cpu-6x4")], [6, 2, 6]);
}

#[test]
fn dgx_station_topology() {
    let system = System::load("v100-dgx").unwrap();
    let index = |id: &str| system.devices.iter().position(|device| device.id == id).unwrap();
    let link = |from, to| system.link(index(from), index(to)).unwrap();
    assert_eq!(link("cpu", "gpu1").bus, link("cpu", "gpu2").bus);
    assert_eq!(link("cpu", "gpu3").bus, link("cpu", "gpu4").bus);
    assert_ne!(link("cpu", "gpu1").bus, link("cpu", "gpu3").bus);
    assert_eq!(link("gpu1", "gpu4").bandwidth.0, 2.0 * link("gpu1", "gpu3").bandwidth.0);
    assert_eq!(link("gpu3", "gpu2").bandwidth, link("gpu1", "gpu4").bandwidth);
}

/// The same machine with two slow GPUs on different buses. The fast ones are also on different buses, and have the faster
/// NVLink.
#[test]
fn v100_hetero_has_the_topology_of_v100_dgx() {
    let (even, mixed) = (System::load("v100-dgx").unwrap(), System::load("v100-hetero").unwrap());
    assert_eq!((even.devices.len(), even.links.len()), (mixed.devices.len(), mixed.links.len()));
    let links = |system: &System| -> Vec<_> {
        let pairs = (0..5).flat_map(|from| (0..5).map(move |to| (from, to)));
        pairs.map(|(from, to)| system.link(from, to).map(|link| (link.bandwidth, link.bus.clone()))).collect()
    };
    assert_eq!(links(&even), links(&mixed));
    let rates = |id: &str| mixed.devices.iter().find(|device| device.id == id).unwrap().rates;
    assert_eq!((rates("gpu1"), rates("gpu2")), (rates("gpu4"), rates("gpu3")));
    assert_ne!(rates("gpu1"), rates("gpu2"));
}

/// The preset's links are linear fits of the measured copies.
#[test]
fn h200_links_match_measurements() {
    let profile = include_str!("../../../../../test/profiles/h200_transfers.json");
    let profile: serde_json::Value = serde_json::from_str(profile).unwrap();
    let system = System::load("cpu+h200").unwrap();
    for (kind, from, to) in [("h2d", 0, 1), ("d2h", 1, 0)] {
        let rows = profile["rows"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["pinned"] == true && row["kind"] == kind);
        let points: Vec<_> =
            rows.map(|row| (row["bytes"].as_f64().unwrap(), row["seconds"].as_f64().unwrap())).collect();
        assert!(points.len() > 5);
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / points.len() as f64;
        let (bytes, seconds) = (mean(|point| point.0), mean(|point| point.1));
        let covariance: f64 = points.iter().map(|point| (point.0 - bytes) * (point.1 - seconds)).sum();
        let variance: f64 = points.iter().map(|point| (point.0 - bytes).powi(2)).sum();
        let slope = covariance / variance;
        let link = system.link(from, to).unwrap();
        assert!((link.bandwidth.0 * slope - 1.0).abs() < 1e-2, "{kind}: {}", 1.0 / slope);
        let latency = seconds - slope * bytes;
        assert!((link.latency.0 / latency - 1.0).abs() < 1e-2, "{kind}: {latency}");
    }
}
