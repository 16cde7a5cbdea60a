//! The pages that tell of problems tell what the table says.

use super::{ALL, retry_after, row};

const CONSUMERS: &str = include_str!("../../docs/consumers.md");
const PROBLEMS: &str = include_str!("../../problems.rs");

#[test]
fn clause_01_the_consumers_page_has_every_problem_as_it_is_sent() {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let told: Vec<_> = CONSUMERS.lines().filter(|line| line.starts_with("| `idempotency-")).map(cells).collect();
    let sent = ALL.map(|kind| {
        let row = row(kind);
        vec![format!("`{}`", row.slug), row.status.as_str().to_owned(), format!("`{}`", row.retry)]
    });
    assert_eq!(told.iter().map(|cells| cells[..3].to_vec()).collect::<Vec<_>>(), sent);
    for (cells, kind) in told.iter().zip(ALL) {
        assert!(cells.len() == 4 && !cells[3].is_empty(), "{cells:?}");
        assert_eq!(cells[3].contains("`Retry-After`"), retry_after(kind).is_some(), "{cells:?}");
    }
}

#[test]
fn clause_01_every_problem_type_leads_to_a_heading() {
    let (mut paragraph, mut told) = (None, Vec::new());
    for line in PROBLEMS.lines().filter_map(|line| line.strip_prefix("//! ")) {
        match (line.strip_prefix("## "), paragraph.take()) {
            (Some(slug), _) => paragraph = Some(slug),
            (None, Some(slug)) => told.push((slug.to_owned(), line.to_owned())),
            (None, None) => {}
        }
    }
    for kind in ALL {
        let row = row(kind);
        let text = told.iter().find(|(slug, _)| slug == row.slug).map(|(_, text)| text).expect(row.slug);
        assert!(text.starts_with(row.status.as_str()), "{}: {text}", row.slug);
        assert!(text.contains(&format!("`{}`", row.retry)), "{}: {text}", row.slug);
        assert_eq!(text.contains("`Retry-After`"), retry_after(kind).is_some(), "{}: {text}", row.slug);
    }
    assert_eq!(told.len(), ALL.len(), "and no other");
}
