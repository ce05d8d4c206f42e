//! From TOML to a system.

use super::{
    Contention, Device, Errors, Execution, Link, Owner, Problem, System, beside,
    error::Lines,
    fields::{Faults, Fields},
    nodes::{self, Cluster},
    rates::{self, Given},
    units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds},
};
use crate::{
    device::{self, Kind},
    pattern::fits,
};
use std::collections::{HashMap, hash_map::Entry};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const SYSTEM_KEYS: &[&str] = &["name", "contention", "device", "link", "node", "network"];

pub(super) const DEVICE_KEYS: &[&str] = &[
    "id",
    "kind",
    "memory",
    "batch_sizes",
    "arch",
    "threads",
    "flops",
    "flops_f64",
    "flops_f16",
    "flops_bf16",
    "flops_i8",
    "bandwidth",
    "launch",
    "execution",
    "profile",
    "weights",
    "node",
];

const LINK_KEYS: &[&str] = &["from", "to", "bandwidth", "latency", "bus", "duplex"];
/// The same where both ends are known.
const WIRE_KEYS: &[&str] = &["bandwidth", "latency", "bus", "duplex"];

/// More threads than any machine has, and few enough to count with.
const MAX_THREADS: u32 = 1 << 16;

const MAX_BATCH_SIZE: u32 = 1 << 30;

/// More than anybody plans for; descriptions that ask for more would take their time to refuse.
pub(super) const MAX_DEVICES: usize = 1024;
const MAX_LINKS: usize = 1 << 16;

/// What the other direction of a full-duplex bus is called after: the two do not get in each other's way.
const REVERSE: &str = ".reverse";

/// Reads a description; every error that can be told apart from its consequences is reported.
pub(super) fn system(file: &str, text: &str) -> Result<System, Errors> {
    let lines = Lines::new(text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let mut faults: Faults = Vec::new();
    for error in &syntax {
        let at = error.span().map_or(0, |span| span.start);
        faults.push((at, Problem::Syntax(error.message().to_owned())));
    }
    // What remains of a text with syntax errors would give rise to errors that are none.
    let system = if syntax.is_empty() { tables(file, &lines, document.get_ref(), &mut faults) } else { None };
    match system {
        Some(system) if faults.is_empty() => Ok(system),
        _ => Err(Errors::new(file, &lines, faults)),
    }
}

fn tables(file: &str, lines: &Lines<'_>, document: &DeTable<'_>, faults: &mut Faults) -> Option<System> {
    let mut fields = Fields::new(Owner::System, document, 0, faults);
    fields.check_keys(SYSTEM_KEYS);
    let name = fields.text("name").map(str::to_owned);
    let words = [("off", Contention::Off), ("exclusive", Contention::Exclusive), ("shared", Contention::Shared)];
    let contention = fields.word("contention", &words).unwrap_or_default();
    let device_tables = list(&mut fields, "device")?;
    let link_tables = list(&mut fields, "link")?;
    let node_tables = list(&mut fields, "node")?;
    let network = nodes::network(&mut fields, !node_tables.is_empty());
    if device_tables.is_empty() && node_tables.is_empty() {
        fields.fault(0, Problem::NoDevice);
    }
    if let Some((at, _)) = device_tables.get(MAX_DEVICES) {
        fields.fault(*at, Problem::TooMany { what: "devices", limit: MAX_DEVICES });
        return None;
    }

    let mut seen = Seen { lines, first: HashMap::new() };
    let devices: Vec<_> =
        device_tables.iter().enumerate().map(|(i, table)| device(file, i, table, &mut seen, faults)).collect();
    let mut cluster = Cluster { file, seen: &mut seen, devices, nodes: Vec::new() };
    for (index, table) in node_tables.iter().enumerate() {
        cluster.add(index, table, faults)?;
    }
    let Cluster { devices, nodes, .. } = cluster;
    // Links may name devices about which something else is wrong.
    let all: Vec<_> = devices.iter().map(|(id, _)| id.as_deref().unwrap_or_default()).collect();
    let index = all.iter().enumerate().rev().map(|(index, id)| (*id, index)).filter(|(id, _)| !id.is_empty()).collect();
    let ids = Ids { all, index };
    let mut seen = Seen { lines, first: HashMap::new() };
    let mut all_links = Vec::new();
    for (index, table) in link_tables.iter().enumerate() {
        all_links.extend(links(index, table, &ids, &mut seen, faults).into_iter().flatten());
    }
    if nodes::most_links(&nodes) + all_links.len() > MAX_LINKS {
        faults.push((0, Problem::TooMany { what: "links", limit: MAX_LINKS }));
        return None;
    }
    let joined = nodes::joined(&nodes, network.as_ref(), &all_links);
    all_links.extend(joined);
    let mut system = System {
        name: name.unwrap_or_else(|| file.to_owned()),
        devices: devices.into_iter().map(|(_, device)| device).collect::<Option<_>>()?,
        links: all_links,
        contention,
        warnings: Vec::new(),
    };
    let unknown = |device: &usize| system.devices[*device].streams_weights && system.way_of_weights(*device).is_none();
    let warning = |device: usize| {
        let id = &system.devices[device].id;
        format!(
            "device '{id}' streams its weights, but no [[link]] leads there from the host: what that takes is not counted"
        )
    };
    system.warnings = (0..system.devices.len()).filter(unknown).map(warning).collect();
    Some(system)
}

/// The tables under `[[key]]`, with where each starts.
pub(super) fn list<'t, 'i>(
    fields: &mut Fields<'t, 'i, '_>,
    key: &'static str,
) -> Option<Vec<(usize, &'t DeTable<'i>)>> {
    let Some(value) = fields.get(key) else { return Some(Vec::new()) };
    let tables = match value.get_ref() {
        DeValue::Array(items) => items.iter().map(table).collect(),
        _ => None,
    };
    if tables.is_none() {
        fields.fault(value.span().start, Problem::NotATableArray { key });
    }
    tables
}

fn table<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> Option<(usize, &'t DeTable<'i>)> {
    value.get_ref().as_table().map(|table| (value.span().start, table))
}

/// Where things that must differ are first.
pub(super) struct Seen<'t, K> {
    lines: &'t Lines<'t>,
    first: HashMap<K, usize>,
}

