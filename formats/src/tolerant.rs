//! Reading such that an odd value costs no more than itself.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Defines objects all of whose fields may be absent: each is a [`Field`]. A value that is odd is read as if it were absent.
macro_rules! tolerant_objects {
    ($($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty,)+ })+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$doc])*
                #[serde(
                    deserialize_with = "crate::tolerant::field",
                    skip_serializing_if = "crate::tolerant::Field::is_absent"
                )]
                pub $field: $type,
            )+
        }
    )+};
}
pub(crate) use tolerant_objects;

/// A value that is one or is not.
pub(crate) trait Tolerant: Sized {
    /// The value, if it is one.
    fn of(value: Value) -> Option<Self>;
}

/// Values all of which has to be right.
macro_rules! plain_values {
    ($($type:ty)+) => {$(
        impl crate::tolerant::Tolerant for $type {
            fn of(value: serde_json::Value) -> Option<Self> {
                serde_json::from_value(value).ok()
            }
        }
    )+};
}
pub(crate) use plain_values;

plain_values! { String bool u8 u32 u64 f64 }

/// Objects of tolerant fields.
macro_rules! objects {
    ($($type:ty)+) => {$(
        impl crate::tolerant::Tolerant for $type {
            fn of(value: serde_json::Value) -> Option<Self> {
                crate::tolerant::object(value)
            }
        }
    )+};
}
pub(crate) use objects;

/// An object, if the value is one.
pub(crate) fn object<T: DeserializeOwned>(value: Value) -> Option<T> {
    value.is_object().then(|| serde_json::from_value(value).ok()).flatten()
}

/// Without the entries that are odd.
impl<T: Tolerant> Tolerant for Vec<T> {
    fn of(value: Value) -> Option<Self> {
        let Value::Array(entries) = value else { return None };
        Some(entries.into_iter().filter_map(T::of).collect())
    }
}

/// Without the entries that are odd.
impl Tolerant for BTreeMap<String, u64> {
    fn of(value: Value) -> Option<Self> {
        let Value::Object(entries) = value else { return None };
        Some(entries.into_iter().filter_map(|(name, value)| Some((name, u64::of(value)?))).collect())
    }
}

/// What a field of an object can be.
pub(crate) trait Field: Default {
    /// The value, or that of a field that is not there.
    fn of_value(value: Value) -> Self;

    /// Whether it is not written.
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T: Tolerant> Field for Option<T> {
    fn of_value(value: Value) -> Self {
        T::of(value)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Written even if it is empty.
impl<T: Tolerant> Field for Vec<T> {
    fn of_value(value: Value) -> Self {
        Tolerant::of(value).unwrap_or_default()
    }
}

/// Written even if it is empty.
impl Field for String {
    fn of_value(value: Value) -> Self {
        Tolerant::of(value).unwrap_or_default()
    }
}

/// Reads a field, whatever is there: what it cannot be is as if it were not there.
pub(crate) fn field<'de, D: Deserializer<'de>, T: Field>(field: D) -> Result<T, D::Error> {
    Value::deserialize(field).map(T::of_value)
}
