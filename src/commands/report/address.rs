//! Addresses, as a page can read them.

use analyzer::address::Svma;
use serde::{Serialize, Serializer};

/// An address: a number, or where JavaScript's numbers would not be exact (the kernel's), a text of its decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub Svma);

/// Up to it, a number of JavaScript has all whole ones.
const MOST: u64 = (1 << 53) - 1;

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Svma(address) = self.0;
        if address <= MOST { serializer.serialize_u64(address) } else { serializer.collect_str(&address) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_digit_of_an_address_is_lost() {
        let check = |address: u64, text: &str| {
            assert_eq!(serde_json::to_string(&Address(Svma(address))).unwrap(), text);
        };
        check(0x401000, "4198400");
        check((1 << 53) - 1, "9007199254740991");
        check(1 << 53, "\"9007199254740992\"");
        check(0xffff_ffff_8100_0001, "\"18446744071578845185\"");
    }
}
