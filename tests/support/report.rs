//! Pages of `hbbp report`, and what is in them.
#![allow(dead_code)]

use serde_json::Value;

use crate::support::stdout;

/// A page with the data that is in it.
pub struct Page {
    pub html: String,
    pub data: Value,
}

impl Page {
    /// What `hbbp report` writes with these arguments.
    pub fn of(arguments: &[&str]) -> Self {
        let html = stdout(&[&["report", "-o", "-"], arguments].concat());
        let packed = html.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data = serde_json::from_reader(flate2::read::ZlibDecoder::new(&bytes(packed)[..])).unwrap();
        Page { html, data }
    }

    /// The columns of a table.
    pub fn column(&self, table: &str, column: &str) -> &Vec<Value> {
        self.data[table][column].as_array().unwrap_or_else(|| panic!("{table}.{column}"))
    }

    /// The key of a name.
    pub fn key(&self, name: &str) -> &Value {
        let keys = self.data["keys"].as_array().unwrap();
        keys.iter().find(|key| key["name"] == name).unwrap_or_else(|| panic!("there is no key {name}"))
    }
}

/// What stands there in base64.
fn bytes(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("{letter} is no letter of base64"),
    };
    let letters: Vec<u8> = text.trim_end_matches('=').bytes().collect();
    let group = |letters: &[u8]| {
        let bits =
            letters.iter().enumerate().fold(0, |bits, (at, letter)| bits | u32::from(digit(*letter)) << (18 - 6 * at));
        bits.to_be_bytes()[1..letters.len()].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}

/// Whether two numbers are the same but for digits that a page leaves out; both may be null.
pub fn is_near(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1e-9),
        (one, other) => one.is_none() && other.is_none(),
    }
}
