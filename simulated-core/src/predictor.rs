//! Which branches the front end predicts.
//!
//! Tables of tagged counters for histories of growing length, the longest one that knows the branch decides: TAGE and ITTAGE (Seznec and
//! Michaud, "A case for (partially) tagged geometric history length branch prediction", JILP 2006), without their refinements.

/// Branches of the history of each table of directions.
const LENGTHS: [u32; 5] = [4, 10, 24, 56, 120];
/// Bits of the history of each table of targets.
const TARGET_LENGTHS: [u32; 3] = [0, 12, 40];
/// Entries, as powers of two.
const BASE_BITS: u32 = 14;
const TABLE_BITS: u32 = 12;
const TARGET_BITS: u32 = 11;

/// Where control goes after an instruction, and whether a predictor knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// To the next instruction.
    Straight,
    /// To the target of a branch, as predicted.
    Taken,
    /// Not where the predictor said.
    Mispredicted,
}

/// A counter of a branch after a history.
#[derive(Clone, Copy, Default)]
struct Direction {
    tag: u16,
    /// Taken from 0 on; -4 to 3.
    counter: i8,
    /// How often it knew better; 0 to 3.
    useful: u8,
}

/// What was seen of the branches so far.
pub struct Predictor {
    base: Vec<i8>,
    directions: [Vec<Direction>; LENGTHS.len()],
    targets: [Vec<(u16, u64)>; TARGET_LENGTHS.len()],
    /// Latest first, in the lowest bit.
    history: u128,
}

impl Default for Predictor {
    fn default() -> Self {
        Predictor {
            base: vec![0; 1 << BASE_BITS],
            directions: std::array::from_fn(|_| vec![Direction::default(); 1 << TABLE_BITS]),
            targets: std::array::from_fn(|_| vec![(0, 0); 1 << TARGET_BITS]),
            history: 0,
        }
    }
}

impl Predictor {
    /// Another path begins: what comes before it is not known.
    pub fn forget_history(&mut self) {
        self.history = 0;
    }

    /// A direct branch was taken.
    pub fn pass(&mut self) {
        self.history = self.history << 1 | 1;
    }

    /// Whether the direction of a conditional branch was predicted.
    pub fn direction(&mut self, ip: u64, taken: bool) -> bool {
        let base = mixed(ip) as usize & ((1 << BASE_BITS) - 1);
        let places: [(usize, u16); LENGTHS.len()] =
            std::array::from_fn(|table| self.place(ip, LENGTHS[table], table as u64, TABLE_BITS));
        let knows = |table: &usize| self.directions[*table][places[*table].0].tag == places[*table].1;
        let mut knowing = (0..LENGTHS.len()).rev().filter(knows);
        let provider = knowing.next();
        let second = knowing.next();
        let otherwise = match second {
            Some(table) => self.directions[table][places[table].0].counter >= 0,
            None => self.base[base] >= 0,
        };
        let predicted = match provider {
            Some(table) => {
                let entry = &mut self.directions[table][places[table].0];
                let own = entry.counter >= 0;
                let is_new = matches!(entry.counter, -1 | 0) && entry.useful == 0;
                if own != otherwise {
                    entry.useful =
                        if own == taken { (entry.useful + 1).min(3) } else { entry.useful.saturating_sub(1) };
                }
                entry.counter = (entry.counter + if taken { 1 } else { -1 }).clamp(-4, 3);
                if is_new { otherwise } else { own }
            }
            None => {
                let counter = &mut self.base[base];
                *counter = (*counter + if taken { 1 } else { -1 }).clamp(-2, 1);
                otherwise
            }
        };
        if predicted != taken {
            // The shortest longer history that has room learns it.
            let longer = provider.map_or(0, |provider| provider + 1);
            for (table, (at, tag)) in self.directions.iter_mut().zip(places).skip(longer) {
                let entry = &mut table[at];
                if entry.useful == 0 {
                    *entry = Direction { tag, counter: if taken { 0 } else { -1 }, useful: 0 };
                    break;
                }
                entry.useful -= 1;
            }
        }
        self.history = self.history << 1 | u128::from(taken);
        predicted == taken
    }

    /// Whether the target of an indirect branch was predicted.
    pub fn target(&mut self, ip: u64, target: u64) -> bool {
        let places: [(usize, u16); TARGET_LENGTHS.len()] =
            std::array::from_fn(|table| self.place(ip, TARGET_LENGTHS[table], 16 + table as u64, TARGET_BITS));
        let provider =
            (0..TARGET_LENGTHS.len()).rev().find(|table| self.targets[*table][places[*table].0].0 == places[*table].1);
        let right = provider.is_some_and(|table| self.targets[table][places[table].0].1 == target);
        if let Some(table) = provider {
            self.targets[table][places[table].0].1 = target;
        }
        if !right {
            let table = provider.map_or(0, |table| (table + 1).min(TARGET_LENGTHS.len() - 1));
            let (at, tag) = places[table];
            self.targets[table][at] = (tag, target);
        }
        const BITS_OF_A_TARGET: u32 = 3;
        self.history = self.history << BITS_OF_A_TARGET | u128::from(mixed(target) & ((1 << BITS_OF_A_TARGET) - 1));
        right
    }

    /// Where a branch after so much of the history is in a table, and its tag.
    fn place(&self, ip: u64, length: u32, table: u64, bits: u32) -> (usize, u16) {
        let history = self.history & ((1 << length) - 1);
        let folded = mixed(history as u64 ^ mixed((history >> 64) as u64).wrapping_add(table));
        let hash = mixed(ip ^ folded);
        (hash as usize & ((1 << bits) - 1), (hash >> 40) as u16)
    }
}

/// The finalizer of MurmurHash3: every bit of the result depends on every bit.
fn mixed(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the last 1,000 of 4,000 branches were predicted.
    fn predicted(mut branch: impl FnMut(&mut Predictor, u64) -> bool) -> usize {
        let mut predictor = Predictor::default();
        (0..4000).map(|index| branch(&mut predictor, index)).skip(3000).filter(|right| *right).count()
    }

    #[test]
    fn loops_of_few_rounds_are_predicted_and_coins_are_not() {
        assert_eq!(predicted(|predictor, index| predictor.direction(0x40_0000, index % 7 != 6)), 1000);
        let coins = predicted(|predictor, index| predictor.direction(0x40_0000, mixed(index) & 1 == 0));
        assert!((350..650).contains(&coins), "{coins}");
    }

    #[test]
    fn targets_that_depend_on_the_way_there_are_predicted() {
        let right = predicted(|predictor, index| {
            predictor.direction(0x40_0000, index % 3 == 0);
            predictor.target(0x40_0010, if index % 3 == 0 { 0x50_0000 } else { 0x60_0000 })
        });
        assert_eq!(right, 1000);
        let coins = predicted(|predictor, index| predictor.target(0x40_0010, mixed(index) & 15));
        assert!(coins < 300, "{coins}");
    }
}
