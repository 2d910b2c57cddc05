//! One instruction that a thread has executed itself: where it may have led.

use addresses::Avma;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::branch::{Branch, BranchKind};

/// What one step of a thread was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleStep {
    /// To the next instruction, which was no conditional branch.
    Next,
    /// Past a conditional branch that was not taken.
    NotTaken,
    /// A taken branch.
    Taken(Branch),
    /// A string instruction has done one repetition, and stands where it was.
    Repeats,
}

impl SingleStep {
    /// What a step from `from`, where the bytes of `code` are, to `to` was. `None` if that is not where it leads.
    pub fn between(code: &[u8], from: Avma, to: Avma) -> Option<Self> {
        let instruction = Decoder::with_ip(64, code, from.0, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let taken = |kind| Some(Self::Taken(Branch { from, to, kind }));
        let next = to.0 == instruction.next_ip();
        let target = to.0 == instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::Next if next => Some(Self::Next),
            FlowControl::Next if to == from && repeats(&instruction) => Some(Self::Repeats),
            FlowControl::ConditionalBranch if next => Some(Self::NotTaken),
            FlowControl::ConditionalBranch if target => taken(BranchKind::Conditional),
            FlowControl::UnconditionalBranch if target => taken(BranchKind::Jump),
            FlowControl::Call if target => taken(BranchKind::Call),
            FlowControl::IndirectBranch => taken(BranchKind::IndirectJump),
            FlowControl::IndirectCall => taken(BranchKind::IndirectCall),
            FlowControl::Return => taken(BranchKind::Return),
            _ => None,
        }
    }

    /// Whether the instruction with these bytes can be executed with the trap flag set, and the program does not see the flag.
    pub fn is_possible(code: &[u8]) -> bool {
        let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
        let sees =
            matches!(instruction.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfq | Mnemonic::Popf | Mnemonic::Popfq);
        // The trap comes after the instruction that follows these two.
        let delays = matches!(instruction.code(), Code::Mov_Sreg_rm16 | Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16);
        let stays = !matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::Exception);
        let enters = matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter);
        let returns = matches!(instruction.mnemonic(), Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq);
        !instruction.is_invalid() && !sees && !returns && !delays && stays && !enters
    }
}

fn repeats(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(code: &[u8], to: u64) -> Option<SingleStep> {
        SingleStep::between(code, Avma(0x1000), Avma(to))
    }

    #[test]
    fn a_step_leads_where_its_instruction_does() {
        let taken = |to, kind| Some(SingleStep::Taken(Branch { from: Avma(0x1000), to: Avma(to), kind }));
        // cmp rax, -4095
        let compare = [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff];
        assert_eq!(
            (step(&compare, 0x1006), step(&compare, 0x1000), step(&compare, 0x2000)),
            (Some(SingleStep::Next), None, None)
        );
        // jae +0x10
        let branch = [0x73, 0x10];
        assert_eq!((step(&branch, 0x1002), step(&branch, 0x1003)), (Some(SingleStep::NotTaken), None));
        assert_eq!(step(&branch, 0x1012), taken(0x1012, BranchKind::Conditional));
        // ret; jmp rax; call rax; jmp +0; call +0
        assert_eq!(step(&[0xc3], 0x5), taken(0x5, BranchKind::Return));
        assert_eq!(step(&[0xff, 0xe0], 0x5), taken(0x5, BranchKind::IndirectJump));
        assert_eq!(step(&[0xff, 0xd0], 0x5), taken(0x5, BranchKind::IndirectCall));
        assert_eq!(step(&[0xeb, 0x00], 0x1002), taken(0x1002, BranchKind::Jump));
        assert_eq!(step(&[0xe8, 0, 0, 0, 0], 0x1005), taken(0x1005, BranchKind::Call));
        assert_eq!(step(&[0xe8, 0, 0, 0, 0], 0x1006), None);
        // rep movsb; movsb
        assert_eq!(
            (step(&[0xf3, 0xa4], 0x1000), step(&[0xf3, 0xa4], 0x1002)),
            (Some(SingleStep::Repeats), Some(SingleStep::Next))
        );
        assert_eq!((step(&[0xa4], 0x1000), step(&[], 0x1000), step(&[0x0f], 0x1001)), (None, None, None));
    }

    #[test]
    fn what_shows_the_trap_flag_is_not_stepped() {
        for code in [
            &[0x9c][..],
            &[0x66, 0x9c],
            &[0x9d],
            &[0x48, 0xcf],
            &[0x0f, 0x05],
            &[0xcc],
            &[0x0f, 0x0b],
            &[0x8e, 0xd0],
            &[],
        ] {
            assert!(!SingleStep::is_possible(code), "{code:x?}");
        }
        for code in [&[0xc3][..], &[0x48, 0x3d, 0, 0, 0, 0], &[0x73, 0x10], &[0xf3, 0xa4], &[0x90]] {
            assert!(SingleStep::is_possible(code), "{code:x?}");
        }
    }
}
