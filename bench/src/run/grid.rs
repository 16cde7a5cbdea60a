//! A table: variants down, connections across, medians over the repetitions in each cell.

use std::{collections::BTreeMap, fmt};

use crate::{cell::Measured, options::Database, variant::Variant};

/// All that was measured of one load. The first variant is what the others are compared with.
pub(crate) struct Grid {
    variants: &'static [Variant],
    connections: Vec<usize>,
    database: Database,
    /// By repetition.
    cells: BTreeMap<(usize, Variant), Vec<Measured>>,
}

impl Grid {
    pub(crate) fn new(variants: &'static [Variant], connections: Vec<usize>, database: Database) -> Self {
        Self { variants, connections, database, cells: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, connections: usize, variant: Variant, measured: Measured) {
        self.cells.entry((connections, variant)).or_default().push(measured);
    }

    pub(crate) fn connections(&self) -> &[usize] {
        &self.connections
    }

    /// The median of what the repetitions say.
    fn median(&self, connections: usize, variant: Variant, of: impl Fn(&Measured) -> f64) -> f64 {
        self.reps(connections, variant).iter().map(of).median()
    }

    /// The median of the ratios that were measured within a repetition each.
    pub(crate) fn ratio(&self, connections: usize, variant: Variant) -> f64 {
        let base = self.reps(connections, self.variants[0]);
        self.reps(connections, variant).iter().zip(base).map(|(this, base)| this.rate / base.rate).median()
    }

    fn reps(&self, connections: usize, variant: Variant) -> &[Measured] {
        self.cells.get(&(connections, variant)).map_or(&[], Vec::as_slice)
    }

    fn table(&self, f: &mut fmt::Formatter<'_>, cell: impl Fn(usize, Variant) -> String) -> fmt::Result {
        let head = self.connections.iter().map(|connections| match connections {
            1 => "1 connection".to_owned(),
            more => more.to_string(),
        });
        writeln!(f, "| | {} |", head.collect::<Vec<_>>().join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(self.connections.len()))?;
        for &variant in self.variants {
            let cells = self.connections.iter().map(|&connections| cell(connections, variant));
            writeln!(f, "| {variant} | {} |", cells.collect::<Vec<_>>().join(" | "))?;
        }
        Ok(())
    }

    fn costs(&self, connections: usize, variant: Variant) -> String {
        let median = |of: fn(&Measured) -> f64| self.median(connections, variant, of);
        let (server, load, idle) = (median(|it| it.server), median(|it| it.load), median(|it| it.idle));
        if self.database == Database::Sqlite {
            return format!("{server:.0} + {load:.0}, {idle:.2}");
        }
        let (database, bytes, flushes) = (median(|it| it.database), median(|it| it.wal_bytes), median(|it| it.flushes));
        format!("{server:.0} + {database:.0} + {load:.0}, {idle:.2}, {bytes:.0}, {flushes:.2}")
    }

    /// What was answered otherwise than 201, which makes a cell worth nothing.
    fn unexpected(&self) -> BTreeMap<(usize, Variant), BTreeMap<u16, u64>> {
        let mut all: BTreeMap<(usize, Variant), BTreeMap<u16, u64>> = BTreeMap::new();
        for (cell, reps) in &self.cells {
            for (&status, &count) in reps.iter().flat_map(|measured| &measured.unexpected) {
                *all.entry(*cell).or_default().entry(status).or_default() += count;
            }
        }
        all
    }
}

/// As Markdown.
impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Requests a second (× {}), p50 / p99 in ms:\n", self.variants[0])?;
        self.table(f, |connections, variant| {
            let median = |of: fn(&Measured) -> f64| self.median(connections, variant, of);
            let (rate, p50, p99) = (median(|it| it.rate), median(|it| it.p50), median(|it| it.p99));
            format!("{rate:.0} ({:.2}×) {p50:.2} / {p99:.1}", self.ratio(connections, variant))
        })?;
        match self.database {
            Database::Postgres => writeln!(
                f,
                "\nCPU a request in µs (server + database + load), idle share of the machine, bytes of WAL and flushes a request:\n"
            )?,
            Database::Sqlite => {
                writeln!(f, "\nCPU a request in µs (server with its database + load), idle share of the machine:\n")?
            }
        }
        self.table(f, |connections, variant| self.costs(connections, variant))?;
        let others = || self.cells.values().flatten().map(|it| it.others * 100.0);
        let (median, most) = (others().median(), others().fold(0.0, f64::max));
        writeln!(
            f,
            "\nOther processes had {median:.0} % of the CPUs (the median of all measurements), and {most:.0} % at most."
        )?;
        for ((connections, variant), statuses) in self.unexpected() {
            let statuses: Vec<_> = statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
            writeln!(f, "\nNot every request was answered 201: {variant}, {connections}: {}.", statuses.join(", "))?;
        }
        Ok(())
    }
}

pub(crate) trait Median {
    /// The one in the middle; no number if there is none.
    fn median(self) -> f64;
}

impl<I: Iterator<Item = f64>> Median for I {
    fn median(self) -> f64 {
        let mut all: Vec<f64> = self.collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => all[odd / 2],
            even => f64::midpoint(all[even / 2 - 1], all[even / 2]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_repetition() {
        let mut grid = Grid::new(&[Variant::Bare, Variant::Held], vec![16], Database::Postgres);
        for (bare, held) in [(100.0, 50.0), (1000.0, 600.0), (10.0, 7.0)] {
            grid.add(16, Variant::Bare, Measured { rate: bare, ..Measured::default() });
            grid.add(16, Variant::Held, Measured { rate: held, ..Measured::default() });
        }
        assert!((grid.ratio(16, Variant::Held) - 0.6).abs() < 1e-9);
        assert!(grid.to_string().contains("| **idem, held** | 50 (0.60×)"));
    }

    #[test]
    fn an_answer_that_is_not_expected_is_told() {
        let mut grid = Grid::new(&[Variant::Bare], vec![1], Database::Sqlite);
        let unexpected = BTreeMap::from([(503, 2)]);
        grid.add(1, Variant::Bare, Measured { unexpected, ..Measured::default() });
        assert!(grid.to_string().contains("bare, 1: 2 × 503."));
    }
}
