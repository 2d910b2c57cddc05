//! From and to the XSAVE area that `PTRACE_GETREGSET` with `NT_X86_XSTATE` delivers.

use std::sync::OnceLock;

use crate::registers::{INITIAL_MXCSR, VectorState};

/// Offsets of the extended components in the standard format (SDM vol. 1, 13.4.3); they differ between vendors.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Upper halves of ymm0-15.
    avx: Option<usize>,
    /// k0-7.
    mask: Option<usize>,
    /// Upper halves of zmm0-15.
    upper: Option<usize>,
    /// zmm16-31.
    further: Option<usize>,
}

const XMM: usize = 160;
const HEADER: usize = 512;

fn layout() -> Layout {
    static LAYOUT: OnceLock<Layout> = OnceLock::new();
    *LAYOUT.get_or_init(|| {
        let offset = |component| crate::native::xsave_offset(component).filter(|&at| at >= 576);
        Layout { avx: offset(2), mask: offset(5), upper: offset(6), further: offset(7) }
    })
}

impl VectorState {
    /// Takes the state from an XSAVE area in the standard format. `None` if it is shorter than 576 bytes. Components that the area does
    /// not hold, or marks as initial, are zero.
    pub fn from_xsave(area: &[u8]) -> Option<Self> {
        let legacy = area.get(..HEADER)?;
        let present = u64::from_le_bytes(area.get(HEADER..HEADER + 8)?.try_into().ok()?);
        area.get(..576)?;
        // Where SSE is marked as initial, XSAVES has not written mxcsr, and Linux hands on what was there before if AVX is not initial.
        // It is initial then, too: any other value makes SSE count as in use (SDM vol. 1, 13.11).
        let mxcsr =
            if present & 0b10 != 0 { u32::from_le_bytes(legacy[24..28].try_into().ok()?) } else { INITIAL_MXCSR };
        let mut state = Self { mxcsr, ..Self::default() };
        if present & 1 != 0 {
            state.x87.copy_from_slice(legacy);
            // mxcsr lives elsewhere; what is here must only be harmless to load.
            state.x87[24..28].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
        }
        for part in parts() {
            let at = part.offset.filter(|_| present & (1 << part.component) != 0);
            let Some(bytes) = at.and_then(|at| area.get(at..at + part.bytes * part.count)) else { continue };
            for (index, bytes) in bytes.chunks_exact(part.bytes).enumerate() {
                part.place(&mut state, index, |place| place.copy_from_slice(bytes));
            }
        }
        Some(state)
    }

    /// Writes the state into an XSAVE area of the standard format, which is then complete. Components the area has no room for
    /// are left out.
    pub fn to_xsave(&self, area: &mut [u8]) {
        let Some(legacy) = area.get_mut(..HEADER) else { return };
        legacy[..24].copy_from_slice(&self.x87[..24]);
        legacy[24..28].copy_from_slice(&self.mxcsr.to_le_bytes());
        legacy[32..XMM].copy_from_slice(&self.x87[32..XMM]);
        let mut state = self.clone();
        let mut present = 0b11u64;
        for part in parts() {
            let Some(bytes) = part.offset.and_then(|at| area.get_mut(at..at + part.bytes * part.count)) else {
                continue;
            };
            present |= 1 << part.component;
            for (index, bytes) in bytes.chunks_exact_mut(part.bytes).enumerate() {
                part.place(&mut state, index, |place| bytes.copy_from_slice(place));
            }
        }
        if let Some(header) = area.get_mut(HEADER..HEADER + 8) {
            header.copy_from_slice(&present.to_le_bytes());
        }
    }
}

/// A component: `count` pieces of so many bytes.
pub(crate) struct Part {
    pub(crate) component: u32,
    /// In the standard format.
    pub(crate) offset: Option<usize>,
    pub(crate) bytes: usize,
    pub(crate) count: usize,
}

impl Part {
    /// Shows `with` the piece in the state.
    pub(crate) fn place(&self, state: &mut VectorState, index: usize, with: impl FnOnce(&mut [u8])) {
        match self.component {
            1 => with(&mut state.zmm[index][..16]),
            2 => with(&mut state.zmm[index][16..32]),
            6 => with(&mut state.zmm[index][32..]),
            7 => with(&mut state.zmm[16 + index]),
            _ => {
                let mut bytes = state.mask[index].to_le_bytes();
                with(&mut bytes);
                state.mask[index] = u64::from_le_bytes(bytes);
            }
        }
    }
}

pub(crate) fn parts() -> [Part; 5] {
    let Layout { avx, mask, upper, further } = layout();
    [
        Part { component: 1, offset: Some(XMM), bytes: 16, count: 16 },
        Part { component: 2, offset: avx, bytes: 16, count: 16 },
        Part { component: 5, offset: mask, bytes: 8, count: 8 },
        Part { component: 6, offset: upper, bytes: 32, count: 16 },
        Part { component: 7, offset: further, bytes: 64, count: 16 },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_round_trip() {
        let mut state = VectorState::default();
        for (i, register) in state.zmm.iter_mut().enumerate() {
            register.fill(i as u8 + 1);
        }
        state.mask = [1, 2, 3, 4, 5, 6, 7, 8];
        state.mxcsr = 0x1fa0;
        let mut area = vec![0; 4096];
        state.to_xsave(&mut area);
        let back = VectorState::from_xsave(&area).unwrap();
        let width = crate::features::vector_bytes();
        assert_eq!(back.mxcsr, state.mxcsr);
        assert_eq!(back.x87[..24], state.x87[..24]);
        for (a, b) in state.zmm.iter().zip(&back.zmm).take(16) {
            assert_eq!(a[..width], b[..width]);
        }
        assert_eq!(VectorState::from_xsave(&area[..575]), None);
    }

    #[test]
    fn mxcsr_is_initial_where_sse_is_marked_as_initial() {
        let mut area = vec![0; 4096];
        VectorState { mxcsr: 0x1fa0, ..VectorState::default() }.to_xsave(&mut area);
        let in_use = |components: u8, area: &mut [u8]| {
            area[HEADER] = components;
            VectorState::from_xsave(area).unwrap().mxcsr
        };
        assert_eq!(in_use(0b011, &mut area), 0x1fa0);
        assert_eq!(in_use(0b101, &mut area), 0x1f80, "AVX in use, SSE not");
        assert_eq!(in_use(0b001, &mut area), 0x1f80);
    }
}
