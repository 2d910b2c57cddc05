//! Where control goes after an instruction.

use iced_x86::{Code, FlowControl, Instruction};

/// What an instruction does to the flow of control. Fits in four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flow {
    /// On to the next instruction.
    Next,
    /// To a target or on: `jcc`, `loop`, `jrcxz`, `xbegin` (whose target is its abort handler) and `xabort`.
    Conditional,
    /// `jmp` to a stated target.
    Jump,
    /// `jmp` to a computed target.
    IndirectJump,
    /// `call` of a stated target.
    Call,
    /// `call` of a computed target.
    IndirectCall,
    /// `ret`, `iret`, `sysret`.
    Return,
    /// Into the kernel (or hypervisor) and back to the next instruction.
    SystemCall,
    /// Not on as a rule: breakpoints, `ud2`, `hlt`.
    Trap,
}

impl Flow {
    /// What a decoded instruction does.
    pub fn of(instruction: &Instruction) -> Self {
        let code = instruction.code();
        match code.flow_control() {
            FlowControl::Next if matches!(code, Code::Hlt) => Self::Trap,
            // Leaves a transaction for its handler; outside of one it does nothing.
            FlowControl::Next if matches!(code, Code::Xabort_imm8) => Self::Conditional,
            FlowControl::Next => Self::Next,
            FlowControl::ConditionalBranch => Self::Conditional,
            FlowControl::UnconditionalBranch => Self::Jump,
            FlowControl::IndirectBranch => Self::IndirectJump,
            FlowControl::Call if instruction.is_call_near() || instruction.is_call_far() => Self::Call,
            FlowControl::Call => Self::SystemCall,
            FlowControl::IndirectCall => Self::IndirectCall,
            FlowControl::Return => Self::Return,
            FlowControl::Interrupt if matches!(code, Code::Int_imm8) => Self::SystemCall,
            // Goes on, unless there was an overflow. 32-bit code only.
            FlowControl::Interrupt if matches!(code, Code::Into) => Self::Next,
            FlowControl::XbeginXabortXend => Self::Conditional,
            FlowControl::Interrupt | FlowControl::Exception => Self::Trap,
        }
    }

    /// The inverse of `self as u8`; for bits that are no flow, [`Flow::Next`].
    pub fn from_bits(bits: u8) -> Self {
        const ALL: [Flow; 9] = [
            Flow::Next,
            Flow::Conditional,
            Flow::Jump,
            Flow::IndirectJump,
            Flow::Call,
            Flow::IndirectCall,
            Flow::Return,
            Flow::SystemCall,
            Flow::Trap,
        ];
        ALL.get(usize::from(bits)).copied().unwrap_or(Self::Next)
    }
}
