// SPDX-License-Identifier: GPL-2.0
//! The settings of a network device: how its packets leave, and who works on those that come.

use std::collections::BTreeMap;

use andante_document::{DocumentError, Node, Section};
use andante_net::Wanted;
use andante_net::receive::{Hook, How, Order};
use andante_sched::class::{ClassPath, WEIGHT_MAX, WEIGHT_MIN};

/// The settings of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetDevice {
    /// How `andante net attach` is to have it.
    pub attach: Wanted,
    /// Weights that classes have on it other than those of the CPU.
    pub weights: BTreeMap<ClassPath, u32>,
    /// Whose work packets that come are, for `andante net receive`.
    pub receive: Option<ClassPath>,
    /// And how they are.
    pub how: How,
}

/// A table for each device.
pub(super) fn net(top: &mut Section<'_>) -> Result<BTreeMap<String, NetDevice>, DocumentError> {
    let Some(devices) = top.node("net") else {
        return Ok(BTreeMap::new());
    };
    let entries = Section::new(devices, "net")?.entries();
    entries
        .map(|(name, path, node)| Ok((name.to_owned(), device(node, &path)?)))
        .collect()
}

fn device(node: &Node, path: &str) -> Result<NetDevice, DocumentError> {
    let mut section = Section::new(node, path)?;
    let rate: Option<String> = section.get("rate")?;
    let rate = rate.map(|text| {
        let rate = text.parse();
        rate.map_err(|message: String| section.error("rate", message))
    });
    let attach = Wanted {
        rate: rate.transpose()?,
        replace: section.get("replace")?.unwrap_or(false),
    };
    let receive: Option<String> = section.get("receive")?;
    let receive = receive.map(|text| {
        ClassPath::parse(&text).map_err(|error| section.error("receive", error.to_string()))
    });
    let receive = receive.transpose()?;
    let order = match section.get("receive_last")? {
        Some(true) => Order::Last,
        _ => Order::Equal,
    };
    // Where it costs least, if nothing is said.
    let hooks = Hook::ALL.map(|hook| (hook.name(), Some(hook)));
    let early = match section.get::<String>("receive_hook")? {
        Some(_) => section.one_of("receive_hook", &hooks)?,
        None => None,
    };
    let weights = section
        .node("weights")
        .map(|node| weights(node, &format!("{path}.weights")));
    section.finish()?;
    Ok(NetDevice {
        attach,
        weights: weights.transpose()?.unwrap_or_default(),
        receive,
        how: How { order, early },
    })
}

/// Classes and their weights.
fn weights(node: &Node, path: &str) -> Result<BTreeMap<ClassPath, u32>, DocumentError> {
    let entries = Section::new(node, path)?.entries();
    entries
        .map(|(class, path, node)| {
            let wrong = |message: String| node.origin.error(&path, message);
            let class = ClassPath::parse(class).map_err(|error| wrong(error.to_string()))?;
            let range = WEIGHT_MIN..=WEIGHT_MAX;
            match node.value {
                andante_document::Value::Integer(weight)
                    if u32::try_from(weight).is_ok_and(|weight| range.contains(&weight)) =>
                {
                    Ok((class, weight as u32))
                }
                _ => Err(wrong(format!(
                    "no weight: give a whole number from {WEIGHT_MIN} to {WEIGHT_MAX}"
                ))),
            }
        })
        .collect()
}
