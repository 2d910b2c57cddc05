//! The packets of a trace, as far as they tell where the program went (Intel SDM volume 3, chapter "Intel Processor Trace").

use std::convert::Infallible;
use std::num::NonZero;

use iptr_decoder::utils::reconstruct_ip_and_update_last;
use iptr_decoder::{DecodeOptions, DecoderContext, HandlePacket, IpReconstructionPattern, decode};
use memchr::memmem;

/// Sixteen bytes: PSB, where a decoder can begin.
const PSB: &[u8] = b"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";

/// What a packet says. Addresses are `None` where they are out of what is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// TNT: whether branches were taken, and whether returns went where their calls came from: the oldest in the highest of so many bits.
    Branches { taken: u64, count: u32 },
    /// TIP: where a branch went.
    Target(Option<u64>),
    /// TIP.PGD: tracing is off from here on.
    Off(Option<u64>),
    /// TIP.PGE: tracing is on from here on.
    On(Option<u64>),
    /// FUP: where the program is, of what cannot be told from its code.
    Place(Option<u64>),
    /// PSB: what follows until [`Packet::SyncEnd`] says how things stand.
    Sync,
    /// PSBEND
    SyncEnd,
    /// OVF: packets were lost.
    Overflow,
    /// The rest, until [`Packet::Sync`], is no packet.
    Damage,
    /// The next [`Packet::Place`] belongs to a packet that is not about branches.
    PlaceOfOther,
}

/// What the packets of an area that were read so far say of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The address that packets shorten theirs by; `None`: nothing can be read before the next PSB.
    last: Option<u64>,
    /// Places with bytes that are no packet: what follows them, up to the next PSB, is left out.
    pub damaged: u64,
    /// Bytes that were left out.
    pub left_out: u64,
}

impl Reading {
    /// What follows does not follow what was read.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Calls `take` with each packet of the next bytes of the area.
    pub fn packets(&mut self, bytes: &[u8], take: &mut dyn FnMut(Packet)) {
        let mut start = 0;
        // The kernel does not ask for a PSB each time that it lets the trace go on.
        for place in memmem::find_iter(bytes, PSB).chain([bytes.len()]) {
            let part = bytes.get(start..place).unwrap_or_default();
            start = place;
            if part.is_empty() {
                continue;
            }
            let is_synchronized = part.starts_with(PSB);
            let Some(last) = (if is_synchronized { Some(0) } else { self.last }) else {
                self.left_out += part.len() as u64;
                take(Packet::Damage);
                continue;
            };
            let mut options = DecodeOptions::default();
            options.sync(is_synchronized);
            let mut handler = Handler { last, take };
            match decode(part, options, &mut handler) {
                Ok(()) => self.last = Some(handler.last),
                // Nothing is said of where the bytes are that are no packet.
                Err(_) => {
                    self.last = None;
                    self.damaged += 1;
                    take(Packet::Damage);
                }
            }
        }
    }
}

struct Handler<'a> {
    /// The address that packets shorten theirs by.
    last: u64,
    take: &'a mut dyn FnMut(Packet),
}

impl Handler<'_> {
    fn address(&mut self, pattern: IpReconstructionPattern) -> Option<u64> {
        reconstruct_ip_and_update_last(&mut self.last, pattern).then_some(self.last)
    }

    fn take(&mut self, packet: Packet) -> Result<(), Infallible> {
        (self.take)(packet);
        Ok(())
    }

    /// Of a packet that a FUP follows if this bit is set.
    fn with_place(&mut self, follows: bool) -> Result<(), Infallible> {
        if follows { self.take(Packet::PlaceOfOther) } else { Ok(()) }
    }
}

type Done = Result<(), Infallible>;

impl HandlePacket for Handler<'_> {
    type Error = Infallible;

    fn at_decode_begin(&mut self) -> Done {
        Ok(())
    }

    fn on_short_tnt_packet(&mut self, _: &DecoderContext, byte: NonZero<u8>, highest: u32) -> Done {
        // The lowest bit is none of a branch.
        self.take(Packet::Branches { taken: u64::from(byte.get()) >> 1, count: highest })
    }

    fn on_long_tnt_packet(&mut self, _: &DecoderContext, bytes: NonZero<u64>, highest: u32) -> Done {
        let count = if highest == u32::MAX { 0 } else { highest + 1 };
        self.take(Packet::Branches { taken: bytes.get(), count })
    }

    fn on_tip_packet(&mut self, _: &DecoderContext, to: IpReconstructionPattern) -> Done {
        let to = self.address(to);
        self.take(Packet::Target(to))
    }

    fn on_tip_pgd_packet(&mut self, _: &DecoderContext, to: IpReconstructionPattern) -> Done {
        let to = self.address(to);
        self.take(Packet::Off(to))
    }

    fn on_tip_pge_packet(&mut self, _: &DecoderContext, to: IpReconstructionPattern) -> Done {
        let to = self.address(to);
        self.take(Packet::On(to))
    }

    fn on_fup_packet(&mut self, _: &DecoderContext, at: IpReconstructionPattern) -> Done {
        let at = self.address(at);
        self.take(Packet::Place(at))
    }

    fn on_mode_packet(&mut self, _: &DecoderContext, leaf: u8, mode: u8) -> Done {
        const TSX: u8 = 1;
        const ABORTED: u8 = 2;
        // Of a transaction that begins or ends; one that is aborted goes elsewhere, which the packets after it say as of an interrupt.
        self.with_place(leaf == TSX && mode & ABORTED == 0)
    }

    fn on_psb_packet(&mut self, _: &DecoderContext) -> Done {
        self.last = 0;
        self.take(Packet::Sync)
    }

    fn on_psbend_packet(&mut self, _: &DecoderContext) -> Done {
        self.take(Packet::SyncEnd)
    }

    fn on_ovf_packet(&mut self, _: &DecoderContext) -> Done {
        self.take(Packet::Overflow)
    }

    fn on_ptw_packet(&mut self, _: &DecoderContext, ip: bool, _: iptr_decoder::PtwPayload) -> Done {
        self.with_place(ip)
    }

    fn on_exstop_packet(&mut self, _: &DecoderContext, ip: bool) -> Done {
        self.with_place(ip)
    }

    fn on_bep_packet(&mut self, _: &DecoderContext, ip: bool) -> Done {
        self.with_place(ip)
    }
}