impl<K: std::hash::Hash + Eq> Seen<'_, K> {
    /// The line where this is already.
    pub(super) fn before(&mut self, key: K, at: usize) -> Option<usize> {
        match self.first.entry(key) {
            Entry::Occupied(entry) => Some(self.lines.line(*entry.get())),
            Entry::Vacant(entry) => {
                entry.insert(at);
                None
            }
        }
    }
}

fn device(
    file: &str,
    index: usize,
    (at, table): &(usize, &DeTable<'_>),
    seen: &mut Seen<'_, String>,
    faults: &mut Faults,
) -> (Option<String>, Option<Device>) {
    let mut fields = Fields::new(Owner::NamelessDevice(index + 1), table, *at, faults);
    let id = fields.identifier("id");
    let id = fields.require("id", id).map(str::to_owned);
    if let Some(id) = &id {
        fields.owner = Owner::Device(id.clone());
        let id_at = fields.at("id");
        if let Some(line) = seen.before(id.clone(), id_at) {
            fields.fault(id_at, Problem::DuplicateDevice { id: id.clone(), line });
        }
    }
    let device = device_fields(file, id.clone(), &mut fields, DEVICE_KEYS);
    (id, device)
}

pub(super) fn device_fields(
    file: &str,
    id: Option<String>,
    fields: &mut Fields<'_, '_, '_>,
    keys: &'static [&'static str],
) -> Option<Device> {
    fields.check_keys(keys);
    let kinds: Vec<(&str, Kind)> = device::all().into_iter().map(|kind| (kind.name(), kind)).collect();
    let kind = fields.word("kind", &kinds);
    let kind = fields.require("kind", kind);
    let memory = fields.quantity("memory", Bytes::parse, Some(Bytes::from_integer));
    let memory = fields.require("memory", memory);
    let batch_sizes = match fields.get("batch_sizes") {
        Some(_) => fields.increasing("batch_sizes", MAX_BATCH_SIZE),
        None => Some(vec![1]),
    };
    let arch = fields.text("arch");
    let threads = fields.count("threads", MAX_THREADS);
    let flops = |fields: &mut Fields<'_, '_, '_>, key| fields.quantity(key, FlopsPerSecond::parse, None);
    let given = Given {
        f32: flops(fields, "flops"),
        f64: flops(fields, "flops_f64"),
        f16: flops(fields, "flops_f16"),
        bf16: flops(fields, "flops_bf16"),
        i8: flops(fields, "flops_i8"),
        bandwidth: fields.quantity("bandwidth", BytesPerSecond::parse, None),
    };
    let launch = fields.quantity("launch", Seconds::parse, None);
    let execution = fields.word("execution", &[("eager", Execution::Eager), ("captured", Execution::Captured)]);
    let profile = fields.text("profile").map(|path| beside(file, path));
    let weights = fields.word("weights", &[("resident", false), ("streamed", true)]);
    let node = fields.identifier("node").map(str::to_owned);

    let kind = kind?;
    let mut sound = true;
    if let Some(arch) = arch
        && let Err(reason) = kind.check_arch(arch)
    {
        let problem = Problem::NotAnArch { owner: fields.owner.clone(), text: arch.to_owned(), reason };
        fields.fault(fields.at("arch"), problem);
        sound = false;
    }
    check_applies(fields, kind, "threads", |kind| kind.uses_threads());
    check_applies(fields, kind, "weights", |kind| kind.streams_weights());
    // A rate that is there but wrong has its own error already.
    let wrong = |key, is_there: bool| fields.get(key).is_some() && !is_there;
    sound &= !wrong("threads", threads.is_some())
        && !wrong("arch", arch.is_some())
        && !wrong("flops", given.f32.is_some())
        && !wrong("bandwidth", given.bandwidth.is_some());
    let rates = match rates::complete(kind, arch, threads, given) {
        Ok(rates) => Some(rates),
        Err(remedy) => {
            if sound {
                fields.fault(fields.at, Problem::NoRates { owner: fields.owner.clone(), remedy });
            }
            None
        }
    };
    Some(Device {
        id: id?,
        kind,
        memory: memory?,
        batch_sizes: batch_sizes?,
        arch: arch.map(str::to_owned),
        threads,
        rates: rates?,
        launch,
        execution: execution.unwrap_or_default(),
        profile,
        streams_weights: weights.unwrap_or_default(),
        node,
    })
}

