//! The word that a misspelled one probably means.

/// The closest of `words`, if no more than every third letter differs.
pub(super) fn closest<'a>(wrong: &str, words: &[&'a str]) -> Option<&'a str> {
    let allowed = (wrong.len() / 3).max(1);
    let (edits, word) = words.iter().map(|word| (distance(wrong, word), *word)).min()?;
    (edits <= allowed).then_some(word)
}

/// Insertions, deletions and replacements that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let words = ["op", "scope", "ttl", "refuse_late"];
        for (wrong, meant) in [("scop", "scope"), ("tll", "ttl"), ("refuse-late", "refuse_late"), ("opp", "op")] {
            assert_eq!(closest(wrong, &words), Some(meant), "{wrong}");
        }
        for wrong in ["retries", "x", "", "store"] {
            assert_eq!(closest(wrong, &words), None, "{wrong}");
        }
    }
}
