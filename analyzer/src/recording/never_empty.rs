//! Lists with at least one element.

/// A list that has a first element whatever happens.
#[derive(Clone, Debug)]
pub struct NeverEmpty<T> {
    first: T,
    more: Vec<T>,
}

impl<T> NeverEmpty<T> {
    /// A list of one.
    pub fn of(first: T) -> Self {
        NeverEmpty { first, more: Vec::new() }
    }

    /// Adds one at the end.
    pub fn push(&mut self, next: T) {
        self.more.push(next);
    }

    /// The last element, which is always there.
    pub fn last(&self) -> &T {
        self.more.last().unwrap_or(&self.first)
    }

    /// The last element, to be changed.
    pub fn last_mut(&mut self) -> &mut T {
        self.more.last_mut().unwrap_or(&mut self.first)
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        index.checked_sub(1).map_or(Some(&self.first), |index| self.more.get(index))
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// The elements in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        std::iter::once(&mut self.first).chain(&mut self.more)
    }

    /// The last element that a condition holds of, and its index; the first if it holds of none. It must hold of a front part
    /// of the list and of nothing after it.
    pub fn last_where(&self, condition: impl FnMut(&T) -> bool) -> (usize, &T) {
        let index = self.more.partition_point(condition);
        match index.checked_sub(1).and_then(|last| self.more.get(last)) {
            Some(last) => (index, last),
            None => (0, &self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_below_a_bound_is_found_or_else_the_first() {
        let mut list = NeverEmpty::of(10);
        assert_eq!((list.last(), list.last_where(|&x| x < 5)), (&10, (0, &10)));
        list.push(20);
        list.push(30);
        assert_eq!(list.last_where(|&x| x < 5), (0, &10));
        assert_eq!(list.last_where(|&x| x <= 20), (1, &20));
        assert_eq!(list.last_where(|_| true), (2, &30));
        assert_eq!((list.get(0), list.get(2), list.get(3)), (Some(&10), Some(&30), None));
        *list.last_mut() += 1;
        assert_eq!(list.iter().copied().collect::<Vec<_>>(), [10, 20, 31]);
    }
}
