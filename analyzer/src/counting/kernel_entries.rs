//! Where system calls enter the kernel, as far as it is known by name.
//!
//! Branch stacks of the hardware have a record from `syscall` to there. Where nothing records branches of the kernel (bursts, a trace of the
//! program), streams run through the instruction: what was executed on both sides of it tells that the kernel was entered in between.

use formats::kernel_entries::{FRED, INT_80, SYSCALL};
use iced_x86::{Code as Opcode, Mnemonic};

use crate::address::{FileOffset, Svma};
use crate::code::LONGEST_INSTRUCTION;
use crate::counting::{AnalysedModule, Code, ModuleCounts, Spot};
use crate::recording::{ModuleKind, ModuleTable};

/// How a program of 64 bits calls the kernel and goes on after it, and the names of where that leads. Bursts have no other code.
const WAYS: [(Way, &[&str]); 2] = [(Way::Syscall, &[SYSCALL]), (Way::Int80, &INT_80)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Syscall,
    Int80,
}

/// The entries of the kernel that system calls lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelEntries(Vec<(Way, Spot)>);

impl KernelEntries {
    /// Those of the kernel that was counted, whose functions are known by its code or by name alone. None where it was not.
    pub fn of<'a>(mut counted: impl Iterator<Item = &'a ModuleCounts>, modules: &ModuleTable) -> Self {
        let is_image = |counts: &&ModuleCounts| {
            let module = modules.get(counts.module);
            module.kind == ModuleKind::Kernel && !module.is_version
        };
        let Some(kernel) = counted.find(is_image) else { return Self::default() };
        let at = |name: &str| {
            let offset = match &kernel.code {
                Code::Read(code) => {
                    let (_, function) = code.functions.iter().find(|(id, _)| code.functions.name(*id) == name)?;
                    FileOffset(code.binary.image.file_offset_of_svma(function.symbol)?)
                }
                Code::Unread { functions, .. } => functions.named(name)?.start,
            };
            Some(Spot { module: kernel.module, base: 0, offset })
        };
        // Where the recording names no functions, a kernel with FRED is taken for one without.
        let has_fred = modules.get(kernel.module).functions.named(FRED).is_some();
        let entry = |(way, names): &(Way, &[&str])| {
            let names = if has_fred { &[FRED] } else { *names };
            Some((*way, names.iter().find_map(|name| at(name))?))
        };
        KernelEntries(WAYS.iter().filter_map(entry).collect())
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the system call of that instruction leads; `None` if that is not known, or if it is no system call.
    pub fn of_instruction(&self, code: &AnalysedModule, at: Svma) -> Option<Spot> {
        let image = &code.binary.image;
        let instruction = image.decoder(at, LONGEST_INSTRUCTION).into_iter().next()?;
        let way = match instruction.mnemonic() {
            Mnemonic::Syscall => Way::Syscall,
            _ if instruction.code() == Opcode::Int_imm8 && instruction.immediate8() == 0x80 => Way::Int80,
            _ => return None,
        };
        self.0.iter().find(|(of, _)| *of == way).map(|(_, spot)| *spot)
    }
}
