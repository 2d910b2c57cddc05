//! When registers have their values.

use crate::operation::{REGISTERS, RegisterSet};

/// When each register has its value.
#[derive(Clone)]
pub(crate) struct Ready([f64; REGISTERS]);

impl Default for Ready {
    fn default() -> Self {
        Ready([0.0; REGISTERS])
    }
}

impl Ready {
    /// When the last of the registers is there, `since` at the earliest.
    pub fn latest(&self, mut registers: RegisterSet, since: f64) -> f64 {
        let mut latest = since;
        while registers != 0 {
            latest = latest.max(self.0[registers.trailing_zeros() as usize]);
            registers &= registers - 1;
        }
        latest
    }

    pub fn write(&mut self, mut results: RegisterSet, done: f64) {
        while results != 0 {
            self.0[results.trailing_zeros() as usize] = done;
            results &= results - 1;
        }
    }
}
