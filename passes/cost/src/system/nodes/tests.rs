use super::super::{System, presets};
use std::collections::BTreeSet;

fn read(text: &str) -> System {
    System::parse("cluster.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

const TWO: &str = r#"
[[node]]
id = "n"
count = 2
link = { bandwidth = "10 GB/s", latency = "1 us", bus = "pcie" }
[[node.device]]
id = "gpu"
count = 2
kind = "cuda"
memory = "16 GB"
arch = "sm_75"
[network]
bandwidth = "1 GB/s"
bus = "net"
duplex = "full"
"#;

/// Tests that nodes are equivalent to explicit devices and links.
#[test]
fn nodes_are_expanded() {
    let device = |node: usize, gpu: usize| {
        let id = format!("n{node}_gpu{gpu}");
        format!("[[device]]\nid = '{id}'\nnode = 'n{node}'\nkind = 'cuda'\nmemory = '16 GB'\narch = 'sm_75'\n")
    };
    let link = |from: &str, to: &str, rest: &str| format!("[[link]]\nfrom = '{from}'\nto = '{to}'\n{rest}\n");
    let inside = |node: usize| {
        let rest = format!("bandwidth = '10 GB/s'\nlatency = '1 us'\nbus = 'pcie{node}'");
        link(&format!("n{node}_*"), &format!("n{node}_*"), &rest)
    };
    let text = [
        device(0, 0) + &device(0, 1) + &device(1, 0) + &device(1, 1),
        inside(0) + &inside(1),
        link("n0_*", "n1_*", "bandwidth = '1 GB/s'\nbus = 'net01'\nduplex = 'full'"),
    ];
    let (short, long) = (read(TWO), read(&text.concat()));
    assert_eq!(short.devices, long.devices);
    let key = |system: &System| -> BTreeSet<String> { system.links.iter().map(|link| format!("{link:?}")).collect() };
    assert_eq!(key(&short), key(&long));
    assert_eq!(short.links.len(), 12);
}

/// Tests the buses of links in both directions between the first two nodes, and from the first one to the third.
#[test]
fn scopes_select_the_links_that_share_a_bus() {
    let buses = |rest: &str| {
        let text = format!(
            "[[node]]\nid = 'n'\ncount = 3\n[[node.device]]\nid = 'cpu'\nkind = 'cpu'\nmemory = '1 GB'\nthreads = 1\n\
             [network]\nbandwidth = '1 GB/s'\nbus = 'net'\n{rest}"
        );
        let system = read(&text);
        [(0, 1), (1, 0), (0, 2)].map(|(from, to)| system.link(from, to).and_then(|link| link.bus.clone()).unwrap())
    };
    assert_eq!(buses("duplex = 'full'"), ["net01", "net01.reverse", "net02"]);
    assert_eq!(buses("duplex = 'full'\nscope = 'pair'"), ["net01", "net01.reverse", "net02"]);
    assert_eq!(buses("duplex = 'full'\nscope = 'node'"), ["net0", "net1", "net0"]);
    assert_eq!(buses("duplex = 'full'\nscope = 'network'"), ["net", "net.reverse", "net"]);
    assert_eq!(buses("scope = 'network'"), ["net", "net", "net"]);
}

/// Tests that explicit links have priority over those of the node or the network.
#[test]
fn explicit_links_have_priority() {
    let own = "[[link]]\nfrom = 'n0_gpu0'\nto = 'n0_gpu1'\nbandwidth = '50 GB/s'\n";
    let system = read(&format!("{own}{TWO}"));
    assert_eq!(system.link(0, 1).unwrap().bandwidth.0, 50e9);
    assert_eq!(system.link(1, 0).unwrap().bandwidth.0, 10e9);
    assert_eq!(system.links.len(), 12);
}

/// Device of a node.
const DEVICE: &str = "[[node.device]]\nid = 'gpu'\nkind = 'cuda'\nmemory = '1 GB'\narch = 'sm_75'\n";

/// Tests that the limit on links does not count pairs of devices without a link.
#[test]
fn only_links_that_exist_are_limited() {
    let nodes = read(&format!("[[node]]\nid = 'n'\ncount = 1000\n{DEVICE}"));
    assert_eq!((nodes.devices.len(), nodes.links.len()), (1000, 0));
    let link = "link = { bandwidth = '10 GB/s' }\n";
    let nodes = read(&format!("[[node]]\nid = 'n'\ncount = 100\n{link}{DEVICE}count = 4\n"));
    assert_eq!((nodes.devices.len(), nodes.links.len()), (400, 100 * 4 * 3));
}

#[test]
fn invalid_nodes_are_errors() {
    let device = DEVICE;
    let network = "[network]\nbandwidth = '1 GB/s'\n";
    let link = "link = { bandwidth = '10 GB/s' }\n";
    for (text, message) in [
        ("[[node]]\nid = 'n'\n".to_owned(), "node 'n' has no device: add a [[node.device]]"),
        (format!("[[node]]\nid = 'n'\n{link}"), "node 'n' has no device: add a [[node.device]]"),
        (format!("[[node]]\n{device}"), "node 1 has no 'id'"),
        (format!("[[node]]\nid = 'n'\nlink = 3\n{device}"), "a table"),
        (format!("[[node]]\nid = 'n'\nlink = {{}}\n{device}"), "the link within node 'n' has no 'bandwidth'"),
        (format!("[[node]]\nid = 'n'\nnode = 'x'\n{device}"), "unknown key 'node' of node 'n'"),
        (format!("[[node]]\nid = 'n'\n{device}node = 'x'\n"), "unknown key 'node' of device 'gpu'"),
        (format!("[[node]]\nid = 'n'\n{device}{device}"), "device 'n_gpu' is already on line"),
        (format!("[[node]]\nid = 'n'\ncount = 1000\n{device}count = 1000\n"), "there are more than 1024 devices"),
        (format!("{network}[[node]]\nid = 'n'\ncount = 1000\n{device}"), "there are more than 65536 links"),
        (format!("[[node]]\nid = 'n'\n{link}{device}count = 1000\n"), "there are more than 65536 links"),
        (
            format!("[network]\nbandwidth = '1 GB/s'\nscope = 'node'\n[[node]]\nid = 'n'\n{device}"),
            "3:9: error: 'scope' of the network needs the 'bus' that links share",
        ),
        (
            format!("[network]\nbandwidth = '1 GB/s'\nbus = 'b'\nscope = 'node'\n[[node]]\nid = 'n'\n{device}"),
            "4:9: error: 'scope' of the network is \"node\", a bus for what a node sends: it needs duplex = \"full\"",
        ),
        (
            format!("[network]\nbandwidth = '1 GB/s'\nscope = 'all'\n[[node]]\nid = 'n'\n{device}"),
            "'scope' of the network is \"all\": it must be one of pair, node, network",
        ),
        (
            format!("[[node]]\nid = 'n'\nlink = {{ scope = 'node' }}\n{device}"),
            "unknown key 'scope' of the link within node",
        ),
        (format!("[network]\nlatency = '1 us'\n[[node]]\nid = 'n'\n{device}"), "the network has no 'bandwidth'"),
        (format!("[[node]]\nid = 'n'\ncount = 0\n{device}"), "count"),
        (
            "[network]\nbandwidth = '1 GB/s'\n[[device]]\nid = 'c'\nkind = 'cpu'\nmemory = '1 GB'\nthreads = 1\n"
                .to_owned(),
            "1:1: error: the network has no nodes to connect",
        ),
    ] {
        let errors = System::parse("cluster.toml", &text).expect_err(&text).to_string();
        assert!(errors.contains(message), "{text}\n{errors}");
    }
}

/// Tests that the preset of six nodes is complete.
#[test]
fn six_nodes_of_four() {
    let system = System::load("gpt3-6x4").unwrap();
    assert_eq!((system.devices.len(), system.links.len()), (24, 24 * 23));
    assert_eq!((system.devices[5].id.as_str(), system.devices[5].node.as_deref()), ("n1_gpu1", Some("n1")));
    let link = |from: usize, to: usize| system.link(from, to).and_then(|link| link.bus.clone()).unwrap();
    assert_eq!((link(0, 1), link(0, 4), link(4, 0)), ("pcie0".into(), "net01".into(), "net01.reverse".into()));
    assert!(presets::names().any(|name| name == "gpt3-6x4"));
}