/// Notes a key that means nothing for devices of a kind.
fn check_applies(fields: &mut Fields<'_, '_, '_>, kind: Kind, key: &'static str, applies: fn(Kind) -> bool) {
    if fields.get(key).is_some() && !applies(kind) {
        let (owner, kinds) = (fields.owner.clone(), device::names(applies));
        fields.fault(fields.at(key), Problem::NotForThisKind { owner, key, kinds });
    }
}

struct Ids<'d> {
    /// One a device; empty where it has none.
    all: Vec<&'d str>,
    /// Where an id is there twice, it is the first device's.
    index: HashMap<&'d str, usize>,
}

impl<'d> Ids<'d> {
    fn index_order(&self) -> impl Iterator<Item = &'d str> {
        self.all.iter().copied().filter(|id| !id.is_empty())
    }
}

/// How many devices an error lists.
const MAX_KNOWN: usize = 12;

#[derive(Clone, Copy, PartialEq)]
enum Duplex {
    OneWay,
    Half,
    Full,
}

/// What a link is like, wherever it goes.
#[derive(Clone)]
pub(super) struct Wire {
    bandwidth: BytesPerSecond,
    latency: Seconds,
    bus: Option<String>,
    duplex: Duplex,
}

impl Wire {
    /// The links between two devices: one, or two if it is duplex. Buses may be given other names.
    pub(super) fn links(&self, from: usize, to: usize, bus: impl Fn(&Option<String>) -> Option<String>) -> Vec<Link> {
        let Self { bandwidth, latency, duplex, .. } = *self;
        let back = match duplex {
            Duplex::Full => self.bus.as_ref().map(|bus| format!("{bus}{REVERSE}")),
            Duplex::Half | Duplex::OneWay => self.bus.clone(),
        };
        let there = Link { from, to, bandwidth, latency, bus: bus(&self.bus) };
        let back = Link { from: to, to: from, bandwidth, latency, bus: bus(&back) };
        if duplex == Duplex::OneWay { vec![there] } else { vec![there, back] }
    }
}

