//! The one chart: what is left of the bare handler's throughput. Readable on light and on dark ground.

use std::fmt::Write;

use crate::{run::Grid, variant::Variant};

const BARS: [(Variant, &str, &str); 4] = [
    (Variant::ByHandLease, "lease", "by hand, with a lease"),
    (Variant::Held, "held", "idem, held"),
    (Variant::ByHandTransaction, "hand", "by hand, one transaction"),
    (Variant::Transactional, "tx", "idem, transactional"),
];

const WIDTH: f64 = 720.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 64.0;
const HEIGHT: f64 = 220.0;

const STYLE: &str = "
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .line { stroke: #8c959f; stroke-opacity: .35 }
  .lease { fill: #a8b1bb } .held { fill: #0969da } .hand { fill: #c9b79c } .tx { fill: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .lease { fill: #6e7681 } .held { fill: #58a6ff } .hand { fill: #8a7a5c } .tx { fill: #3fb950 }
  }
";

/// An SVG.
pub(crate) fn draw(grid: &Grid) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"Throughput on Postgres as a share of the bare handler's\">\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"22\">Throughput on Postgres, as a share of the bare handler's</text>\n",
        TOP + HEIGHT + 44.0,
    );
    let most = grid.connections().iter().flat_map(|&it| BARS.map(|(variant, ..)| grid.ratio(it, variant)));
    let top = most.fold(1.0_f64, f64::max); // a NaN is no maximum
    legend(&mut svg);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = TOP + HEIGHT * (1.0 - share / top);
        push(
            &mut svg,
            &format!("<line class=\"line\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>", WIDTH - 8.0),
        );
        push(&mut svg, &format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{share}</text>", LEFT - 6.0, y + 4.0));
    }
    let group = (WIDTH - LEFT - 8.0) / grid.connections().len().max(1) as f64;
    for (nr, &connections) in grid.connections().iter().enumerate() {
        let left = LEFT + group * nr as f64;
        bars(&mut svg, grid, connections, left, group, top);
        let label = if connections == 1 { "1 connection".to_owned() } else { format!("{connections} connections") };
        let (x, y) = (left + group / 2.0, TOP + HEIGHT + 20.0);
        push(&mut svg, &format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"));
    }
    svg.push_str("</svg>\n");
    svg
}

fn bars(svg: &mut String, grid: &Grid, connections: usize, left: f64, group: f64, top: f64) {
    let width = group * 0.8 / BARS.len() as f64;
    for (nr, (variant, class, _)) in BARS.into_iter().enumerate() {
        let ratio = grid.ratio(connections, variant);
        if !ratio.is_finite() {
            continue;
        }
        let (x, height) = (left + group * 0.1 + width * nr as f64, HEIGHT * ratio / top);
        let y = TOP + HEIGHT - height;
        let wide = width - 3.0;
        push(
            svg,
            &format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{height:.1}\"/>"),
        );
        let middle = x + wide / 2.0;
        push(svg, &format!("<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{ratio:.2}</text>", y - 4.0));
    }
}

fn legend(svg: &mut String) {
    let mut x = LEFT;
    for (_, class, title) in BARS {
        push(svg, &format!("<rect class=\"{class}\" x=\"{x}\" y=\"34\" width=\"11\" height=\"11\"/>"));
        push(svg, &format!("<text x=\"{}\" y=\"44\">{title}</text>", x + 16.0));
        x += 40.0 + 7.2 * title.len() as f64; // about as wide as its letters
    }
}

fn push(svg: &mut String, line: &str) {
    let _ = writeln!(svg, "{line}"); // a String takes everything
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cell::Measured, options::Database};

    #[test]
    fn there_is_a_bar_for_each_of_what_was_measured() {
        let mut grid = Grid::new(&[Variant::Bare, Variant::Held], vec![1, 64], Database::Postgres);
        for (variant, rate) in [(Variant::Bare, 100.0), (Variant::Held, 73.0)] {
            grid.add(1, variant, Measured { rate, ..Measured::default() });
        }
        let svg = draw(&grid);
        assert_eq!(svg.matches(">0.73</text>").count(), 1);
        assert_eq!(svg.matches("<rect class=\"held\"").count(), 2, "one, and that of the legend");
        assert!(svg.contains("64 connections") && !svg.contains("NaN"));
    }
}
