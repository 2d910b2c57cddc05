//! The kernel's code over time, where it is another than in the end.

use std::ops::Range;

use crate::address::Avma;
use crate::recording::{AddressSpace, Mapping};

/// What is mapped of the kernel instead of what is in the end, from a time to the next. Where nothing is, the end holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelEpochs {
    /// By when they begin; the first one has no beginning.
    epochs: Vec<(u64, AddressSpace)>,
}

/// From this time on (ns) this is at these addresses; `None`: what is there in the end.
pub(crate) type KernelChange = (u64, Range<Avma>, Option<Mapping>);

impl KernelEpochs {
    /// Of changes in any order. What ends when something else begins ends first.
    pub fn new(mut changes: Vec<KernelChange>) -> Self {
        changes.sort_by_key(|(time, range, mapping)| (*time, mapping.is_some(), range.start));
        let mut epochs: Vec<(u64, AddressSpace)> = Vec::new();
        for (time, range, mapping) in changes {
            let space = match epochs.last() {
                Some((begin, _)) if *begin == time => None,
                Some((_, before)) => Some(before.clone()),
                None if time > 0 => {
                    epochs.push((0, AddressSpace::default()));
                    Some(AddressSpace::default())
                }
                None => Some(AddressSpace::default()),
            };
            epochs.extend(space.map(|space| (time, space)));
            if let Some((_, space)) = epochs.last_mut() {
                space.set_made_code(&range, mapping);
            }
        }
        Self { epochs }
    }

    /// Whether the code is the same at all times.
    pub fn is_one(&self) -> bool {
        self.epochs.len() <= 1
    }

    /// The epoch of a time (ns), and when it is.
    pub fn at(&self, time: u64) -> (u32, Range<u64>) {
        let epoch = self.epochs.partition_point(|(begin, _)| *begin <= time).saturating_sub(1);
        let begin = self.epochs.get(epoch).map_or(0, |(begin, _)| *begin);
        let end = self.epochs.get(epoch + 1).map_or(u64::MAX, |(begin, _)| *begin);
        (epoch as u32, begin..end)
    }

    /// What is mapped in an epoch instead of what is in the end.
    pub fn space(&self, epoch: u32) -> Option<&AddressSpace> {
        Some(&self.epochs.get(epoch as usize)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;

    #[test]
    fn epochs_begin_with_changes() {
        let range = |start: u64| Avma(start)..Avma(start + 0x10);
        let mapping = |start: u64, module| Mapping::new(Avma(start), 0x10, 0, ModuleId(module));
        let (f, g) = (1 << 63, (1 << 63) + 0x100);
        let epochs = KernelEpochs::new(vec![
            (20, range(f), mapping(f, 2)),
            (0, range(f), mapping(f, 1)),
            (20, range(f), None),
            (20, range(g), mapping(g, 3)),
            (30, range(f), None),
        ]);
        let at = |time, start| {
            let (epoch, times) = epochs.at(time);
            assert!(times.contains(&time));
            epochs.space(epoch).unwrap().find(Avma(start + 8)).map(|mapping| mapping.module.0)
        };
        assert_eq!([0, 19, 20, 29, 30].map(|time| at(time, f)), [Some(1), Some(1), Some(2), Some(2), None]);
        assert_eq!([19, 20, 1000].map(|time| at(time, g)), [None, Some(3), Some(3)]);
        assert!(!epochs.is_one() && KernelEpochs::default().is_one());
        assert_eq!(KernelEpochs::default().at(7), (0, 0..u64::MAX));
    }
}
