//! One operation of the interpreter's, for a compiled block that asks for it.

use crate::compiled::exit_code::ExitCode;
use crate::exit::Exit;
use crate::line_tables::{READS, STACK_READS, STACK_WRITES, Table, WRITES};
use crate::lines::DataLines;
use crate::machine::Machine;
use crate::op::Op;
use crate::operand::RSP;
use crate::overlay::LINE;

/// What an instruction does with the line of its operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Read = 1,
    /// It is written,
    Stored = 2,
    /// or read and written.
    Written = 3,
    Popped = 4,
    Pushed = 5,
}

impl Data {
    /// Where the line is looked up.
    pub(super) fn table(self) -> Table {
        match self {
            Self::Read => READS,
            Self::Stored | Self::Written => WRITES,
            Self::Popped => STACK_READS,
            Self::Pushed => STACK_WRITES,
        }
    }
}

/// What a block asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Which instruction of the block.
    pub(super) index: u8,
    /// It reads or changes status flags.
    pub(super) status: bool,
    /// The line of its operand is to be looked up the next time.
    pub(super) data: Option<Data>,
    /// Instructions of the block.
    pub(super) count: u8,
}

impl Asked {
    pub(super) fn encode(self) -> u32 {
        let data = self.data.map_or(0, |data| data as u32);
        u32::from(self.index) | u32::from(self.count) << 8 | u32::from(self.status) << 16 | data << 17
    }

    fn decode(asked: u32) -> Self {
        const ALL: [Data; 5] = [Data::Read, Data::Stored, Data::Written, Data::Popped, Data::Pushed];
        let data = (asked as usize >> 17).checked_sub(1).and_then(|data| ALL.get(data)).copied();
        Self { index: asked as u8, count: (asked >> 8) as u8, status: asked >> 16 & 1 != 0, data }
    }
}

/// Executes an operation that a block asks for; it is `ops[at]`.
pub(crate) fn step(m: &mut Machine<'_>, lines: &mut DataLines, ops: &[Op], at: u32, asked: u32) -> ExitCode {
    let Asked { index, status, data, count } = Asked::decode(asked);
    let Some(op) = ops.get(at as usize) else { return stopped(m, at, index, count) };
    if status {
        m.interpreter_has_status();
    }
    let line = data.map(|data| match data {
        Data::Popped => (data, m.reg(RSP), 8),
        Data::Pushed => (data, m.reg(RSP).wrapping_sub(8), 8),
        _ => (data, m.address(&op.address), usize::from(op.width)),
    });
    lines.continue_at(u64::from(m.context.blocks.executed));
    lines.before(m, op, usize::from(index));
    let result = (op.run)(m, op);
    if status {
        m.blocks_have_status();
    }
    m.context.blocks.changed |= u8::from(m.changed);
    match result {
        Ok(()) => {
            if let Some((data, address, width)) = line
                && address as usize % LINE + width <= LINE
            {
                m.put_line(address, data.table());
            }
            ExitCode::NONE
        }
        Err(Exit::Taken(kind)) => {
            m.context.blocks.executed += u32::from(index) + 1;
            m.context.blocks.target = m.target;
            m.context.blocks.take([op.ip, m.target, kind as u64]);
            ExitCode::TAKEN
        }
        Err(Exit::NotTaken) => {
            m.context.blocks.executed += u32::from(index) + 1;
            m.context.blocks.target = op.next();
            m.context.blocks.not_taken += 1;
            ExitCode::PASSED
        }
        Err(Exit::Stop) => stopped(m, at, index, count),
    }
}

/// The path ends in front of an operation.
#[cold]
fn stopped(m: &mut Machine<'_>, at: u32, index: u8, count: u8) -> ExitCode {
    let blocks = &mut m.context.blocks;
    blocks.stopped_at = at;
    blocks.executed += u32::from(index);
    blocks.left += u32::from(count.saturating_sub(index));
    ExitCode::STOPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_comes_out_as_it_went_in() {
        let all = [Data::Read, Data::Stored, Data::Written, Data::Popped, Data::Pushed];
        for data in all.map(Some).into_iter().chain([None]) {
            for (index, count, status) in [(0, 1, false), (63, 64, true), (254, 255, false)] {
                let asked = Asked { index, status, data, count };
                assert_eq!(Asked::decode(asked.encode()), asked);
            }
        }
    }
}
