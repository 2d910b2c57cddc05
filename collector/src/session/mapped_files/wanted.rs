//! Where in a process the files are that wait for a sample.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::session::mapped_files::Elsewhere;

/// Disjoint ranges of addresses with their files, by where they begin; with their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct WantedRanges(BTreeMap<u64, (u64, Arc<Elsewhere>)>);

impl WantedRanges {
    /// A file is mapped there now, in place of what was there, which is returned.
    pub(super) fn map(&mut self, range: Range<u64>, file: Arc<Elsewhere>) -> Vec<Arc<Elsewhere>> {
        let before = self.unmap(&range);
        self.0.insert(range.start, (range.end, file));
        before
    }

    /// Something else is mapped there now. Returns what was there.
    pub(super) fn unmap(&mut self, range: &Range<u64>) -> Vec<Arc<Elsewhere>> {
        let mut before = Vec::new();
        while let Some((&start, (end, _))) = self.0.range(..range.end).next_back()
            && *end > range.start
        {
            before.extend(self.0.remove(&start).map(|(_, file)| file));
        }
        before
    }

    /// Files at whose addresses some of these words are.
    pub(super) fn hit_by(&self, words: impl Iterator<Item = u64>) -> Vec<Arc<Elsewhere>> {
        let mut hit: Vec<Arc<Elsewhere>> = Vec::new();
        let (Some((&first, _)), Some((_, (last, _)))) = (self.0.first_key_value(), self.0.last_key_value()) else {
            return hit;
        };
        let mut known = first..first;
        for word in words.filter(|word| (first..*last).contains(word)) {
            if known.contains(&word) {
                continue;
            }
            let Some((start, (end, file))) = self.0.range(..=word).next_back().filter(|(_, (end, _))| word < *end)
            else {
                continue;
            };
            known = *start..*end;
            if !hit.iter().any(|other| Arc::ptr_eq(other, file)) {
                hit.push(file.clone());
            }
        }
        hit
    }

    /// Leaves out what is kept.
    pub(super) fn forget_kept(&mut self) {
        self.0.retain(|_, (_, file)| !file.is_kept());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files, as often as they are mapped.
    pub(super) fn into_files(self) -> impl Iterator<Item = Arc<Elsewhere>> {
        self.0.into_values().map(|(_, file)| file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_mappings_take_the_place_of_earlier_ones() {
        let [a, b] = [(); 2].map(|()| Arc::<Elsewhere>::default());
        let mut ranges = WantedRanges::default();
        ranges.map(100..200, a.clone());
        ranges.map(300..400, b.clone());
        let hit = |ranges: &WantedRanges, words: &[u64]| {
            let files = ranges.hit_by(words.iter().copied());
            files.iter().map(|file| if Arc::ptr_eq(file, &a) { 'a' } else { 'b' }).collect::<String>()
        };
        assert_eq!(hit(&ranges, &[0, 99, 200, 299, 400]), "");
        assert_eq!(hit(&ranges, &[399, 100, 199, 300]), "ba");
        ranges.unmap(&(200..300));
        assert_eq!(hit(&ranges, &[100, 300]), "ab");
        ranges.map(150..350, a.clone());
        assert_eq!((hit(&ranges, &[100, 149, 350]), hit(&ranges, &[150])), (String::new(), "a".to_owned()));
        ranges.unmap(&(0..1000));
        assert!(ranges.is_empty());
    }
}
