//! Colours for a terminal.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colours(bool);

/// What a text is, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// As the terminal has it.
    #[default]
    Plain,
    /// The name of what follows.
    Title,
    /// Much of the whole.
    Hot,
    /// Some of it.
    Warm,
    /// Of less interest.
    Dim,
    /// Of the source.
    Source,
    /// A line that is drawn.
    Drawn,
}

impl Colours {
    /// All colours.
    pub const ALL: Colours = Colours(true);

    /// No colours.
    pub const NONE: Colours = Colours(false);

    /// Those of the terminal that is written to, unless its user wants none (`NO_COLOR`, see <https://no-color.org>).
    pub fn of_terminal() -> Self {
        let is_set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Colours(is_set("NO_COLOR").is_none() && is_set("TERM").is_some_and(|term| term != "dumb"))
    }

    /// The text in the colour of its role.
    pub fn paint(self, role: Role, text: &str) -> Cow<'_, str> {
        let style = self.style(role);
        if style.is_plain() || text.trim().is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!("{style}{text}{style:#}"))
    }

    /// The colour of a role.
    pub fn style(self, role: Role) -> Style {
        match role {
            _ if !self.0 => Style::new(),
            Role::Plain => Style::new(),
            Role::Title => Style::new().bold(),
            Role::Hot => AnsiColor::Red.on_default().bold(),
            Role::Warm => AnsiColor::Yellow.on_default(),
            Role::Dim => Style::new().dimmed(),
            Role::Source => AnsiColor::Cyan.on_default(),
            Role::Drawn => AnsiColor::Blue.on_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_with_a_role_have_a_colour() {
        assert_eq!(Colours(true).paint(Role::Warm, "1 %"), "\x1b[33m1 %\x1b[0m");
        assert_eq!(Colours(true).paint(Role::Warm, "  "), "  ");
        assert_eq!(Colours(true).paint(Role::Plain, "1 %"), "1 %");
        assert_eq!(Colours::NONE.paint(Role::Hot, "1 %"), "1 %");
    }
}
