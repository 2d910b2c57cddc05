//! Which modules have code of 32 bits, as far as the processes say that have them mapped: what is not read does not say it itself.

use std::collections::{HashMap, HashSet};

use crate::recording::modules::VDSO_32;
use crate::recording::{ModuleId, ModuleTable, TaskEvent};

/// What a process executes from one exec to the next.
#[derive(Debug, Default)]
struct Program {
    /// The kernel has mapped the vDSO of 32 bits into it.
    has_32_bits: bool,
    mapped: Vec<ModuleId>,
}

/// The modules that were seen in programs.
#[derive(Debug, Default)]
struct Seen {
    with_32_bits: HashSet<ModuleId>,
    with_64_bits: HashSet<ModuleId>,
}

impl Seen {
    fn add(&mut self, program: Program) {
        let modules = if program.has_32_bits { &mut self.with_32_bits } else { &mut self.with_64_bits };
        modules.extend(program.mapped);
    }
}

/// Marks the modules that programs of 32 bits alone have mapped.
pub(crate) fn mark_modules_of_32_bits(modules: &mut ModuleTable, events: &[(u64, TaskEvent)]) {
    let vdso_32: HashSet<ModuleId> =
        modules.iter().filter(|(_, module)| module.path == VDSO_32).map(|(id, _)| id).collect();
    if vdso_32.is_empty() {
        return;
    }
    let mut in_order: Vec<&(u64, TaskEvent)> = events.iter().collect();
    in_order.sort_by_key(|(time, _)| *time);
    let (mut running, mut seen) = (HashMap::<u32, Program>::new(), Seen::default());
    for (_, event) in in_order {
        match event {
            TaskEvent::Map { pid, mapping } => {
                // That of the vDSO is not the first one: the kernel maps the program before it.
                let program = running.entry(*pid).or_default();
                program.has_32_bits |= vdso_32.contains(&mapping.module);
                program.mapped.push(mapping.module);
            }
            TaskEvent::Comm { pid, exec: true, .. } | TaskEvent::Exit { pid } => {
                running.remove(pid).into_iter().for_each(|program| seen.add(program));
            }
            TaskEvent::Fork { pid, ppid, inherits } => {
                let has_32_bits = *inherits && running.get(ppid).is_some_and(|parent| parent.has_32_bits);
                let before = running.insert(*pid, Program { has_32_bits, mapped: Vec::new() });
                before.into_iter().for_each(|program| seen.add(program));
            }
            _ => {}
        }
    }
    running.into_values().for_each(|program| seen.add(program));
    modules.have_32_bits(seen.with_32_bits.difference(&seen.with_64_bits));
}