/// Reads what a link is like. Where it is in both directions anyway, they share a bus unless something else is said.
pub(super) fn wire(fields: &mut Fields<'_, '_, '_>, both_ways: bool) -> Option<Wire> {
    if both_ways {
        fields.check_keys(WIRE_KEYS);
    }
    let bandwidth = fields.quantity("bandwidth", BytesPerSecond::parse, None);
    let bandwidth = fields.require("bandwidth", bandwidth);
    let latency = fields.quantity("latency", Seconds::parse, None).unwrap_or(Seconds(0.0));
    let bus = fields.identifier("bus").map(str::to_owned);
    let duplex = duplex(fields);
    if duplex == Some(Duplex::Half) && fields.get("bus").is_none() {
        let problem = Problem::HalfDuplexWithoutBus { owner: fields.owner.clone() };
        fields.fault(fields.at("duplex"), problem);
    }
    let duplex = match duplex? {
        Duplex::OneWay if both_ways => Duplex::Half,
        duplex => duplex,
    };
    Some(Wire { bandwidth: bandwidth?, latency, bus, duplex })
}

/// The links of one entry: two if it is duplex, more if its ends are patterns.
fn links(
    index: usize,
    (at, table): &(usize, &DeTable<'_>),
    ids: &Ids<'_>,
    seen: &mut Seen<'_, (usize, usize)>,
    faults: &mut Faults,
) -> Option<Vec<Link>> {
    let mut fields = Fields::new(Owner::NamelessLink(index + 1), table, *at, faults);
    let from = fields.text("from");
    let from = fields.require("from", from);
    let to = fields.text("to");
    let to = fields.require("to", to);
    if let (Some(from), Some(to)) = (from, to) {
        fields.owner = Owner::Link { from: from.to_owned(), to: to.to_owned() };
    }
    fields.check_keys(LINK_KEYS);
    let from = from.map(|pattern| ends(&mut fields, "from", pattern, ids));
    let to = to.map(|pattern| ends(&mut fields, "to", pattern, ids));
    let wire = wire(&mut fields, false);
    let (from, to) = (from?, to?);
    if let ([from], [to]) = (&from[..], &to[..])
        && from == to
    {
        fields.fault(fields.at("to"), Problem::LinkToItself { id: ids.all[*from].to_owned() });
        return None;
    }
    let wire = wire?;
    let mut links = Vec::new();
    for (&from, &to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        links.extend(wire.links(from, to, Clone::clone));
        if seen.first.len() + links.len() > MAX_LINKS {
            fields.fault(fields.at, Problem::TooMany { what: "links", limit: MAX_LINKS });
            return None;
        }
    }
    for link in &links {
        if let Some(line) = seen.before((link.from, link.to), fields.at) {
            let (from, to) = (ids.all[link.from].to_owned(), ids.all[link.to].to_owned());
            fields.fault(fields.at, Problem::DuplicateLink { from, to, line });
        }
    }
    Some(links)
}

/// The devices that an end of a link names; none is an error.
fn ends(fields: &mut Fields<'_, '_, '_>, key: &'static str, pattern: &str, ids: &Ids<'_>) -> Vec<usize> {
    let found: Vec<_> = if pattern.contains('*') {
        (0..ids.all.len()).filter(|index| fits(pattern, ids.all[*index])).collect()
    } else {
        ids.index.get(pattern).copied().into_iter().collect()
    };
    if found.is_empty() {
        let owner = fields.owner.clone();
        let known = ids.index_order().take(MAX_KNOWN).map(str::to_owned).collect();
        fields.fault(fields.at(key), Problem::UnknownDevice { owner, key, id: pattern.to_owned(), known });
    }
    found
}

fn duplex(fields: &mut Fields<'_, '_, '_>) -> Option<Duplex> {
    match fields.get("duplex").map(|value| value.get_ref()) {
        None | Some(DeValue::Boolean(false)) => Some(Duplex::OneWay),
        Some(DeValue::Boolean(true)) => Some(Duplex::Full),
        Some(_) => fields.word("duplex", &[("full", Duplex::Full), ("half", Duplex::Half)]),
    }
}
