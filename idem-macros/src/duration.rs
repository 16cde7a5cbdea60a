//! `"24h"` and its like.

/// The longest duration, ten years: enough for any retention rule, and far from any overflow.
const MAX_DAYS: u64 = 3650;

const UNITS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

/// The seconds that `text` names, or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(format!("expected {}", grammar()));
    }
    let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let problem = if unit.is_empty() { "missing unit".to_owned() } else { format!("unknown unit `{unit}`") };
        return Err(format!("{problem}, expected {}", grammar()));
    };
    let total = number.parse().ok().and_then(|n: u64| n.checked_mul(*seconds));
    match total {
        Some(0) => Err("a duration of zero, expected at least `1s`".to_owned()),
        Some(total) if total <= MAX_DAYS * 86_400 => Ok(total),
        _ => Err(format!("too long, expected at most `{MAX_DAYS}d`")),
    }
}

fn grammar() -> String {
    let [first @ .., last] = UNITS.map(|(name, _)| format!("`{name}`"));
    format!("an integer followed by {} or {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, seconds) in [("1s", 1), ("15m", 900), ("24h", 86_400), ("007d", 604_800), ("3650d", 315_360_000)] {
            assert_eq!(parse(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_reason() {
        let grammar = "expected an integer followed by `s`, `m`, `h` or `d`";
        for text in ["", "h", "-1h", "+1h", " 24h", "1.5h?", "٣h"] {
            let error = parse(text).unwrap_err();
            assert!(error.ends_with(grammar), "{text}: {error}");
        }
        assert_eq!(parse("24"), Err(format!("missing unit, {grammar}")));
        assert_eq!(parse("24hours"), Err(format!("unknown unit `hours`, {grammar}")));
        assert_eq!(parse("1h30m"), Err(format!("unknown unit `h30m`, {grammar}")));
        assert_eq!(parse("24H"), Err(format!("unknown unit `H`, {grammar}")));
        assert_eq!(parse("24h "), Err(format!("unknown unit `h `, {grammar}")));
    }

    #[test]
    fn zero_and_ages_are_refused() {
        for text in ["0s", "0d", "000h"] {
            assert_eq!(parse(text), Err("a duration of zero, expected at least `1s`".to_owned()), "{text}");
        }
        for text in ["3651d", "315360001s", "99999999999999999999d", "18446744073709551615d"] {
            assert_eq!(parse(text), Err("too long, expected at most `3650d`".to_owned()), "{text}");
        }
    }
}
