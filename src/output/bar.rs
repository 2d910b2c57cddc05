//! Bars beside shares, for a terminal.

use std::ffi::OsStr;

/// What bars are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bars {
    /// Blocks of Unicode: an eighth of a column is the least.
    Blocks,
    /// `#`: for terminals that show ASCII only.
    Ascii,
}

impl Bars {
    /// Columns of the longest bar.
    pub const WIDTH: usize = 10;

    /// Those that the terminal can show, as its locale says: `LC_ALL`, `LC_CTYPE`, `LANG`, the first of them that is set.
    pub fn of_locale() -> Self {
        let is_set = |name: &&str| std::env::var_os(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(is_set);
        Self::of_charset(locale.as_deref())
    }

    fn of_charset(locale: Option<&OsStr>) -> Self {
        let locale = locale.map_or(String::new(), |locale| locale.to_string_lossy().to_ascii_lowercase());
        if locale.contains("utf-8") || locale.contains("utf8") { Bars::Blocks } else { Bars::Ascii }
    }

    /// The bar of a part, 0 to 1, of the longest bar. What is more than nothing has at least the shortest bar.
    pub fn draw(self, part: f64) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let steps = |steps: usize| {
            let rounded = (part.clamp(0.0, 1.0) * steps as f64).round() as usize;
            if part > 0.0 { rounded.max(1) } else { 0 }
        };
        match self {
            Bars::Blocks => {
                let steps = steps(8 * Self::WIDTH);
                "█".repeat(steps / 8) + EIGHTHS[steps % 8]
            }
            Bars::Ascii => "#".repeat(steps(Self::WIDTH)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_the_part() {
        let blocks = [0.0, 1e-9, 0.5, 0.55, 0.99999, 1.0, 7.0].map(|part| Bars::Blocks.draw(part));
        assert_eq!(blocks, ["", "▏", "█████", "█████▌", "██████████", "██████████", "██████████"]);
        assert_eq!([0.0, 1e-9, 0.5, 1.0].map(|part| Bars::Ascii.draw(part)), ["", "#", "#####", "##########"]);
        assert_eq!(Bars::Blocks.draw(f64::NAN), "");
    }

    #[test]
    fn locales_without_unicode_have_bars_of_ascii() {
        let of = |locale: &str| Bars::of_charset(Some(OsStr::new(locale)));
        assert_eq!(["C.UTF-8", "de_DE.utf8"].map(of), [Bars::Blocks; 2]);
        assert_eq!(["C", "POSIX", "en_US.ISO-8859-1"].map(of), [Bars::Ascii; 3]);
        assert_eq!(Bars::of_charset(None), Bars::Ascii);
    }
}
