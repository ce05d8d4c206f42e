//! Conversion from TOML to a system.

use super::{
    Contention, DescriptionError, Device, Errors, Execution, Link, Owner, System,
    error::Lines,
    fields::{Diagnostics, Fields},
    nodes::{self, NodeReader},
    rates::{self, GivenRates},
    resolve_path,
    units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds},
};
use crate::{
    device::{self, Kind},
    pattern::matches,
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
    "cost_model",
    "weights",
    "node",
];

const LINK_KEYS: &[&str] = &["from", "to", "bandwidth", "latency", "bus", "duplex"];
/// Keys of a link without ends.
pub(super) const LINK_PROPERTY_KEYS: &[&str] = &["bandwidth", "latency", "bus", "duplex"];

/// Maximum number of threads.
const MAX_THREADS: u32 = 1 << 16;

const MAX_BATCH_SIZE: u32 = 1 << 30;

/// Maximum number of devices, which bounds the time and memory of patterns in links.
pub(super) const MAX_DEVICES: usize = 1024;
const MAX_LINKS: usize = 1 << 16;

/// Suffix of the bus of the reverse direction of a full-duplex link: the two directions do not contend.
pub(super) const REVERSE: &str = ".reverse";

/// Reads a description. Reports all errors, except those that may be consequences of others.
pub(super) fn system(file: &str, text: &str) -> Result<System, Errors> {
    let lines = Lines::new(text);
    let (document, syntax) = DeTable::parse_recoverable(text);
    let mut diagnostics: Diagnostics = Vec::new();
    for error in &syntax {
        let at = error.span().map_or(0, |span| span.start);
        diagnostics.push((at, DescriptionError::Syntax(error.message().to_owned())));
    }
    // Recovered text after syntax errors would cause spurious errors.
    let system = if syntax.is_empty() { tables(file, &lines, document.get_ref(), &mut diagnostics) } else { None };
    match system {
        Some(system) if diagnostics.is_empty() => Ok(system),
        _ => Err(Errors::new(file, &lines, diagnostics)),
    }
}

fn tables(file: &str, lines: &Lines<'_>, document: &DeTable<'_>, diagnostics: &mut Diagnostics) -> Option<System> {
    let mut fields = Fields::new(Owner::System, document, 0, diagnostics);
    fields.check_keys(SYSTEM_KEYS);
    let name = fields.text("name").map(str::to_owned);
    let words = [("off", Contention::Off), ("exclusive", Contention::Exclusive), ("shared", Contention::Shared)];
    let contention = fields.word("contention", &words).unwrap_or_default();
    let device_tables = list(&mut fields, "device")?;
    let link_tables = list(&mut fields, "link")?;
    let node_tables = list(&mut fields, "node")?;
    let network = nodes::network(&mut fields, !node_tables.is_empty());
    if device_tables.is_empty() && node_tables.is_empty() {
        fields.report(0, DescriptionError::NoDevice);
    }
    if let Some((at, _)) = device_tables.get(MAX_DEVICES) {
        fields.report(*at, DescriptionError::TooMany { what: "devices", limit: MAX_DEVICES });
        return None;
    }

    let mut seen = FirstOccurrences { lines, first: HashMap::new() };
    let devices: Vec<_> =
        device_tables.iter().enumerate().map(|(i, table)| device(file, i, table, &mut seen, diagnostics)).collect();
    let mut reader = NodeReader { file, seen: &mut seen, devices, nodes: Vec::new() };
    for (index, table) in node_tables.iter().enumerate() {
        reader.add(index, table, diagnostics)?;
    }
    let NodeReader { devices, nodes, .. } = reader;
    // Links may refer to devices that have other errors.
    let all: Vec<_> = devices.iter().map(|(id, _)| id.as_deref().unwrap_or_default()).collect();
    let index = all.iter().enumerate().rev().map(|(index, id)| (*id, index)).filter(|(id, _)| !id.is_empty()).collect();
    let ids = Ids { all, index };
    let mut seen = FirstOccurrences { lines, first: HashMap::new() };
    let mut all_links = Vec::new();
    for (index, table) in link_tables.iter().enumerate() {
        all_links.extend(links(index, table, &ids, &mut seen, diagnostics).into_iter().flatten());
    }
    if nodes::most_links(&nodes, network.as_ref()) + all_links.len() > MAX_LINKS {
        diagnostics.push((0, DescriptionError::TooMany { what: "links", limit: MAX_LINKS }));
        return None;
    }
    let generated = nodes::node_links(&nodes, network.as_ref(), &all_links);
    all_links.extend(generated);
    let mut system = System {
        name: name.unwrap_or_else(|| file.to_owned()),
        devices: devices.into_iter().map(|(_, device)| device).collect::<Option<_>>()?,
        links: all_links,
        contention,
        warnings: Vec::new(),
    };
    let unknown = |device: &usize| system.devices[*device].streams_weights && system.weight_link(*device).is_none();
    let warning = |device: usize| {
        let id = &system.devices[device].id;
        format!(
            "device '{id}' streams its weights, but has no [[link]] from the host: the time of these copies is not counted"
        )
    };
    system.warnings = (0..system.devices.len()).filter(unknown).map(warning).collect();
    Some(system)
}

