//! The packets of a trace, as far as they tell where the program went (Intel SDM volume 3, chapter "Intel Processor Trace").

use std::convert::Infallible;
use std::num::NonZero;

use iptr_decoder::error::DecoderError;
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

/// How the packets of some bytes ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Parts, from one PSB to the next, with bytes that are no packet: the rest of the part is left out.
    pub damaged: u64,
}

/// Calls `take` with each packet. What is before the first PSB means nothing.
pub(super) fn for_each_packet(bytes: &[u8], take: &mut dyn FnMut(Packet)) -> Readable {
    let mut readable = Readable::default();
    let starts: Vec<usize> = memmem::find_iter(bytes, PSB).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    for (start, end) in starts.iter().zip(ends) {
        let part = bytes.get(*start..end).unwrap_or_default();
        let mut handler = Handler { last: 0, take };
        match decode(part, DecodeOptions::default(), &mut handler) {
            // The last packet of what was copied may be cut.
            Ok(()) | Err(DecoderError::UnexpectedEOF) => {}
            Err(_) => {
                readable.damaged += 1;
                take(Packet::Damage);
            }
        }
    }
    readable
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
        self.last = 0;
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
