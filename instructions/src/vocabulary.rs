//! Enums whose values have fixed names: the words that pivots, filters and JSON use.

/// A name that is not in a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {what} is called {name:?}; there are {known}")]
pub struct UnknownName {
    /// What the vocabulary is of.
    pub what: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// All names, separated by commas.
    pub known: String,
}

/// Defines an enum with a name for each value, `ALL`, `as_str`, `Display`, `FromStr` and `Serialize`.
macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        $name:ident, $what:literal { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// All values, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name of the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == name).ok_or_else(|| $crate::UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    known: Self::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(super) use vocabulary;
