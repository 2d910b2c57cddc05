//! Tables whose rows are lists of mnemonics.

/// Defines a function from a mnemonic to the value before the list that has it, or the one for all that are in no list.
#[macro_export]
macro_rules! by_mnemonic {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident -> $type:ty, otherwise $default:expr;
        $($value:expr => $($mnemonic:ident)+;)+
    ) => {
        $(#[$attribute])*
        $visibility fn $name(mnemonic: iced_x86::Mnemonic) -> $type {
            match mnemonic {
                $($(iced_x86::Mnemonic::$mnemonic)|+ => $value,)+
                _ => $default,
            }
        }
    };
}

pub(super) use by_mnemonic;
