//! Takes the output of `perf script -D` apart.

use super::one_space;

/// Beginnings of the lines that tell of a sample's (or a READ record's) fields.
const DETAILS: [&str; 16] = [
    "... FP chain",
    ".....",
    "... branch stack",
    "... user regs",
    "... intr regs",
    "....",
    "... ustack",
    "... weight",
    " . data_src",
    " .. phys_addr",
    " .. data page size",
    " .. code page size",
    "... transaction",
    "... sample_read",
    "... time",
    "... id ",
];

/// One text per record: `[cpu] [time] offset [size]: PERF_RECORD_...` and the lines that tell its fields.
pub fn records(dump: &str) -> Vec<String> {
    let mut records: Vec<String> = Vec::new();
    let (mut in_record, mut in_info) = (false, false);
    for line in dump.lines() {
        if let Some(name) = record_name(line) {
            if name == "ATTR" {
                (in_record, in_info) = (false, false);
                continue;
            }
            in_info = name == "AUXTRACE_INFO";
            in_record = matches!(name, "SAMPLE" | "READ");
            records.push(first_line(line, name));
            continue;
        }
        // `  TSC bit             0x400`; an empty line ends them.
        in_info &= line.starts_with("  ");
        if let Some((number, record)) = number_after_name(line).filter(|_| in_info).zip(records.last_mut()) {
            record.push_str(&format!("\n{number}"));
        }
        let more_namespaces =
            line.starts_with("\t\t") && records.last().is_some_and(|last| last.contains("_NAMESPACES"));
        let detail =
            in_record && (DETAILS.iter().any(|start| line.starts_with(start)) || line.starts_with("... lost "));
        if !detail && !more_namespaces {
            in_record = false;
            continue;
        }
        if let Some(record) = records.last_mut() {
            record.push('\n');
            record.push_str(&detail_line(line));
        }
    }
    records
}

/// The type's name if the line is the first of a record.
fn record_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("]: PERF_RECORD_")?;
    let place = before.rsplit(' ').nth(1)?;
    let is_place = place.starts_with("0x") || place == "0";
    if !is_place || !before.rsplit(' ').next()?.starts_with("[0x") {
        return None;
    }
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
    Some(&after[..end])
}

fn number_after_name(line: &str) -> Option<u64> {
    let word = line.split_whitespace().last()?;
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

fn first_line(line: &str, name: &str) -> String {
    // Only the names of perf's own records are compared, but for AUXTRACE and AUXTRACE_INFO.
    const BY_NAME: [&str; 14] = [
        "EVENT_TYPE",
        "TRACING_DATA",
        "BUILD_ID",
        "FINISHED_ROUND",
        "ID_INDEX",
        "THREAD_MAP",
        "CPU_MAP",
        "STAT_CONFIG",
        "STAT",
        "STAT_ROUND",
        "EVENT_UPDATE",
        "TIME_CONV",
        "FEATURE",
        "FINISHED_INIT",
    ];
    if BY_NAME.contains(&name) {
        let end = line.find("PERF_RECORD_").unwrap() + "PERF_RECORD_".len() + name.len();
        return one_space(&line[..end]);
    }
    one_space(line.trim_end().trim_end_matches(": unhandled!"))
}

fn detail_line(line: &str) -> String {
    if let Some(weight) = line.strip_prefix("... weight: ") {
        // perf 6.1 does not read the third number on x86.
        let parts: Vec<_> = weight.split(',').take(2).collect();
        return format!("... weight: {}", parts.join(","));
    }
    one_space(line)
}
