//! The page: one file, with its style, its script and its data.

use std::io::{BufWriter, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::data::Data;
use super::digest::digest;
use crate::output::escaped;

const STYLE: &str = include_str!("../../../page/page.css");
const BODY: &str = include_str!("../../../page/body.html");

/// The modules of the script, each after those that it imports from.
const MODULES: [&str; 22] = [
    include_str!("../../../page/number.js"),
    include_str!("../../../page/text.js"),
    include_str!("../../../page/grouped.js"),
    include_str!("../../../page/element.js"),
    include_str!("../../../page/facts.js"),
    include_str!("../../../page/focus.js"),
    include_str!("../../../page/pivot.js"),
    include_str!("../../../page/compared.js"),
    include_str!("../../../page/looped.js"),
    include_str!("../../../page/recording.js"),
    include_str!("../../../page/unpack.js"),
    include_str!("../../../page/changes.js"),
    include_str!("../../../page/summary.js"),
    include_str!("../../../page/chart.js"),
    include_str!("../../../page/table.js"),
    include_str!("../../../page/mix.js"),
    include_str!("../../../page/functions.js"),
    include_str!("../../../page/graph.js"),
    include_str!("../../../page/code.js"),
    include_str!("../../../page/loops.js"),
    include_str!("../../../page/flame.js"),
    include_str!("../../../page/main.js"),
];

/// Writes the page.
pub fn write(title: &str, data: &Data<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let script = script();
    let (script_digest, style_digest) = (digest(&script), digest(STYLE));
    let policy = format!(
        "default-src 'none'; script-src '{script_digest}'; style-src '{style_digest}'; base-uri 'none'; form-action 'none'"
    );
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}: hbbp</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{BODY}\
         <script type=\"application/zlib;base64\" id=\"data\">",
        escaped(title)
    )?;
    // A sixth of the size. Higher levels take much longer than what they save takes to load.
    let packed = ZlibEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::new(5));
    let mut packed = BufWriter::with_capacity(1 << 16, packed);
    serde_json::to_writer(&mut packed, data)?;
    packed.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?.finish()?;
    Ok(write!(out, "</script>\n<script type=\"module\">{script}</script>\n</body>\n</html>\n")?)
}

/// One script of all modules. Each is a function that returns what it exports, so that only these names must differ.
fn script() -> String {
    let mut script = String::from("\n");
    for module in MODULES {
        let exported: Vec<&str> = module.lines().filter_map(exported).collect();
        let exported = exported.join(", ");
        let result = if exported.is_empty() { String::new() } else { format!("const {{ {exported} }} = ") };
        script += &format!("{result}(() => {{\n");
        for line in module.lines().filter(|line| !line.starts_with("import ")) {
            script += line.strip_prefix("export ").unwrap_or(line);
            script.push('\n');
        }
        script += &format!("return {{ {exported} }};\n}})();\n");
    }
    script
}

/// The name that a line of a module exports.
fn exported(line: &str) -> Option<&str> {
    let named = line.strip_prefix("export ")?.trim_start_matches("async ").split_once(' ')?.1;
    named.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_of_one_piece() {
        let script = script();
        assert!(!script.lines().any(|line| line.starts_with("import") || line.starts_with("export")), "{script}");
        assert_eq!(exported("export async function unpacked(text) {"), Some("unpacked"));
        assert_eq!(exported("export const CHANGE_TITLES = ["), Some("CHANGE_TITLES"));
        assert!(!script.to_ascii_lowercase().contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.contains("</") && !STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
