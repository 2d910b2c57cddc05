//! What of a flow is in no profile and no table, in sentences.

use analyzer::flow::Flow;

use crate::number::share;

/// What is in no module's flow, in sentences.
pub fn left_out(flow: &Flow) -> Vec<String> {
    let parts = [
        ("branches that are of no code of a file", flow.left_out.branches, flow.branch_total()),
        ("streams that no code of a file can have run along", flow.left_out.streams, flow.range_total()),
        ("samples that are in no code of a file", flow.left_out.samples, flow.sample_total()),
    ];
    parts.into_iter().filter_map(|(what, out, kept)| without_place(what, out, out + kept)).collect()
}

/// What is in no profile that is counted by branches, as a sentence.
pub fn sampled_only(flow: &Flow) -> Option<String> {
    let out = flow.sampled_only();
    let part = share(out, flow.sample_total() + flow.left_out.samples);
    (out > 0.0).then(|| format!("left out: code of which samples were seen, but no branches ({part} of all samples)"))
}

/// What a format has no place for, as a sentence.
pub fn without_place(what: &str, out: f64, all: f64) -> Option<String> {
    (out > 0.0).then(|| format!("left out: {what} ({} of all)", share(out, all)))
}
