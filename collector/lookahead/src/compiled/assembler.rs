//! Machine code of the host: as many forms of as few instructions as compiled blocks are made of (SDM volume 2, chapter 2).

/// Registers of the host. Values are in `DX`, a count in `CX`, addresses of the program in `SI`, of the host in `DI`. `AX` is for flags, and for
/// what is asked. `BX` has the registers of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Ax = 0,
    Cx = 1,
    Dx = 2,
    Bx = 3,
    Si = 6,
    Di = 7,
}

/// An operand that the byte ModRM names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Register(Host),
    /// So many bytes after the registers of the context, or before.
    Context(i32),
    /// Where a register points.
    At(Host),
}

/// A jump whose target is not known yet: where its distance stands.
#[derive(Clone, Copy)]
#[must_use]
pub(super) struct Jump(pub(super) usize);

#[derive(Default)]
pub(super) struct Assembler {
    pub(super) code: Vec<u8>,
}

impl Assembler {
    pub(super) fn byte(&mut self, byte: u8) {
        self.code.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// An instruction with a register, or a number in its place, and an operand of `size` bytes.
    pub(super) fn form(&mut self, size: usize, opcode: &[u8], register: u8, place: Place) {
        match size {
            2 => self.byte(0x66),
            8 => self.byte(0x48),
            _ => {}
        }
        self.bytes(opcode);
        match place {
            Place::Register(host) => self.byte(0xc0 | register << 3 | host as u8),
            Place::Context(offset) => match i8::try_from(offset) {
                Ok(offset) => self.bytes(&[0x40 | register << 3 | Host::Bx as u8, offset as u8]),
                Err(_) => {
                    self.byte(0x80 | register << 3 | Host::Bx as u8);
                    self.bytes(&offset.to_le_bytes());
                }
            },
            Place::At(host) => self.byte(register << 3 | host as u8),
        }
    }

    /// `opcode` is that for bytes; the next one is for all other sizes.
    pub(super) fn sized(&mut self, size: usize, opcode: u8, register: u8, place: Place) {
        self.form(size, &[opcode | u8::from(size != 1)], register, place);
    }

    /// Loads `size` bytes; those above are cleared.
    pub(super) fn load(&mut self, size: usize, to: Host, from: Place) {
        match size {
            1 => self.form(4, &[0x0f, 0xb6], to as u8, from),
            2 => self.form(4, &[0x0f, 0xb7], to as u8, from),
            _ => self.form(size, &[0x8b], to as u8, from),
        }
    }

    pub(super) fn store(&mut self, size: usize, to: Place, from: Host) {
        self.sized(size, 0x88, from as u8, to);
    }

    /// One of the eight operations of opcodes 80 to 83, by its number, with an immediate of four bytes, sign-extended.
    pub(super) fn immediate(&mut self, size: usize, operation: u8, place: Place, value: i32) {
        match i8::try_from(value) {
            Ok(value) if size != 1 => {
                self.form(size, &[0x83], operation, place);
                self.byte(value as u8);
            }
            _ => {
                self.sized(size, 0x80, operation, place);
                self.bytes(&value.to_le_bytes()[..if size == 1 { 1 } else { 4 }]);
            }
        }
    }

    /// One of them with a register and another operand.
    pub(super) fn operation(&mut self, size: usize, operation: u8, register: Host, place: Place) {
        self.sized(size, operation << 3 | 2, register as u8, place);
    }

    /// Sets a register.
    pub(super) fn set(&mut self, register: Host, value: u64) {
        match (u32::try_from(value), i32::try_from(value as i64)) {
            (Ok(value), _) => {
                self.byte(0xb8 | register as u8);
                self.bytes(&value.to_le_bytes());
            }
            (_, Ok(value)) => {
                self.form(8, &[0xc7], 0, Place::Register(register));
                self.bytes(&value.to_le_bytes());
            }
            _ => {
                self.bytes(&[0x48, 0xb8 | register as u8]);
                self.bytes(&value.to_le_bytes());
            }
        }
    }

    /// Shifts by so many bits: 4 is to the left, 5 to the right, 7 to the right with the sign.
    pub(super) fn shift(&mut self, size: usize, operation: u8, register: Host, bits: u8) {
        self.form(size, &[0xc1], operation, Place::Register(register));
        self.byte(bits);
    }

    pub(super) fn jump_if(&mut self, condition: u8) -> Jump {
        self.bytes(&[0x0f, 0x80 | condition, 0, 0, 0, 0]);
        Jump(self.code.len() - 4)
    }

    pub(super) fn jump(&mut self) -> Jump {
        self.bytes(&[0xe9, 0, 0, 0, 0]);
        Jump(self.code.len() - 4)
    }

    /// A jump leads to where the code ends now.
    pub(super) fn lands(&mut self, Jump(at): Jump) {
        let distance = (self.code.len() - (at + 4)) as u32;
        self.code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// A call, or a jump, of what begins so many bytes before the code does.
    pub(super) fn far(&mut self, opcode: u8, before: usize) {
        self.byte(opcode);
        let distance = (before + self.code.len() + 4).wrapping_neg() as u32;
        self.bytes(&distance.to_le_bytes());
    }
}
