//! The errors of the most frequent mnemonics as bars, like figures 3 and 4 of HBBP, in SVG.

use std::fmt::Write;

use crate::output::escaped;
use analyzer::validation::{Estimate, Validation};

/// How many mnemonics are drawn.
const MNEMONICS: usize = 20;
/// Errors beyond it are cut, and said.
const HIGHEST: f64 = 1.0;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 90.0;

/// Distinguishable for the colour-blind, and in grey (Okabe and Ito's palette).
const COLOURS: [&str; 3] = ["#e69f00", "#56b4e9", "#004c3f"];

/// An SVG document: a group of bars for each of the most frequent mnemonics, a bar for each estimate.
pub fn svg(validation: &Validation) -> String {
    let estimates: Vec<Estimate> =
        Estimate::ALL.into_iter().filter(|&estimate| validation.qualities[estimate as usize].is_some()).collect();
    let shown: Vec<_> = validation.mnemonics.iter().filter(|named| named.truth > 0.0).take(MNEMONICS).collect();
    let errors = shown.iter().flat_map(|named| estimates.iter().filter_map(|&estimate| named.error(estimate)));
    let (step, top) = scale(errors.fold(0.0, f64::max).min(HIGHEST));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let y = |error: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * error / top;
    grid(&mut svg, step, top, y);
    legend(&mut svg, validation, &estimates);
    let group = (WIDTH - LEFT - RIGHT) / shown.len().max(1) as f64;
    let bar = group * 0.8 / estimates.len().max(1) as f64;
    for (place, named) in shown.iter().enumerate() {
        let x = LEFT + group * place as f64 + group * 0.1;
        for (number, &estimate) in estimates.iter().enumerate() {
            let Some(error) = named.error(estimate) else { continue };
            let left = x + bar * number as f64;
            let up = y(error.min(top));
            let colour = COLOURS[estimate as usize];
            let height = HEIGHT - BOTTOM - up;
            element(
                &mut svg,
                &format!(
                    "<rect x=\"{left:.1}\" y=\"{up:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
                ),
            );
            if error > top {
                text(
                    &mut svg,
                    (left + bar / 2.0, up - 3.0),
                    "font-size=\"9\" text-anchor=\"middle\"",
                    &format!("{:.0}", 100.0 * error),
                );
            }
        }
        let (x, y) = (x + group * 0.4 + 4.0, HEIGHT - BOTTOM + 12.0);
        let turned = format!("text-anchor=\"end\" transform=\"rotate(-45 {x:.1} {y:.1})\"");
        text(&mut svg, (x, y), &turned, &format!("{} ({:.1} %)", named.name, 100.0 * named.truth));
    }
    svg + "</svg>\n"
}

/// Distance of the grid's lines, and the highest of them.
fn scale(highest: f64) -> (f64, f64) {
    let steps = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
    let step = steps.into_iter().find(|step| highest <= 6.0 * step).unwrap_or(0.2);
    (step, step * (highest / step).ceil().max(1.0))
}

fn grid(svg: &mut String, step: f64, top: f64, y: impl Fn(f64) -> f64) {
    for line in 0..=(top / step).round() as usize {
        let error = step * line as f64;
        let (at, end) = (y(error), WIDTH - RIGHT);
        let colour = if line == 0 { "black" } else { "#dddddd" };
        element(svg, &format!("<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"{colour}\"/>"));
        let digits = usize::from(step < 0.01);
        text(svg, (LEFT - 6.0, at + 4.0), "text-anchor=\"end\"", &format!("{:.digits$} %", 100.0 * error));
    }
}

fn legend(svg: &mut String, validation: &Validation, estimates: &[Estimate]) {
    text(svg, (LEFT, 22.0), "font-size=\"14\"", "Error by mnemonic (share of executed instructions)");
    for (number, &estimate) in estimates.iter().enumerate() {
        let x = LEFT + 220.0 * number as f64;
        let colour = COLOURS[estimate as usize];
        element(svg, &format!("<rect x=\"{x}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"));
        let error = validation.qualities[estimate as usize].map_or(0.0, |quality| quality.mnemonic.error);
        text(svg, (x + 18.0, 44.0), "", &format!("{}: {:.2} % on average", estimate.as_str(), 100.0 * error));
    }
}

fn element(svg: &mut String, element: &str) {
    svg.push_str(element);
    svg.push('\n');
}

/// Mnemonics come from files: what could be read as markup is escaped.
fn text(svg: &mut String, (x, y): (f64, f64), attributes: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>");
}
