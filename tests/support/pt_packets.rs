//! Writes packets of Intel PT (Intel SDM volume 3, chapter "Intel Processor Trace"), as the hardware does.

/// What is written in place of what could be.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Returns that go where their call came from have a bit in place of an address.
    pub compresses_returns: bool,
    /// Addresses come after the bits of branches after them, until a packet of bits is full.
    pub defers_addresses: bool,
    /// Bits are in packets of up to 47, not 6.
    pub has_long_tnt: bool,
}

/// A trace that is being written.
pub struct Packets {
    pub bytes: Vec<u8>,
    style: Style,
    bits: Vec<bool>,
    deferred: Vec<u64>,
    cpu: Cpu,
}

/// What a CPU keeps from one thread to the next.
#[derive(Default)]
pub struct Cpu {
    last_ip: u64,
    calls: Vec<u64>,
}

const PSB: [u8; 16] = [2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82];
const PSBEND: [u8; 2] = [2, 0x23];
pub const OVF: [u8; 2] = [2, 0xf3];
const TIP: u8 = 0x0d;
const TIP_PGE: u8 = 0x11;
const TIP_PGD: u8 = 0x01;
const FUP: u8 = 0x1d;

impl Packets {
    pub fn new(style: Style) -> Self {
        Self { bytes: Vec::new(), style, bits: Vec::new(), deferred: Vec::new(), cpu: Cpu::default() }
    }

    /// The thread is on this CPU now, or on it no more.
    pub fn swap(&mut self, cpu: &mut Cpu) {
        std::mem::swap(&mut self.cpu, cpu);
    }

    fn room(&self) -> usize {
        if self.style.has_long_tnt { 47 } else { 6 }
    }

    fn write_bits(&mut self) {
        let bits = std::mem::take(&mut self.bits);
        let value = bits.iter().fold(1_u64, |value, bit| value << 1 | u64::from(*bit));
        match bits.len() {
            0 => {}
            // A stop bit, the bits with the oldest first, and a zero.
            1..=6 => self.bytes.push((value << 1) as u8),
            _ => {
                self.bytes.extend([2, 0xa3]);
                self.bytes.extend(&value.to_le_bytes()[..6]);
            }
        }
        for to in std::mem::take(&mut self.deferred) {
            self.address(TIP, to);
        }
    }

    /// Addresses have as many bytes as differ from the last one.
    fn address(&mut self, kind: u8, to: u64) {
        let last = std::mem::replace(&mut self.cpu.last_ip, to);
        let (form, length) = match to ^ last {
            change if change >> 16 == 0 => (1, 2),
            change if change >> 32 == 0 => (2, 4),
            _ if (to as i64) << 16 >> 16 == to as i64 => (3, 6),
            _ => (6, 8),
        };
        self.bytes.push(kind | form << 5);
        self.bytes.extend(&to.to_le_bytes()[..length]);
    }

    pub fn bit(&mut self, taken: bool) {
        self.bits.push(taken);
        if self.bits.len() == self.room() {
            self.write_bits();
        }
    }

    pub fn indirect(&mut self, to: u64) {
        if self.style.defers_addresses && !self.bits.is_empty() {
            self.deferred.push(to);
        } else {
            self.write_bits();
            self.address(TIP, to);
        }
    }

    pub fn call(&mut self, returns_to: u64) {
        if self.cpu.calls.len() == 64 {
            self.cpu.calls.remove(0);
        }
        self.cpu.calls.push(returns_to);
    }

    pub fn call_indirect(&mut self, to: u64, returns_to: u64) {
        self.indirect(to);
        self.call(returns_to);
    }

    pub fn returns(&mut self, to: u64) {
        let expected = self.cpu.calls.pop();
        // What is deferred would make it unclear what a bit is for.
        if self.style.compresses_returns && expected == Some(to) {
            self.bit(true);
        } else {
            self.write_bits();
            self.address(TIP, to);
        }
    }

    /// Tracing begins.
    pub fn on(&mut self, at: u64) {
        self.write_bits();
        self.address(TIP_PGE, at);
    }

    /// A far transfer leaves what is traced.
    pub fn off(&mut self) {
        self.write_bits();
        self.bytes.push(TIP_PGD);
    }

    /// Something interrupts the program there, and is not traced.
    pub fn interrupted(&mut self, at: u64) {
        self.write_bits();
        self.address(FUP, at);
        self.bytes.push(TIP_PGD);
    }

    /// Something interrupts the program there, and is traced, from this address on.
    pub fn interrupted_by(&mut self, at: u64, to: u64) {
        self.write_bits();
        self.address(FUP, at);
        self.address(TIP, to);
    }

    /// So many bytes; the program is there, or not traced.
    pub fn sync(&mut self, at: Option<u64>) {
        self.write_bits();
        self.bytes.extend(PSB);
        self.cpu = Cpu::default();
        // MODE.TSX, MODE.Exec: 64 bits, TSC.
        self.bytes.extend([0x99, 0x20, 0x99, 1, 0x19, 0, 16, 0, 0, 0, 0, 0]);
        // TMA, CBR.
        self.bytes.extend([2, 0x73, 0, 0, 0, 0, 0, 2, 3, 36, 0]);
        if let Some(at) = at {
            self.address(FUP, at);
        }
        self.bytes.extend(PSBEND);
    }

    /// Packets of time.
    pub fn noise(&mut self, number: u8) {
        // PAD, MTC, CBR.
        self.bytes.extend([0, 0x59, number, 2, 0x03, 36, 0]);
    }

    /// Packets were lost; something interrupts the program there now.
    pub fn overflow_and_interrupt(&mut self, at: u64) {
        (self.bits, self.deferred, self.cpu.calls) = (Vec::new(), Vec::new(), Vec::new());
        self.bytes.extend(OVF);
        self.interrupted(at);
    }

    /// Everything is written.
    pub fn end(&mut self) {
        self.write_bits();
    }
}
