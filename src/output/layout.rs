//! How tables and the lines around them are laid out.

use std::borrow::Cow;

/// What a report for people is laid out for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A terminal with so many columns: names are cut, and sentences are broken.
    Columns(usize),
    /// Text of any width.
    #[default]
    Text,
    /// Markdown, with tables as GitHub has them.
    Markdown,
}

impl Layout {
    /// The columns that there are, if there is a limit.
    pub fn width(self) -> Option<usize> {
        match self {
            Layout::Columns(width) => Some(width),
            Layout::Text | Layout::Markdown => None,
        }
    }
}

impl From<Option<usize>> for Layout {
    fn from(width: Option<usize>) -> Self {
        width.map_or(Layout::Text, Layout::Columns)
    }
}

/// The text in Markdown: what would be markup is itself.
pub fn in_markdown(text: &str) -> Cow<'_, str> {
    const MARKUP: [char; 9] = ['\\', '`', '*', '_', '[', ']', '<', '|', '~'];
    if !text.contains(MARKUP) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if MARKUP.contains(&c) { format!("\\{c}") } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(in_markdown("std::vec<int>::f(char*, int)"), r"std::vec\<int>::f(char\*, int)");
        assert_eq!(in_markdown("a|b_c [x]"), r"a\|b\_c \[x\]");
        assert_eq!(in_markdown("12.3 %"), "12.3 %");
    }
}
