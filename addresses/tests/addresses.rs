//! What users of the address types see.

use addresses::{Avma, FileOffset, Svma};

#[test]
fn addresses_are_written_in_hexadecimal() {
    assert_eq!(Avma(0x7fff_0000_1000).to_string(), "0x7fff00001000");
    assert_eq!(Svma(0).to_string(), "0x0");
    assert_eq!(FileOffset(u64::MAX).to_string(), "0xffffffffffffffff");
}

#[test]
fn addresses_are_ordered_as_numbers_without_a_sign() {
    let mut addresses = [Avma(0xffff_ffff_8100_0000), Avma(0x40_1000), Avma(0)];
    addresses.sort();
    assert_eq!(addresses, [Avma(0), Avma(0x40_1000), Avma(0xffff_ffff_8100_0000)]);
}

#[test]
fn an_address_takes_no_more_space_than_its_number() {
    assert_eq!(size_of::<[Avma; 4]>(), 32);
    assert_eq!(size_of::<Svma>(), 8);
    assert_eq!(size_of::<FileOffset>(), 8);
}

#[cfg(feature = "serde")]
#[test]
fn serde_sees_a_plain_number() {
    let written = serde_json::to_string(&[Svma(16), Svma(255)]).expect("numbers");
    assert_eq!(written, "[16,255]");
    assert_eq!(serde_json::from_str::<[Svma; 2]>(&written).expect("numbers"), [Svma(16), Svma(255)]);
}
