//! Counts by source position, for compilers.

use analyzer::MissingDebugInformation;
use analyzer::recording::ModuleKind;
use analyzer::sample_profile::{Names, Placement, SampleProfile, build};
use anyhow::bail;

use crate::output::profile::Profiled;
use crate::output::share;

/// LLVM keeps the lower 32 bits of the count of a direct call (`SampleProfileLoader::generateMDProfMetadata`), so a call that ran more
/// often would look cold. Half of that leaves room for what the compiler adds: flow that it infers, copies that it merges.
const LARGEST_OF_LLVM: u64 = 1 << 31;

/// The sample profile of a binary; what is not in it is said on standard error.
pub fn sample_profile(profiled: &Profiled<'_>, names: Names, threads: usize) -> anyhow::Result<SampleProfile> {
    let (mut profile, notes) = build(profiled.flow, profiled.index, &profiled.code, names, threads);
    let file = profiled.code.binary.file.display();
    notes.iter().for_each(|note| say!("{file}: {note}"));
    let divisor = (names == Names::Llvm).then(|| profile.limit(LARGEST_OF_LLVM)).flatten();
    if let Some(divisor) = divisor {
        say!("all counts are divided by {divisor:.1}: LLVM keeps 32 bits of how often a call runs");
    }
    let recorded = code_of_recording(profiled);
    let missing = || profiled.code.binary.missing_debug_information().map(advice);
    let missing = recorded.as_deref().or_else(missing);
    let without = match missing {
        Some(why) => format!("code without debug information ({why})"),
        None => "code without debug information (compile it with -g or -gline-tables-only)".into(),
    };
    let Placement { without_debug_information, without_line, without_start_line, .. } = profile.placement;
    let unplaced = [
        (without.as_str(), without_debug_information),
        ("instructions that belong to no line of the source", without_line),
        (
            "functions whose debug information does not say where they start (compile with -fdebug-info-for-profiling beside \
             -gline-tables-only, or with -g)",
            without_start_line,
        ),
    ];
    for (what, count) in unplaced.into_iter().filter(|(_, count)| *count > 0.0) {
        say!("not in the profile: {what}: {} of what ran", share(count, profile.placement.all()));
    }
    if profile.functions.is_empty() {
        let advice = missing.unwrap_or(
            "compile it with -g, or with -gline-tables-only and -fdebug-info-for-profiling, and record again; or install its debug \
             file",
        );
        bail!("{file}: no function of it that ran can be placed in the source: {advice}");
    }
    Ok(profile)
}

/// What to do about a file without debug information.
fn advice(missing: MissingDebugInformation) -> &'static str {
    match missing {
        MissingDebugInformation::WithSymbols => {
            "the file is stripped, of its symbols and of any debug information: build it without -s (cargo: `strip = false`), or install its \
             debug file"
        }
        MissingDebugInformation::OfRust => {
            "the file is stripped of debug information, that of Rust's standard library included, as cargo does in profiles \
             without `debug`: build with CARGO_PROFILE_RELEASE_DEBUG=1"
        }
        MissingDebugInformation::Unknown => {
            "the file was built without debug information or stripped of it: compile it with -g or -gline-tables-only, and \
             let nobody strip it"
        }
    }
}

/// What to do about code of the kernel that is the recording's, which has no lines of the source; `None` if it is that of a file.
fn code_of_recording(profiled: &Profiled<'_>) -> Option<String> {
    let module = &profiled.module.module;
    let what = if module.kind == ModuleKind::Kernel { "VMLINUX" } else { "FILE" };
    (module.kind.is_kernel() && profiled.code.binary.is_recorded).then(|| {
        let path = &module.path;
        format!(
            "its code is that of the recording, which has no lines: name its file, with debug information: --binary '{path}={what}'"
        )
    })
}
