//! A flame graph as SVG: callers below, what they called above, widths are executed instructions. A click zooms in, one on the lowest frame
//! out again.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::output::profile::contexts::{Contexts, UNKNOWN_CALLERS};
use crate::output::{count, escaped, share};

/// Width of the graph, and heights of a row, of what is above and of what is below, pixels.
const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
const ABOVE: usize = 44;
const BELOW: usize = 10;
/// Frames that are narrower are not drawn, pixels.
const NARROWEST: f64 = 0.1;
/// Frames that are narrower have no name in them, pixels.
const READABLE: f64 = 21.0;

/// A frame of the graph: who, from which instruction to which, and how many frames below.
struct Drawn {
    function: Option<usize>,
    start: u64,
    end: u64,
    depth: usize,
}

/// Writes the picture. Returns what is not in it, in sentences.
pub fn flamegraph(contexts: &Contexts<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let all: u64 = contexts.stacks().fold(0, |sum, (_, instructions)| sum.saturating_add(instructions));
    let scale = WIDTH / all.max(1) as f64;
    let is_wide = |frame: &Drawn| (frame.end - frame.start) as f64 * scale >= NARROWEST;
    let (drawn, narrow): (Vec<Drawn>, Vec<Drawn>) = frames(contexts, all).into_iter().partition(is_wide);
    let rows = drawn.iter().map(|frame| frame.depth + 1).max().unwrap_or(0);
    let height = ABOVE + rows * ROW + BELOW;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>")?;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"monospace\" font-size=\"12\">"
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#f8f8f8\"/>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{}: {}</text>",
        WIDTH / 2.0,
        escaped(&contexts.title),
        contexts.unit()
    )?;
    for Drawn { function, start, end, depth } in &drawn {
        let name = function.map_or(Cow::Borrowed(UNKNOWN_CALLERS), |function| contexts.name(function));
        let (x, width) = (*start as f64 * scale, (end - start) as f64 * scale);
        let y = height - BELOW - (depth + 1) * ROW;
        let instructions = (end - start) as f64;
        let module = function.and_then(|function| contexts.module(function)).map(|module| &module.path);
        let of = module.map(|path| format!(" ({})", escaped(path))).unwrap_or_default();
        writeln!(
            out,
            "<svg class=\"f\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"><title>{}{of}: {} {}, {}</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"{}\"/><text x=\"3\" y=\"12\"{}>{}</text></svg>",
            ROW - 1,
            escaped(&name),
            count(instructions),
            contexts.unit(),
            share(instructions, all as f64),
            colour(&name),
            if width < READABLE { " class=\"n\"" } else { "" },
            escaped(&name),
        )?;
    }
    writeln!(out, "<script><![CDATA[{SCRIPT}]]></script>")?;
    writeln!(out, "</svg>")?;
    let left_out =
        (!narrow.is_empty()).then(|| format!("left out: {} frames of less than {NARROWEST} pixels", narrow.len()));
    Ok(left_out.into_iter().collect())
}

/// All frames of the graph.
fn frames(contexts: &Contexts<'_>, all: u64) -> Vec<Drawn> {
    let mut frames = vec![Drawn { function: None, start: 0, end: all, depth: 0 }];
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut at = 0_u64;
    let mut close = |open: &mut Vec<(usize, u64)>, keep: usize, at: u64| {
        while open.len() > keep {
            let Some((function, start)) = open.pop() else { return };
            frames.push(Drawn { function: Some(function), start, end: at, depth: open.len() + 1 });
        }
    };
    for (functions, instructions) in contexts.stacks() {
        let same = open.iter().zip(functions).take_while(|((open, _), function)| open == *function).count();
        close(&mut open, same, at);
        open.extend(functions.iter().skip(same).map(|&function| (function, at)));
        at = at.saturating_add(instructions);
    }
    close(&mut open, 0, at);
    frames
}

/// A warm colour that depends on the name alone, so that it is the same in the next graph.
fn colour(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let part = |shift: u32, least: u64, range: u64| least + (hash >> shift) % range;
    format!("rgb({},{},{})", part(0, 205, 50), part(16, 80, 130), part(32, 40, 55))
}

const STYLE: &str = ".f{cursor:pointer}.f:hover rect{stroke:#000}.b rect{opacity:.5}.n{display:none}";

/// Zooms: a frame that is clicked fills the width, what it called with it, and those below fill the width as well.
const SCRIPT: &str = r#"
// Places and widths have two digits after the point, and no frame is narrower than 0.1.
const rounding = 0.05;
const width = 1200, frames = [...document.querySelectorAll("svg.f")].map(e => ({
  e, x: +e.getAttribute("x"), w: +e.getAttribute("width"), y: +e.getAttribute("y")
}));
const zoom = to => frames.forEach(f => {
  const below = f.y > to.y && f.x <= to.x + rounding && f.x + f.w >= to.x + to.w - rounding;
  const inside = f.y <= to.y && f.x >= to.x - rounding && f.x + f.w <= to.x + to.w + rounding;
  const w = below ? width : f.w * width / to.w;
  f.e.style.display = below || inside ? "" : "none";
  f.e.setAttribute("x", below ? 0 : (f.x - to.x) * width / to.w);
  f.e.setAttribute("width", w);
  f.e.classList.toggle("b", below);
  f.e.querySelector("text").classList.toggle("n", w < 21);
});
frames.forEach(f => f.e.addEventListener("click", () => zoom(f)));
"#;
