//! Kernel bit sets as types: known bits have names, unknown bits survive and print as numbers.

/// Makes a newtype over `u64` with a constant per bit, set operations, and a `Display` that lists names.
macro_rules! flag_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$flag_doc:meta])* $flag:ident = $bit:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: Self = Self(1 << $bit);)+

            /// Every bit this version knows.
            pub const KNOWN: Self = Self(0 $(| 1 << $bit)+);

            const NAMES: &'static [(u32, &'static str)] = &[$(($bit, stringify!($flag))),+];

            /// Whether all bits of `other` are set.
            #[inline]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether any bit of `other` is set.
            #[inline]
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// The bits of both.
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits of `self` that are not in `other`.
            pub const fn difference(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Whether no bit is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The bits this version does not know.
            pub const fn unknown(self) -> Self {
                self.difference(Self::KNOWN)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut separator = "";
                for &(bit, name) in Self::NAMES {
                    if self.0 & (1 << bit) != 0 {
                        write!(f, "{separator}{name}")?;
                        separator = "|";
                    }
                }
                match self.unknown().0 {
                    0 if self.0 == 0 => f.write_str("0"),
                    0 => Ok(()),
                    unknown => write!(f, "{separator}{unknown:#x}"),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

pub(crate) use flag_set;

#[cfg(test)]
mod tests {
    use crate::SampleFormat;

    #[test]
    fn names_known_bits_and_keeps_unknown_ones() {
        assert_eq!(SampleFormat(0b11 | 1 << 40).to_string(), "IP|TID|0x10000000000");
        assert_eq!(SampleFormat(1 << 40).to_string(), "0x10000000000");
        assert_eq!(SampleFormat::default().to_string(), "0");
    }
}
