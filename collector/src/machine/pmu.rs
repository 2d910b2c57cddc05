//! A PMU as `/sys/bus/event_source/devices` describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::cpu_list::CpuList;

/// One performance monitoring unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pmu {
    /// Name of its directory: `cpu`, `cpu_core`, `ibs_op`.
    pub name: String,
    /// What `perf_event_attr.type` selects it with.
    #[serde(rename = "type")]
    pub kind: u32,
    /// The CPUs it counts on; `None` where it counts on all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
    /// Where each term of an event goes: `umask` -> `config:8-15`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub format: BTreeMap<String, String>,
    /// Events it names: `instructions` -> `event=0xc0`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, String>,
    /// What it can do: `max_precise` -> `3`, `branches` -> `32`, `pmu_name` -> `skylake`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caps: BTreeMap<String, String>,
}

/// What identifies an event to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCode {
    /// The number that stands for it in `perf_event_attr.type`.
    pub kind: u32,
    /// `config`, `config1`, `config2`, `config3`.
    pub config: [u64; 4],
}

impl EventCode {
    /// An event whose code is one word.
    pub fn new(kind: u32, config: u64) -> Self {
        Self { kind, config: [config, 0, 0, 0] }
    }
}

/// A term or event the PMU does not have, or a value that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// Neither a format field, nor an event.
    #[error("PMU {pmu} has no term or event `{term}`")]
    Unknown {
        /// The PMU that was asked.
        pmu: String,
        /// The term that was given.
        term: String,
    },
    /// The value of a term is neither a decimal nor a hexadecimal number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// More bits than the field has.
    #[error("{value:#x} does not fit `{term}`, which has {bits} bits")]
    TooLarge {
        /// The term that was given.
        term: String,
        /// The value that was given for it.
        value: u64,
        /// Bits in the field.
        bits: u32,
    },
    /// The kernel describes the field in a way this version does not know.
    #[error("PMU {pmu} describes `{term}` as `{format}`, which is not config:BITS")]
    Format {
        /// The PMU that describes the term.
        pmu: String,
        /// The term that it describes.
        term: String,
        /// How it describes the term.
        format: String,
    },
}

impl Pmu {
    /// A number among its capabilities.
    pub fn cap(&self, name: &str) -> Option<u32> {
        self.caps.get(name)?.trim().parse().ok()
    }

    /// Sets the event code's bits for `terms`, such as `event=0xc4,umask=0x20` or `branch-instructions`.
    ///
    /// Terms that are not the event's code are handed to `other` (`period=1000`, `name=x`); it returns whether it knows them.
    ///
    /// # Errors
    /// An unknown term, or a value that does not fit its field.
    pub fn encode(&self, terms: &str, other: &mut dyn FnMut(&str, &str) -> bool) -> Result<EventCode, TermError> {
        let mut code = EventCode::new(self.kind, 0);
        self.add_terms(terms, &mut code, other, true)?;
        Ok(code)
    }

    fn add_terms(
        &self,
        terms: &str,
        code: &mut EventCode,
        other: &mut dyn FnMut(&str, &str) -> bool,
        names_allowed: bool,
    ) -> Result<(), TermError> {
        for term in terms.split(',').map(str::trim).filter(|term| !term.is_empty()) {
            let (name, value) = term.split_once('=').unwrap_or((term, ""));
            if let Some(word) = config_word(name) {
                code.config[word] |= number(value)?;
            } else if let Some(format) = self.format.get(name) {
                let value = if value.is_empty() { 1 } else { number(value)? };
                self.set_field(code, name, format.trim(), value)?;
            } else if let Some(alias) = self.events.get(name).filter(|_| names_allowed && value.is_empty()) {
                self.add_terms(alias, code, other, false)?;
            } else if !other(name, value) {
                return Err(TermError::Unknown { pmu: self.name.clone(), term: name.to_owned() });
            }
        }
        Ok(())
    }

    /// Spreads `value` over the field's bit ranges, lowest first: `config:0-7,32-35`.
    fn set_field(&self, code: &mut EventCode, term: &str, format: &str, value: u64) -> Result<(), TermError> {
        let bad = || TermError::Format { pmu: self.name.clone(), term: term.to_owned(), format: format.to_owned() };
        let (word, ranges) = format.split_once(':').ok_or_else(bad)?;
        let word = config_word(word).ok_or_else(bad)?;
        let (mut rest, mut bits) = (value, 0);
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let low: u32 = low.parse().map_err(|_| bad())?;
            let high: u32 = high.parse().map_err(|_| bad())?;
            if low > high || high > 63 {
                return Err(bad());
            }
            let width = high - low + 1;
            let mask = u64::MAX >> (64 - width);
            code.config[word] |= (rest & mask) << low;
            rest = rest.checked_shr(width).unwrap_or(0);
            bits += width;
        }
        if rest == 0 { Ok(()) } else { Err(TermError::TooLarge { term: term.to_owned(), value, bits }) }
    }
}

fn config_word(name: &str) -> Option<usize> {
    ["config", "config1", "config2", "config3"].iter().position(|&word| word == name)
}

/// A decimal number, or a hexadecimal one after `0x`.
pub(crate) fn number(text: &str) -> Result<u64, TermError> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| TermError::NotANumber(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn amd() -> Pmu {
        Pmu {
            name: "cpu".into(),
            kind: 4,
            format: map(&[
                ("event", "config:0-7,32-35\n"),
                ("umask", "config:8-15"),
                ("ldlat", "config1:0-15"),
                ("inv", "config:23"),
                ("odd", "sideways"),
            ]),
            events: map(&[("branches", "event=0xc2"), ("loop", "loop"), ("named", "event=0x1,period=5")]),
            ..Pmu::default()
        }
    }

    fn check(terms: &str, config: [u64; 4]) {
        assert_eq!(amd().encode(terms, &mut |_, _| false).unwrap().config, config, "{terms}");
    }

    #[test]
    fn terms_go_where_the_format_says() {
        check("event=0xc4,umask=0x20", [0x20c4, 0, 0, 0]);
        check("event=0x4c4", [0x4_0000_00c4, 0, 0, 0]);
        check("branches,inv", [0x80_00c2, 0, 0, 0]);
        check("event=1,ldlat=30", [1, 30, 0, 0]);
        check("config=0x1234,config2=7", [0x1234, 0, 7, 0]);
    }

    #[test]
    fn other_terms_are_handed_on() {
        let mut seen = Vec::new();
        amd()
            .encode("named,name=x", &mut |name, value| {
                seen.push(format!("{name}={value}"));
                true
            })
            .unwrap();
        assert_eq!(seen, ["period=5", "name=x"]);
    }

    #[test]
    fn errors_name_the_term() {
        let error = |terms: &str| amd().encode(terms, &mut |_, _| false).unwrap_err().to_string();
        assert_eq!(error("evnt=1"), "PMU cpu has no term or event `evnt`");
        assert_eq!(error("umask=0x100"), "0x100 does not fit `umask`, which has 8 bits");
        assert_eq!(error("event=zz"), "`zz` is not a number");
        assert_eq!(error("loop"), "PMU cpu has no term or event `loop`");
        assert!(error("odd=1").contains("sideways"));
    }
}
