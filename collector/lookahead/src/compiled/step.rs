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
    /// Instructions of the block from this one on.
    pub(super) remaining: u8,
    /// How far after the call that asks the code of the next instruction is.
    pub(super) back: u8,
}

impl Asked {
    pub(super) fn encode(self) -> u32 {
        let data = self.data.map_or(0, |data| data as u32);
        u32::from_le_bytes([self.index, self.remaining, u8::from(self.status) | (data as u8) << 1, self.back])
    }

    fn decode(asked: u32) -> Self {
        const ALL: [Data; 5] = [Data::Read, Data::Stored, Data::Written, Data::Popped, Data::Pushed];
        let [index, remaining, bits, back] = asked.to_le_bytes();
        let data = usize::from(bits >> 1).checked_sub(1).and_then(|data| ALL.get(data)).copied();
        Self { index, remaining, status: bits & 1 != 0, data, back }
    }
}

/// Executes an operation that the block at hand, which begins at `ops[first]`, asks for.
pub(crate) fn step(m: &mut Machine<'_>, lines: &mut DataLines, ops: &[Op], first: u32, asked: u32) -> ExitCode {
    let Asked { index, remaining, status, data, .. } = Asked::decode(asked);
    let Some(op) = ops.get(first as usize + usize::from(index)) else { return stopped(m, 0, remaining) };
    if status {
        m.interpreter_has_status();
    }
    let line = data.map(|data| match data {
        Data::Popped => (data, m.reg(RSP), 8),
        Data::Pushed => (data, m.reg(RSP).wrapping_sub(8), 8),
        _ => (data, m.address(&op.address), usize::from(op.width)),
    });
    let hot = &m.context.hot;
    lines.continue_at(u64::from(hot.end.wrapping_sub(hot.left).wrapping_sub(u32::from(remaining))));
    lines.before(m, op, 0);
    let result = (op.run)(m, op);
    if status {
        m.blocks_have_status();
    }
    m.context.hot.changed |= u8::from(m.changed);
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
            m.context.hot.target = m.target;
            m.context.take([op.ip, m.target, kind as u64]);
            ExitCode::TAKEN
        }
        Err(Exit::NotTaken) => {
            m.context.hot.target = op.next();
            m.context.hot.not_taken += 1;
            ExitCode::PASSED
        }
        Err(Exit::Stop) => stopped(m, op.ip, remaining),
    }
}

/// The path ends before the operation at `ip`, with which this many of the block were not executed.
#[cold]
fn stopped(m: &mut Machine<'_>, ip: u64, remaining: u8) -> ExitCode {
    m.context.hot.target = ip;
    m.context.hot.left += u32::from(remaining);
    ExitCode::STOPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_comes_out_as_it_went_in() {
        let all = [Data::Read, Data::Stored, Data::Written, Data::Popped, Data::Pushed];
        for data in all.map(Some).into_iter().chain([None]) {
            for (index, remaining, status, back) in [(0, 1, false, 255), (63, 64, true, 0), (254, 255, false, 17)] {
                let asked = Asked { index, status, data, remaining, back };
                assert_eq!(Asked::decode(asked.encode()), asked);
            }
        }
    }
}
