use super::*;

fn text(text: &str) -> Pointed {
    Pointed::Text(text.to_owned())
}

fn scalar(text: &str) -> Pointed {
    Pointed::Scalar(text.to_owned())
}

#[test]
fn clause_42_an_object_is_text_or_an_integer() {
    for (value, id) in [(text("sub_1"), "sub_1"), (text("42"), "42"), (scalar("42"), "42"), (scalar("-1"), "-1")] {
        assert_eq!(object(value).as_deref(), Some(id));
    }
    for value in [text(""), scalar("1.0"), scalar("1e3"), scalar("true"), scalar("null"), Pointed::Other] {
        assert_eq!(object(value), None);
    }
}

#[test]
fn clause_42_a_sequence_is_a_number_or_a_time() {
    for (value, number) in [
        (scalar("1700000000"), 1_700_000_000),
        (text("1700000000"), 1_700_000_000),
        (text("0007"), 7),
        (scalar("-3"), -3),
        (scalar("9223372036854775807"), i64::MAX),
        (text("9223372036854775807"), i64::MAX),
    ] {
        assert_eq!(sequence(value), Some(Sequence::Number(number)));
    }
    for (time, micros) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.0000019Z", 1),
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T19:00:00.5-05:00", 500_000),
        ("2026-11-30T09:30:00Z", 1_796_031_000_000_000),
    ] {
        assert_eq!(sequence(text(time)), Some(Sequence::Time(micros)), "{time}");
    }
}

#[test]
fn clause_42_what_cannot_be_compared_is_no_sequence() {
    for text in ["", "-1", "+1", "1.5", "9223372036854775808", "yesterday", "2026-11-30", "2026-11-30T09:30:00"] {
        assert_eq!(sequence(Pointed::Text(text.to_owned())), None, "{text}");
    }
    for text in ["9223372036854775808", "1.0", "1e9", "true", "null"] {
        assert_eq!(sequence(scalar(text)), None, "{text}");
    }
    assert_eq!(sequence(Pointed::Other), None);
}
