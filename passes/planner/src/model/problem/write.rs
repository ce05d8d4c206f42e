//! Writer of problems: the same text for the same problem, one node or edge per line.

use sha2::{Digest, Sha256};

use super::{Contention, Device, EdgeNetwork, FORMAT, MemoryModel, Node, Pipeline, Problem, Tensor};
use crate::model::json::{Lines, integers, list, numbers, optional, row, string};
use crate::model::units::{Bytes, number};

impl Problem {
    /// Returns the canonical text: keys in a fixed order, without defaults, one node or edge per line.
    pub fn write(&self) -> String {
        let mut object = Lines::object();
        object.key("format", &string(FORMAT));
        object.key("name", &string(&self.name));
        object.key("L", &self.inputs.to_string());
        object.key("devices", &list(&self.devices, device));
        if let Some(host) = self.host {
            object.key("host", &host.to_string());
        }
        object.key("bandwidth", &matrix(&self.bandwidth));
        if let Some(latency) = &self.link_latency {
            object.key("link_latency", &matrix(latency));
        }
        if let Some(bus) = &self.bus {
            let name = |name: &Option<String>| name.as_deref().map_or_else(|| "null".to_owned(), string);
            object.key("bus", &list(bus, |names| row(names, name)));
        }
        if let Some(machines) = &self.machines {
            object.key("machines", &list(machines, |devices| integers(devices)));
        }
        if self.contention != Contention::default() {
            object.key("contention", &string(&self.contention.to_string()));
        }
        if self.memory_model != MemoryModel::default() {
            object.key("memory_model", &string(&self.memory_model.to_string()));
        }
        object.key("nodes", &list(&self.nodes, node));
        if let Some(edges) = &self.edges {
            object.key("edges", &list(edges, |(from, to)| format!("[{from}, {to}]")));
        }
        if let Some(tensors) = &self.tensors {
            object.key("tensors", &list(tensors, tensor));
        }
        if let Some(modules) = &self.modules {
            object.key("modules", &list(modules, |module| integers(module)));
        }
        if let Some(groups) = &self.colocate {
            object.key("colocate", &list(groups, |group| integers(group)));
        }
        if let Some(cold) = &self.cold {
            object.key("cold", &cold.write());
        }
        if let Some(view) = &self.mtpp {
            object.key("mtpp", &pipeline(view));
        }
        if let Some(view) = &self.edge {
            object.key("edge", &edge_network(view));
        }
        if let Some(meta) = &self.meta {
            // Sorted keys: the hash must not depend on their order in the file.
            let mut meta = meta.clone();
            meta.sort_all_objects();
            object.key("meta", &meta.to_string());
        }
        object.finish() + "\n"
    }

    /// Returns the SHA-256 of the canonical text, by which a plan identifies its problem.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.write());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }
}

fn matrix<T: Copy + Into<f64>>(rows: &[Vec<Option<T>>]) -> String {
    list(rows, |values| row(values, optional))
}

fn device(device: &Device) -> String {
    format!(
        "{{\"id\": {}, \"name\": {}, \"memory\": {}, \"batch_sizes\": {}}}",
        device.id,
        string(&device.name),
        optional(&device.memory),
        integers(&device.batch_sizes)
    )
}

fn node(node: &Node) -> String {
    let mut keys = vec![format!("\"id\": {}", node.id)];
    if let Some(name) = &node.name {
        keys.push(format!("\"name\": {}", string(name)));
    }
    let times: Vec<String> =
        node.time.iter().map(|(size, times)| format!("\"{size}\": {}", row(times, optional))).collect();
    keys.push(format!("\"time\": {{{}}}", times.join(", ")));
    keys.push(format!("\"weight\": {}", number(node.weight)));
    keys.push(format!("\"input\": {}", number(node.input)));
    if let Some(output) = node.output {
        keys.push(format!("\"output\": {}", number(output)));
    }
    if node.scratch != Bytes::ZERO {
        keys.push(format!("\"scratch\": {}", number(node.scratch)));
    }
    if let Some(pin) = node.pin {
        keys.push(format!("\"pin\": {pin}"));
    }
    if let Some(module) = node.module {
        keys.push(format!("\"module\": {module}"));
    }
    format!("{{{}}}", keys.join(", "))
}

fn tensor(tensor: &Tensor) -> String {
    format!("{{\"from\": {}, \"bytes\": {}, \"to\": {}}}", tensor.from, number(tensor.bytes), integers(&tensor.to))
}

fn pipeline(view: &Pipeline) -> String {
    let memory = view.memory.map(|memory| format!(", \"memory\": {}", number(memory))).unwrap_or_default();
    format!(
        "{{\"work\": {}, \"k\": {}, \"bandwidth\": {}{memory}}}",
        numbers(&view.work),
        integers(&view.k),
        number(view.bandwidth)
    )
}

fn edge_network(view: &EdgeNetwork) -> String {
    let mut more = String::new();
    if let Some(splits) = view.splits {
        more += &format!(", \"splits\": {splits}");
    }
    if let Some(threads) = &view.threads {
        more += &format!(", \"threads\": {}", integers(threads));
    }
    if let Some(pins) = &view.pin {
        let pin = |pin: &Option<usize>| pin.map_or_else(|| "null".to_owned(), |machine| machine.to_string());
        more += &format!(", \"pin\": {}", row(pins, pin));
    }
    format!(
        "{{\"flops\": {}, \"rate\": {}, \"bandwidth\": {}, \"edge_bytes\": {}{more}}}",
        numbers(&view.flops),
        numbers(&view.rate),
        row(&view.bandwidth, |values| row(values, optional)),
        numbers(&view.edge_bytes)
    )
}
