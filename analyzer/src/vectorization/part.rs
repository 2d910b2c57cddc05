//! What of the work is alike.

use crate::mix::Cell;
use crate::uncertainty::Sampled;

/// What instructions work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// Floating-point arithmetic: what `flops` counts operations of.
    Float,
    /// Arithmetic, logic, shifts and comparison of vectors of integers.
    Integer,
    /// Neither: moves of vectors and of floating-point numbers.
    Move,
}

impl Domain {
    /// In JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Domain::Float => "float",
            Domain::Integer => "integer",
            Domain::Move => "move",
        }
    }
}

/// How many elements an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// One. Of floating-point arithmetic: it has a packed form.
    Scalar,
    /// One, by the old floating point, which has no packed form.
    X87,
    /// All that a vector of so many bits holds.
    Packed(u32),
}

impl Form {
    /// In JSON, without the width.
    pub fn as_str(self) -> &'static str {
        match self {
            Form::Scalar => "scalar",
            Form::X87 => "x87",
            Form::Packed(_) => "packed",
        }
    }

    /// Bits of the vector.
    pub fn width(self) -> Option<u32> {
        match self {
            Form::Packed(width) => Some(width),
            Form::Scalar | Form::X87 => None,
        }
    }
}

/// Executed instructions that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What they work on.
    pub domain: Domain,
    /// On how much at once.
    pub form: Form,
    /// The type of the elements, as the key `element` of mixes has it.
    pub element: String,
    /// Whether they multiply and add in one.
    pub fma: bool,
    /// Operations of one instruction: of floating point, as `flops` says; of integers one for each element of the vector. `None` of moves, and
    /// where the vector is not divided into elements.
    pub operations_of_one: Option<u32>,
    /// How many were executed.
    pub instructions: f64,
    /// What that would be in the replicates.
    pub sampled: Sampled,
}

impl Part {
    /// Operations in all.
    pub fn operations(&self) -> Option<f64> {
        self.operations_of_one.map(|operations| f64::from(operations) * self.instructions)
    }

    /// What a cell is that has these values of `vector-work`, `vectorization`, `flops`, `element` and `width`; `None` of no such work.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let [work, group, flops, element, width] = <&[String; 5]>::try_from(cell.column.as_slice()).ok()?;
        let (work, group) = (work.as_str(), group.as_str());
        let domain = match work {
            "float" | "fma" => Domain::Float,
            "integer" => Domain::Integer,
            "move" => Domain::Move,
            _ => return None,
        };
        let form = match (group, width.parse()) {
            ("x87", _) => Form::X87,
            (group, Ok(width)) if group.starts_with("packed") => Form::Packed(width),
            _ => Form::Scalar,
        };
        let operations_of_one = match domain {
            // Rounding and the like is no operation that counts.
            Domain::Float => Some(flops.parse().ok().filter(|flops| *flops > 0)?),
            Domain::Integer => form.width().zip(bits(element)).map(|(width, bits)| width / bits),
            Domain::Move => None,
        };
        Some(Part {
            domain,
            form,
            element: element.clone(),
            fma: work == "fma",
            operations_of_one,
            instructions: cell.count,
            sampled: cell.sampled.clone(),
        })
    }

    /// Whether another one is of the same kind.
    pub(super) fn is_like(&self, other: &Part) -> bool {
        let kind = |part: &Part| (part.domain, part.form, part.fma, part.operations_of_one);
        kind(self) == kind(other) && self.element == other.element
    }

    /// Adds another one of the same kind.
    pub(super) fn add(&mut self, other: &Part) {
        self.instructions += other.instructions;
        self.sampled.add(&other.sampled, 1.0);
    }
}

/// Bits of an element: `i32` has 32.
fn bits(element: &str) -> Option<u32> {
    element.strip_prefix('i')?.parse().ok().filter(|bits| *bits > 0)
}
