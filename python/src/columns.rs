//! Columns of a table, by what is in them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Field, Schema};

/// Columns that have been made, in their order.
#[derive(Default)]
pub struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// A column of any kind; without a row that is not known, it says so.
    pub fn add(&mut self, name: impl Into<String>, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    /// Texts.
    pub fn texts<T: AsRef<str>>(&mut self, name: impl Into<String>, texts: impl Iterator<Item = Option<T>>) {
        self.add(name, Arc::new(StringArray::from_iter(texts)));
    }

    /// Numbers with a fraction.
    pub fn numbers(&mut self, name: impl Into<String>, numbers: impl Iterator<Item = Option<f64>>) {
        self.add(name, Arc::new(Float64Array::from_iter(numbers)));
    }

    /// Addresses and whole numbers from 0.
    pub fn counts(&mut self, name: impl Into<String>, counts: impl Iterator<Item = Option<u64>>) {
        self.add(name, Arc::new(UInt64Array::from_iter(counts)));
    }

    /// Whole numbers of either sign.
    pub fn integers(&mut self, name: impl Into<String>, integers: impl Iterator<Item = Option<i64>>) {
        self.add(name, Arc::new(Int64Array::from_iter(integers)));
    }

    /// Yes or no.
    pub fn flags(&mut self, name: impl Into<String>, flags: impl Iterator<Item = Option<bool>>) {
        self.add(name, Arc::new(BooleanArray::from_iter(flags)));
    }

    /// All of them, each as long as the others.
    ///
    /// # Errors
    /// One is longer.
    pub fn batch(self) -> Result<RecordBatch, ArrowError> {
        let schema = Arc::new(Schema::new(self.fields));
        match self.arrays.is_empty() {
            true => Ok(RecordBatch::new_empty(schema)),
            false => RecordBatch::try_new(schema, self.arrays),
        }
    }
}
