//! Tables and facts about the CPU that are otherwise computed when they are first needed.

use addresses::Avma;

use crate::code_cache::CodeCache;
use crate::memory::{Fault, Memory, Page};
use crate::native;
use crate::outcome::Fuel;
use crate::overlay::Overlay;
use crate::registers::{Registers, VectorState};
use crate::run::run;

/// `addps xmm0, xmm1`, `add eax, 1`, and a jump to itself.
struct AnyCode;

impl Memory for AnyCode {
    fn read_page(&mut self, _: Avma, page: &mut Page) -> Result<(), Fault> {
        page[..8].copy_from_slice(&[0x0f, 0x58, 0xc1, 0x83, 0xc0, 0x01, 0xeb, 0xfe]);
        Ok(())
    }
}

/// Builds all tables that decoding and interpreting use, and asks the CPU all they want to know: it is not done while a thread waits.
pub fn warm_up() {
    let (_, _, _) = (native::xcr0(), native::made_by_amd(), native::mxcsr_mask());
    let _ = native::quirks();
    let _ = VectorState::from_xsave(&[0; 576]);
    let (mut registers, mut overlay, mut code) = (Registers::default(), Overlay::new(4), CodeCache::new(1024));
    let fuel = Fuel { instructions: 3, branches: 1 };
    run(&mut registers, &mut overlay, &mut AnyCode, &mut code, fuel, &[], &mut Vec::new());
}