/// Returns the tables under `[[key]]` with their byte offsets.
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
        fields.report(value.span().start, DescriptionError::NotATableArray { key });
    }
    tables
}

fn table<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> Option<(usize, &'t DeTable<'i>)> {
    value.get_ref().as_table().map(|table| (value.span().start, table))
}

/// First occurrences of keys that must be unique.
pub(super) struct FirstOccurrences<'t, K> {
    lines: &'t Lines<'t>,
    first: HashMap<K, usize>,
}

impl<K: std::hash::Hash + Eq> FirstOccurrences<'_, K> {
    /// Returns the line of an earlier occurrence; otherwise records this one.
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
    seen: &mut FirstOccurrences<'_, String>,
    diagnostics: &mut Diagnostics,
) -> (Option<String>, Option<Device>) {
    let mut fields = Fields::new(Owner::UnnamedDevice(index + 1), table, *at, diagnostics);
    let id = fields.identifier("id");
    let id = fields.require("id", id).map(str::to_owned);
    if let Some(id) = &id {
        fields.owner = Owner::Device(id.clone());
        let id_at = fields.at("id");
        if let Some(line) = seen.before(id.clone(), id_at) {
            fields.report(id_at, DescriptionError::DuplicateDevice { id: id.clone(), line });
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
    let given = GivenRates {
        f32: flops(fields, "flops"),
        f64: flops(fields, "flops_f64"),
        f16: flops(fields, "flops_f16"),
        bf16: flops(fields, "flops_bf16"),
        i8: flops(fields, "flops_i8"),
        bandwidth: fields.quantity("bandwidth", BytesPerSecond::parse, None),
    };
    let launch = fields.quantity("launch", Seconds::parse, None);
    let execution = fields.word("execution", &[("eager", Execution::Eager), ("captured", Execution::Captured)]);
    let profile = fields.text("profile").map(|path| resolve_path(file, path));
    let cost_model = fields.text("cost_model").map(|path| resolve_path(file, path));
    let weights = fields.word("weights", &[("resident", false), ("streamed", true)]);
    let node = fields.identifier("node").map(str::to_owned);

    let kind = kind?;
    let mut is_valid = true;
    if let Some(arch) = arch
        && let Err(reason) = kind.check_arch(arch)
    {
        let error = DescriptionError::NotAnArch { owner: fields.owner.clone(), text: arch.to_owned(), reason };
        fields.report(fields.at("arch"), error);
        is_valid = false;
    }
    check_applies(fields, kind, "threads", |kind| kind.uses_threads());
    check_applies(fields, kind, "weights", |kind| kind.streams_weights());
    // An invalid rate was reported already.
    let wrong = |key, is_valid: bool| fields.get(key).is_some() && !is_valid;
    is_valid &= !wrong("threads", threads.is_some())
        && !wrong("arch", arch.is_some())
        && !wrong("flops", given.f32.is_some())
        && !wrong("bandwidth", given.bandwidth.is_some());
    let rates = match rates::complete(kind, arch, threads, given) {
        Ok(rates) => Some(rates),
        Err(remedy) => {
            if is_valid {
                fields.report(fields.at, DescriptionError::NoRates { owner: fields.owner.clone(), remedy });
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
        cost_model,
        streams_weights: weights.unwrap_or_default(),
        node,
    })
}

/// Reports a key that does not apply to devices of a kind.
fn check_applies(fields: &mut Fields<'_, '_, '_>, kind: Kind, key: &'static str, applies: fn(Kind) -> bool) {
    if fields.get(key).is_some() && !applies(kind) {
        let (owner, kinds) = (fields.owner.clone(), device::names(applies));
        fields.report(fields.at(key), DescriptionError::NotForThisKind { owner, key, kinds });
    }
}

/// Ids of the devices.
struct Ids<'d> {
    /// Id of each device; empty if it has none.
    all: Vec<&'d str>,
    /// Index by id; that of the first device for duplicate ids.
    index: HashMap<&'d str, usize>,
}

impl<'d> Ids<'d> {
    fn index_order(&self) -> impl Iterator<Item = &'d str> {
        self.all.iter().copied().filter(|id| !id.is_empty())
    }
}

/// Maximum number of devices that an error lists.
const MAX_KNOWN: usize = 12;

#[derive(Clone, Copy, PartialEq)]
enum Duplex {
    OneWay,
    Half,
    Full,
}

/// Properties of a link, without its ends.
#[derive(Clone)]
pub(super) struct LinkProperties {
    bandwidth: BytesPerSecond,
    latency: Seconds,
    bus: Option<String>,
    duplex: Duplex,
}

impl LinkProperties {
    /// Returns true if the two directions are independent of each other.
    pub(super) fn is_full_duplex(&self) -> bool {
        self.duplex == Duplex::Full
    }

    /// Returns the links between two devices: one, or two if it is duplex. `bus` renames buses.
    pub(super) fn links(&self, from: usize, to: usize, bus: impl Fn(&Option<String>) -> Option<String>) -> Vec<Link> {
        let Self { bandwidth, latency, duplex, .. } = *self;
        let reverse_bus = match duplex {
            Duplex::Full => self.bus.as_ref().map(|bus| format!("{bus}{REVERSE}")),
            Duplex::Half | Duplex::OneWay => self.bus.clone(),
        };
        let forward = Link { from, to, bandwidth, latency, bus: bus(&self.bus) };
        let reverse = Link { from: to, to: from, bandwidth, latency, bus: bus(&reverse_bus) };
        if duplex == Duplex::OneWay { vec![forward] } else { vec![forward, reverse] }
    }
}

/// Reads the properties of a link. With `both_ways` it is always bidirectional, and half duplex by default.
pub(super) fn link_properties(fields: &mut Fields<'_, '_, '_>, both_ways: bool) -> Option<LinkProperties> {
    let bandwidth = fields.quantity("bandwidth", BytesPerSecond::parse, None);
    let bandwidth = fields.require("bandwidth", bandwidth);
    let latency = fields.quantity("latency", Seconds::parse, None).unwrap_or(Seconds(0.0));
    let bus = fields.identifier("bus").map(str::to_owned);
    let duplex = duplex(fields);
    if duplex == Some(Duplex::Half) && fields.get("bus").is_none() {
        let error = DescriptionError::HalfDuplexWithoutBus { owner: fields.owner.clone() };
        fields.report(fields.at("duplex"), error);
    }
    let duplex = match duplex? {
        Duplex::OneWay if both_ways => Duplex::Half,
        duplex => duplex,
    };
    Some(LinkProperties { bandwidth: bandwidth?, latency, bus, duplex })
}

/// Returns the links of one entry: two if it is duplex, more if its ends are patterns.
fn links(
    index: usize,
    (at, table): &(usize, &DeTable<'_>),
    ids: &Ids<'_>,
    seen: &mut FirstOccurrences<'_, (usize, usize)>,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Link>> {
    let mut fields = Fields::new(Owner::UnnamedLink(index + 1), table, *at, diagnostics);
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
    let properties = link_properties(&mut fields, false);
    let (from, to) = (from?, to?);
    if let ([from], [to]) = (&from[..], &to[..])
        && from == to
    {
        fields.report(fields.at("to"), DescriptionError::LinkToItself { id: ids.all[*from].to_owned() });
        return None;
    }
    let properties = properties?;
    let mut links = Vec::new();
    for (&from, &to) in from.iter().flat_map(|from| to.iter().map(move |to| (from, to))).filter(|(from, to)| from != to)
    {
        links.extend(properties.links(from, to, Clone::clone));
        if seen.first.len() + links.len() > MAX_LINKS {
            fields.report(fields.at, DescriptionError::TooMany { what: "links", limit: MAX_LINKS });
            return None;
        }
    }
    for link in &links {
        if let Some(line) = seen.before((link.from, link.to), fields.at) {
            let (from, to) = (ids.all[link.from].to_owned(), ids.all[link.to].to_owned());
            fields.report(fields.at, DescriptionError::DuplicateLink { from, to, line });
        }
    }
    Some(links)
}

/// Returns the devices that match an end of a link; reports an error if there are none.
fn ends(fields: &mut Fields<'_, '_, '_>, key: &'static str, pattern: &str, ids: &Ids<'_>) -> Vec<usize> {
    let found: Vec<_> = if pattern.contains('*') {
        (0..ids.all.len()).filter(|index| matches(pattern, ids.all[*index])).collect()
    } else {
        ids.index.get(pattern).copied().into_iter().collect()
    };
    if found.is_empty() {
        let owner = fields.owner.clone();
        let known = ids.index_order().take(MAX_KNOWN).map(str::to_owned).collect();
        fields.report(fields.at(key), DescriptionError::UnknownDevice { owner, key, id: pattern.to_owned(), known });
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
