//! What the Firefox Profiler reads: its processed format, of the version that samply writes.
//!
//! One sample for each context, a millisecond apart, whose weight is what counts. The format's weights have 32 bits here: where they are too
//! few, all are divided by a power of ten, which the name of the thread says.

use std::collections::HashMap;
use std::io::{self, Write};

use analyzer::recording::{ModuleId, ModuleKind};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile,
    ReferenceTimestamp, SamplingInterval, Timestamp, WeightType,
};

use crate::output::profile::contexts::{Contexts, UNKNOWN_CALLERS};

/// Modules that are told apart within a category, which numbers them with 16 bits.
const MOST_MODULES: usize = 60_000;

/// Writes the profile. Returns what is not in it, in sentences.
pub fn firefox(contexts: &Contexts<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let largest = contexts.stacks().map(|(_, instructions)| instructions).max().unwrap_or(0);
    let mut divisor = 1;
    while largest / divisor > i32::MAX as u64 {
        divisor *= 10;
    }
    let unit = match divisor {
        1 => contexts.unit().to_owned(),
        _ => format!("{} / {divisor}", contexts.unit()),
    };
    let product = format!("hbbp {}", env!("CARGO_PKG_VERSION"));
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let mut profile = Profile::new(&product, start, SamplingInterval::from_millis(1));
    // Names are names already: it shall look for no symbols.
    profile.set_symbolicated(true);
    let mut categories = Categories::new(&mut profile);
    let process = profile.add_process(&contexts.title, 1, Timestamp::from_millis_since_reference(0.0));
    let thread = profile.add_thread(process, 1, Timestamp::from_millis_since_reference(0.0), false);
    profile.set_thread_name(thread, &unit);
    profile.set_thread_samples_weight_type(thread, WeightType::Samples);
    profile.add_initial_visible_thread(thread);
    profile.add_initial_selected_thread(thread);

    let frame = |profile: &mut Profile, name: &str, category_pair: CategoryPairHandle| {
        let frame = Frame::Label(profile.intern_string(name));
        profile.intern_frame(thread, FrameInfo { frame, category_pair, flags: FrameFlags::empty() })
    };
    let root = frame(&mut profile, UNKNOWN_CALLERS, CategoryHandle::OTHER.into());
    let root = profile.intern_stack(thread, None, root);
    let mut frames = Vec::with_capacity(contexts.calls.functions.len());
    for function in 0..contexts.calls.functions.len() {
        let category = categories.of(contexts, function, &mut profile);
        frames.push(frame(&mut profile, &contexts.name(function), category));
    }
    let (mut samples, mut small) = (0, 0);
    for (functions, instructions) in contexts.stacks() {
        let weight = i32::try_from(instructions.saturating_add(divisor / 2) / divisor).unwrap_or(i32::MAX);
        if weight == 0 {
            small += 1;
            continue;
        }
        let mut stack = root;
        for frame in functions.iter().filter_map(|&function| frames.get(function)) {
            stack = profile.intern_stack(thread, Some(stack), *frame);
        }
        let time = Timestamp::from_millis_since_reference(f64::from(samples));
        profile.add_sample(thread, time, Some(stack), CpuDelta::ZERO, weight);
        samples += 1;
    }
    serde_json::to_writer(&mut *out, &profile)?;
    writeln!(out)?;
    let scaled = (divisor > 1)
        .then(|| format!("weights are in units of {divisor} {}: the format has 32 bits for one", contexts.counted()));
    let left_out = (small > 0).then(|| format!("left out: {small} contexts of less than half a unit"));
    Ok(scaled.into_iter().chain(left_out).collect())
}

/// A category for each kind of module, and in it a part for each module.
struct Categories {
    files: CategoryHandle,
    kernel: CategoryHandle,
    others: CategoryHandle,
    known: HashMap<ModuleId, CategoryPairHandle>,
}

impl Categories {
    fn new(profile: &mut Profile) -> Self {
        Categories {
            files: profile.add_category("Programs and libraries", CategoryColor::Blue),
            kernel: profile.add_category("Kernel", CategoryColor::Orange),
            others: profile.add_category("Code without a file", CategoryColor::Green),
            known: HashMap::new(),
        }
    }

    fn of(&mut self, contexts: &Contexts<'_>, function: usize, profile: &mut Profile) -> CategoryPairHandle {
        let (Some(of), Some(module)) = (contexts.calls.functions.get(function), contexts.module(function)) else {
            return CategoryHandle::OTHER.into();
        };
        let category = match module.kind {
            ModuleKind::File => self.files,
            ModuleKind::Kernel | ModuleKind::KernelModule => self.kernel,
            ModuleKind::Anonymous | ModuleKind::Unknown => self.others,
        };
        if let Some(known) = self.known.get(&of.module) {
            return *known;
        }
        if self.known.len() >= MOST_MODULES {
            return category.into();
        }
        let part = profile.add_subcategory(category, &module.path);
        self.known.insert(of.module, part);
        part
    }
}
