//! The code that a traced program executes: from any address to the next instruction that may go elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use iced_x86::{Code, FlowControl, Instruction, OpKind};

use crate::address::Avma;
use crate::binaries::{Binary, BinarySearch};
use crate::recording::{AddressSpace, ModuleId, ModuleTable};

/// Instructions in a row without a branch, at most.
const LONGEST_RUN: usize = 1 << 16;
/// Bytes that are decoded at once.
const WINDOW: u64 = 256;

/// What an instruction does that may go elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Conditional {
        target: u64,
    },
    Jump {
        target: u64,
    },
    /// `returns`: a return goes to after it. A call of the next instruction is no call, but for its address.
    Call {
        target: u64,
        returns: bool,
    },
    IndirectJump,
    IndirectCall,
    Return,
    /// To the kernel and from it.
    Far,
}

/// Code without a branch, and the branch that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Where the branch is.
    pub branch: u64,
    /// After it.
    pub after: u64,
    pub way: Way,
}

/// Why the program cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unknown {
    /// No mapping explains the address.
    Unmapped,
    /// The file of this module was not found, or has no code there.
    Unread(ModuleId),
}

/// The files of modules, each opened once.
pub(super) struct Files<'a> {
    pub search: &'a BinarySearch,
    pub modules: &'a ModuleTable,
    opened: BTreeMap<ModuleId, Option<Arc<Binary>>>,
}

impl<'a> Files<'a> {
    pub fn new(search: &'a BinarySearch, modules: &'a ModuleTable) -> Self {
        Self { search, modules, opened: BTreeMap::new() }
    }

    fn open(&mut self, id: ModuleId) -> Option<Arc<Binary>> {
        let (search, modules) = (self.search, self.modules);
        self.opened.entry(id).or_insert_with(|| search.open(modules.get(id)).ok().map(Arc::new)).clone()
    }
}

/// The code of one process, as long as nothing else is mapped.
pub(super) struct ProcessCode {
    space: AddressSpace,
    runs: HashMap<u64, Result<Run, Unknown>, foldhash::fast::RandomState>,
}

impl ProcessCode {
    pub fn new(space: AddressSpace) -> Self {
        Self { space, runs: HashMap::default() }
    }

    /// From an address on.
    pub fn run(&mut self, start: u64, files: &mut Files<'_>) -> Result<Run, Unknown> {
        let space = &self.space;
        *self.runs.entry(start).or_insert_with(|| find(space, start, files))
    }
}

fn find(space: &AddressSpace, start: u64, files: &mut Files<'_>) -> Result<Run, Unknown> {
    let mut at = start;
    let mut left = LONGEST_RUN;
    loop {
        let mapping = space.find(Avma(at)).ok_or(Unknown::Unmapped)?;
        let unread = Unknown::Unread(mapping.module);
        let binary = files.open(mapping.module).ok_or(unread)?;
        let svma = binary.image.svma_of_file_offset(mapping.file_offset(Avma(at))).ok_or(unread)?;
        let mut decoder = binary.image.decoder(svma, WINDOW);
        let mut instruction = Instruction::default();
        let before = at;
        while decoder.can_decode() && left > 0 {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                break;
            }
            left -= 1;
            let after = at.wrapping_add(instruction.len() as u64);
            if let Some(way) = way_of(&instruction, at.wrapping_sub(instruction.ip()), after) {
                return Ok(Run { branch: at, after, way });
            }
            at = after;
        }
        // The last instruction of a window may be cut by its end.
        if at == before || left == 0 {
            return Err(unread);
        }
    }
}

/// `moved`: how far addresses of the process are from those of the file.
fn way_of(instruction: &Instruction, moved: u64, after: u64) -> Option<Way> {
    let target = || match instruction.op0_kind() {
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            Some(instruction.near_branch_target().wrapping_add(moved))
        }
        _ => None,
    };
    if is_far(instruction) {
        return Some(Way::Far);
    }
    Some(match instruction.flow_control() {
        FlowControl::Next | FlowControl::XbeginXabortXend => return None,
        FlowControl::ConditionalBranch => Way::Conditional { target: target()? },
        FlowControl::UnconditionalBranch => target().map_or(Way::Far, |target| Way::Jump { target }),
        FlowControl::Call => target().map_or(Way::Far, |target| Way::Call { target, returns: target != after }),
        FlowControl::IndirectBranch => Way::IndirectJump,
        FlowControl::IndirectCall => Way::IndirectCall,
        FlowControl::Return => Way::Return,
        FlowControl::Interrupt | FlowControl::Exception => Way::Far,
    })
}

/// Transfers that change the segment or the privilege: all of them have a packet of their own.
fn is_far(instruction: &Instruction) -> bool {
    instruction.is_jmp_far()
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect()
        || matches!(
            instruction.code(),
            Code::Syscall
                | Code::Sysenter
                | Code::Sysexitd
                | Code::Sysexitq
                | Code::Sysretd
                | Code::Sysretq
                | Code::Retfw
                | Code::Retfd
                | Code::Retfq
                | Code::Retfw_imm16
                | Code::Retfd_imm16
                | Code::Retfq_imm16
                | Code::Iretw
                | Code::Iretd
                | Code::Iretq
                | Code::Uiret
                | Code::Vmlaunch
                | Code::Vmresume
                | Code::Vmcall
        )
}
