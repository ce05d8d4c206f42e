//! Checks of devices, and of the matrices over pairs of them.

use super::unfit;
use crate::model::error::Finding;
use crate::model::problem::Problem;
use crate::model::units::{BytesPerMicro, short_number};

/// Minimum bandwidth: times of transfers over slower links might overflow.
pub(super) const LEAST_BANDWIDTH: BytesPerMicro = BytesPerMicro(1e-9);

impl Problem {
    pub(super) fn check_devices(&self, findings: &mut Vec<Finding>) {
        for (position, device) in self.devices.iter().enumerate() {
            let mut wrong = |message: String| findings.push(Finding::new(self.device_label(position), message));
            if device.id != position {
                wrong(format!("id is {}, but its position is {position}", device.id));
            }
            if device.name.is_empty() {
                wrong("has an empty name".to_owned());
            }
            if let Some(other) = self.devices[..position].iter().position(|other| other.name == device.name) {
                wrong(format!("has the name of device {other}"));
            }
            if let Some(reason) = device.memory.and_then(unfit) {
                wrong(format!("memory {reason}"));
            }
            if device.batch_sizes.is_empty() {
                wrong("batch_sizes is empty, so it can run nothing".to_owned());
            }
            for (index, size) in device.batch_sizes.iter().enumerate() {
                if *size == 0 {
                    wrong("batch_sizes has a 0".to_owned());
                }
                if device.batch_sizes[..index].contains(size) {
                    wrong(format!("batch_sizes has {size} twice"));
                }
            }
        }
        self.check_matrix("bandwidth", &self.bandwidth, findings);
        for (from, row) in self.bandwidth.iter().enumerate() {
            for (to, bandwidth) in row.iter().enumerate() {
                if let Some(bandwidth) =
                    bandwidth.filter(|bandwidth| *bandwidth > BytesPerMicro::ZERO && *bandwidth < LEAST_BANDWIDTH)
                {
                    let message = format!("{} is too small; 0 means that there is no link", short_number(bandwidth));
                    findings.push(Finding::new(format!("bandwidth[{from}][{to}]"), message));
                }
            }
        }
        if let Some(latency) = &self.link_latency {
            self.check_matrix("link_latency", latency, findings);
        }
        if let Some(bus) = &self.bus {
            self.check_square("bus", bus, findings);
        }
    }

    fn check_matrix<T: Copy + Into<f64>>(&self, key: &str, rows: &[Vec<Option<T>>], findings: &mut Vec<Finding>) {
        self.check_square(key, rows, findings);
        for (from, row) in rows.iter().enumerate() {
            for (to, value) in row.iter().enumerate() {
                if let Some(reason) = value.and_then(unfit) {
                    findings.push(Finding::new(format!("{key}[{from}][{to}]"), reason));
                }
            }
        }
    }

    /// Checks that a matrix has a row and a column for each device.
    fn check_square<T>(&self, key: &str, rows: &[Vec<T>], findings: &mut Vec<Finding>) {
        let devices = self.devices.len();
        if rows.len() != devices {
            findings.push(Finding::new(key, format!("has {} rows, but there are {devices} devices", rows.len())));
        }
        for (index, row) in rows.iter().enumerate() {
            if row.len() != devices {
                let message = format!("has {} entries, but there are {devices} devices", row.len());
                findings.push(Finding::new(format!("{key}[{index}]"), message));
            }
        }
    }
}
