//! What is known of one byte of code.

use instructions::Flow;

/// What is known of one byte of a function. Zero: nothing starts here.
#[derive(Clone, Copy, Default)]
pub(super) struct Cell(u16);

impl Cell {
    const LENGTH: u16 = 0x000f;
    const FLOW: u16 = 0x00f0;
    pub const LEADER: u16 = 0x0100;
    pub const REACHED: u16 = 0x0200;
    pub const SOURCE: u16 = 0x0400;
    pub const OBSERVED: u16 = 0x0800;

    /// Length in bytes of the instruction that starts here, 0 for none.
    pub fn length(self) -> usize {
        usize::from(self.0 & Self::LENGTH)
    }

    pub fn is_start(self) -> bool {
        self.0 & Self::LENGTH != 0
    }

    pub fn flow(self) -> Flow {
        Flow::from_bits(((self.0 & Self::FLOW) >> 4) as u8)
    }

    /// The recording saw code run here.
    pub fn is_observed(self) -> bool {
        self.0 & Self::OBSERVED != 0
    }

    /// A block starts here, if an instruction does.
    pub fn is_leader(self) -> bool {
        self.0 & Self::LEADER != 0
    }

    pub fn is_reached(self) -> bool {
        self.0 & Self::REACHED != 0
    }

    /// A taken branch was seen to leave from here.
    pub fn is_source(self) -> bool {
        self.0 & Self::SOURCE != 0
    }

    /// Makes an instruction start here. `evidence` is [`Self::REACHED`] or 0.
    pub fn set_instruction(&mut self, length: usize, flow: Flow, evidence: u16) {
        self.0 = self.0 & !(Self::LENGTH | Self::FLOW) | length as u16 & Self::LENGTH | (flow as u16) << 4 | evidence;
    }

    /// Sets one of the flags.
    pub fn set(&mut self, flag: u16) {
        self.0 |= flag;
    }
}
