use super::*;
use crate::system::units::FlopsPerSecond;

fn gpu(peers: &[Peer]) -> Gpu {
    let attributes = Attributes {
        name: "NVIDIA A100".to_owned(),
        memory: Bytes(40 << 30),
        capability: 80,
        multiprocessors: 108,
        clock_khz: 1_410_000,
        memory_clock_khz: 1_215_000,
        memory_bus_bits: 5120,
        f64_ratio: 2,
        pcie: None,
    };
    Gpu { attributes, peers: peers.to_vec() }
}

#[test]
fn this_machine_is_described_twice_the_same_way() {
    let system = detect();
    assert_eq!(system, detect());
    let cpu = &system.devices[system.host()];
    assert_eq!((cpu.id.as_str(), cpu.kind), ("cpu0", DeviceKind::Cpu));
    assert!(cpu.threads.is_some_and(|threads| threads > 0));
    assert!(cpu.memory > Bytes(1 << 20));
    assert!(cpu.rates.f32 > FlopsPerSecond(1e9) && cpu.rates.bandwidth > BytesPerSecond(1e9));
}

#[test]
fn gpus_have_links_to_everything() {
    let mut cpu = cpu::Cpu::of_this_machine();
    cpu.threads = 16;
    let gpus = [
        gpu(&[Peer::None, Peer::NvLink, Peer::None]),
        gpu(&[Peer::NvLink, Peer::None, Peer::Pcie]),
        gpu(&[Peer::None, Peer::Pcie, Peer::None]),
    ];
    let system = describe(&cpu, Bytes(1 << 30), &gpus, Vec::new());
    assert_eq!(
        system.devices.iter().map(|device| device.id.as_str()).collect::<Vec<_>>(),
        ["cpu0", "gpu0", "gpu1", "gpu2"]
    );
    assert_eq!(system.devices[3].arch.as_deref(), Some("sm_80"));
    assert_eq!(system.devices[0].threads, Some(8), "the others are for GPUs");
    assert_eq!(describe(&cpu, Bytes(1 << 30), &[], Vec::new()).devices[0].threads, Some(16));
    assert_eq!(system.links.len(), 12);
    let bandwidth = |from, to| system.link(from, to).unwrap().bandwidth.0;
    assert!((bandwidth(0, 1) / 27.1e9 - 1.0).abs() < 1e-2);
    assert_eq!(bandwidth(1, 2), 300e9 * 0.86);
    assert_eq!(bandwidth(2, 3), bandwidth(0, 1));
    assert_eq!(bandwidth(1, 3), bandwidth(0, 1) / 2.0);
    assert_eq!(system.link(3, 1).unwrap().latency, Seconds(40e-6));
}
