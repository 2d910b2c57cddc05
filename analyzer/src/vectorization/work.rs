//! The work of a row.

use crate::mix::ExecutedOperations;
use crate::uncertainty::{Design, Interval, Sampled};
use crate::vectorization::{Domain, Form, Part};

/// What was executed in a function, in a loop, or in all of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// All instructions, those that are no such work, too.
    pub instructions: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
    /// By domain, form and element.
    pub parts: Vec<Part>,
    /// Floating-point operations and bytes of memory of all instructions.
    pub operations: ExecutedOperations,
}

/// A sum of operations or instructions, with its replicates.
pub(super) type Sum = (f64, Sampled);

impl Work {
    /// Adds instructions, and the work that they are.
    pub(super) fn add(&mut self, (count, sampled): (f64, &Sampled), part: Option<Part>) {
        self.instructions += count;
        self.sampled.add(sampled, 1.0);
        let Some(part) = part else { return };
        match self.parts.iter_mut().find(|other| other.is_like(&part)) {
            Some(other) => other.add(&part),
            None => self.parts.push(part),
        }
    }

    /// Adds another row.
    pub(super) fn add_work(&mut self, other: &Work) {
        self.add((other.instructions, &other.sampled), None);
        self.operations.add(&other.operations);
        other.parts.iter().for_each(|part| self.add((0.0, &Sampled::default()), Some(part.clone())));
    }

    pub(super) fn sort(&mut self) {
        self.parts.sort_by(|one, other| {
            let kind = |part: &Part| (part.domain, part.form, part.fma, part.operations_of_one);
            (kind(one), &one.element).cmp(&(kind(other), &other.element))
        });
    }

    /// Floating-point operations: an operation for each element, two for multiply and add in one.
    pub fn flops(&self) -> f64 {
        self.sum_of(Domain::Float, |_| true).0
    }

    /// The part of the floating-point operations of that form, 0 to 1; `None` without any.
    pub fn float_share(&self, form: Form) -> Option<f64> {
        self.share_of(Domain::Float, |part| part.form == form)
    }

    /// The part of the floating-point operations that multiply and add in one, 0 to 1; `None` without any.
    pub fn fma_share(&self) -> Option<f64> {
        self.share_of(Domain::Float, |part| part.fma)
    }

    /// The part of the work of a domain on elements of that type, 0 to 1: of floating-point operations, or of instructions. `None` without any.
    pub fn element_share(&self, domain: Domain, element: &str) -> Option<f64> {
        self.share_of(domain, |part| part.element == element)
    }

    /// Executed instructions that work on vectors of integers.
    pub fn integer(&self) -> f64 {
        self.sum_of(Domain::Integer, |_| true).0
    }

    /// The part of these on vectors of so many bits, 0 to 1; `None` without any.
    pub fn integer_share(&self, width: u32) -> Option<f64> {
        self.share_of(Domain::Integer, |part| part.form == Form::Packed(width))
    }

    /// Executed instructions that move vectors and floating-point numbers.
    pub fn moves(&self) -> f64 {
        self.sum_of(Domain::Move, |_| true).0
    }

    /// Whether there is any work but moves.
    pub fn is_any(&self) -> bool {
        self.flops() + self.integer() > 0.0
    }

    /// Arithmetic intensity, in floating-point operations for each byte of memory that is read or written, and how uncertain it is; `None`
    /// without any bytes.
    pub fn intensity(&self, design: &Design) -> Option<(f64, Interval)> {
        let intensity = self.operations.sum.intensity()?;
        Some((intensity, self.operations.intensity_interval(design)))
    }

    /// How uncertain the part of the floating-point operations is that is scalar and could be packed.
    pub fn scalar_interval(&self, design: &Design) -> Interval {
        let (scalar, rest) = (self.scalar(), self.sum_of(Domain::Float, |part| part.form != Form::Scalar));
        design.part((scalar.0, &scalar.1), (rest.0, &rest.1))
    }

    /// How uncertain the share is that this row has of the work of a domain of all rows.
    pub fn interval(&self, domain: Domain, all: &Work, design: &Design) -> Interval {
        let [of_this, of_all] = [self, all].map(|work| work.sum_of(domain, |_| true));
        design.share((of_this.0, &of_this.1), (of_all.0, &of_all.1))
    }

    /// Floating-point operations that are scalar and have a packed form.
    pub(super) fn scalar(&self) -> Sum {
        self.sum_of(Domain::Float, |part| part.form == Form::Scalar)
    }

    /// Floating-point operations; instructions of what is none.
    fn sum_of(&self, domain: Domain, is_wanted: impl Fn(&Part) -> bool) -> Sum {
        let mut sum = Sum::default();
        for part in self.parts.iter().filter(|part| part.domain == domain && is_wanted(part)) {
            let times = if domain == Domain::Float { f64::from(part.operations_of_one.unwrap_or(0)) } else { 1.0 };
            sum.0 += times * part.instructions;
            sum.1.add(&part.sampled, times);
        }
        sum
    }

    fn share_of(&self, domain: Domain, is_wanted: impl Fn(&Part) -> bool) -> Option<f64> {
        let all = self.sum_of(domain, |_| true).0;
        (all > 0.0).then(|| self.sum_of(domain, is_wanted).0 / all)
    }
}
