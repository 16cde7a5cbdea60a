use proptest::prelude::*;

use super::*;

fn lines(lines: &[&[u8]]) -> Result<Key, HeaderFault> {
    parse_key(lines.iter().copied(), KeyFormat::Any)
}

fn parse(line: impl AsRef<[u8]>) -> Result<Key, HeaderFault> {
    lines(&[line.as_ref()])
}

fn key(text: &str) -> Result<Key, HeaderFault> {
    Ok(Key::new(text).unwrap())
}

fn is_invalid(parsed: &Result<Key, HeaderFault>) -> bool {
    matches!(parsed, Err(HeaderFault::Invalid(_)))
}

/// The string of RFC 9651 that holds `text`.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn scenario_12_no_header_line_is_missing() {
    assert_eq!(lines(&[]), Err(HeaderFault::Missing));
}

#[test]
fn case_09_no_key_never_becomes_a_shared_key() {
    for format in [KeyFormat::Any, KeyFormat::Uuid] {
        assert_eq!(parse_key([], format), Err(HeaderFault::Missing));
        assert_eq!(parse_key([b"".as_slice()], format), Err(HeaderFault::Invalid("the key is empty")));
    }
}

#[test]
fn scenario_14_quoted_and_bare_are_the_same_key() {
    assert_eq!(parse("\"abc\""), key("abc"));
    assert_eq!(parse("abc"), key("abc"));
    assert_ne!(parse("abc"), parse("ABC"), "case is kept");
}

#[test]
fn white_space_around_the_value_is_optional() {
    for padded in ["  abc", "abc\t", "\t \"abc\" \t"] {
        assert_eq!(parse(padded), key("abc"), "{padded:?}");
    }
    assert_eq!(parse("\" abc\""), key(" abc"), "inside of the quotes it is part of the key");
}

#[test]
fn scenario_15_bare_uuid_may_start_with_a_digit() {
    let uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    assert_eq!(parse(uuid), key(uuid));
}

#[test]
fn scenario_16_equal_lines_are_still_two() {
    assert!(is_invalid(&lines(&[b"abc", b"abc"])));
    assert!(is_invalid(&lines(&[b"abc", b""])));
}

#[test]
fn scenario_17_lines_are_not_joined() {
    assert!(is_invalid(&lines(&[b"\"ab", b"cd\""])));
    assert_eq!(parse("\"ab,cd\""), key("ab,cd"), "what joining them would have given");
}

#[test]
fn scenario_18_a_bare_comma_may_be_two_keys() {
    for joined in ["a, b", "a,b", "\"a\", \"b\"", "\"a\",\"b\""] {
        assert!(is_invalid(&parse(joined)), "{joined}");
    }
}

#[test]
fn scenario_19_length_is_counted_after_unquoting() {
    let (longest, longer) = ("k".repeat(255), "k".repeat(256));
    assert_eq!(parse(&longest), key(&longest));
    assert_eq!(parse(quote(&longest)), key(&longest));
    assert_eq!(parse(format!("{};v=1", quote(&longest))), key(&longest));
    assert_eq!(parse(quote(&"\"".repeat(255))), key(&"\"".repeat(255)), "an escape is one character");
    for too_long in [longer.clone(), quote(&longer)] {
        assert_eq!(parse(too_long), Err(HeaderFault::Invalid("the key is longer than 255 characters")));
    }
}

#[test]
fn case_87_a_long_key_is_refused_not_cut() {
    for length in [256, 2_700, 9_000] {
        let random: String = (0..length).map(|_| fastrand::alphanumeric()).collect();
        assert!(is_invalid(&parse(random)));
        assert!(is_invalid(&parse("a".repeat(length))));
    }
    let (a, b) = (format!("{}a", "k".repeat(254)), format!("{}b", "k".repeat(254)));
    assert_ne!(parse(a), parse(b), "the last character counts");
}

#[test]
fn scenario_20_what_is_no_key() {
    for bad in
        ["", " ", "\"\"", "\"", "\"abc", "abc\"", "a\"b", "\"abc\\", "\"abc\\\"", "\"a\\b\"", "a b", "a;b", "a\\b"]
    {
        assert!(is_invalid(&parse(bad)), "{bad}");
    }
    for byte in (0x00..=0x1f).chain(0x7f..=0xff) {
        if byte != b'\t' {
            assert!(is_invalid(&parse([b'a', byte])), "{byte:#x} at the end");
        }
        assert!(is_invalid(&parse([b'a', byte, b'b'])), "{byte:#x}");
        assert!(is_invalid(&parse([b'"', b'a', byte, b'"'])), "{byte:#x} quoted");
    }
    assert!(is_invalid(&parse("schlüssel")) && is_invalid(&parse("\"schlüssel\"")));
}

#[test]
fn scenario_21_parameters_are_ignored() {
    for with_parameters in ["\"abc\";v=1", "\"abc\"; v=1;w", "\"abc\";v=\"x;y\" "] {
        assert_eq!(parse(with_parameters), key("abc"), "{with_parameters}");
    }
    for malformed in ["\"abc\";", "\"abc\" ;v", "\"abc\";=1", "\"abc\"x", "\"abc\" x"] {
        assert!(is_invalid(&parse(malformed)), "{malformed}");
    }
}

#[test]
fn case_89_text_of_an_unset_variable_is_no_key() {
    for literal in ["undefined", "null", "None", "NaN", "[object Object]"] {
        for sent in [literal.to_owned(), quote(literal), format!(" {} ", quote(literal))] {
            assert!(is_invalid(&parse(&sent)), "{sent}");
        }
    }
    assert_eq!(parse("nullable"), key("nullable"));
    assert_eq!(parse("NULL"), key("NULL"), "the literals are what those languages print");
}

#[test]
fn uuid_format_is_hyphenated_and_lower_cased() {
    let uuid = |line: &str| parse_key([line.as_bytes()], KeyFormat::Uuid);
    let lower = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    for same in [lower.to_owned(), lower.to_uppercase(), quote(&lower.to_uppercase())] {
        assert_eq!(uuid(&same), key(lower), "{same}");
    }
    for other in [
        "abc",
        "8e03978e40d543e8bc936894a57f9324",
        "{8e03978e-40d5-43e8-bc93-6894a57f9324}",
        "urn:uuid:8e03978e-40d5-43e8-bc93-6894a57f9324",
        "8e03978e-40d5-43e8-bc93-6894a57f932",
        "8e03978e-40d5-43e8-bc93-6894a57f932g",
        "8e03978e-40d5-43e8-bc936-894a57f9324",
        "8e03978e_40d5_43e8_bc93_6894a57f9324",
        "8e03978e-40d5-43e8-bc93a6894a57f9324",
        "8e03978e-40d5-43e8-bc93-6894a57f9324-",
    ] {
        assert!(is_invalid(&uuid(other)), "{other}");
    }
}

/// Legal bare keys.
fn bare_key() -> impl Strategy<Value = String> {
    "[!#-+\\--:<-\\[\\]-~]{1,255}".prop_filter("a literal", |key| !UNSET.contains(&key.as_str()))
}

/// Legal quoted keys, before quoting.
fn quotable_key() -> impl Strategy<Value = String> {
    "[ -~]{1,255}".prop_filter("a literal", |key| !UNSET.contains(&key.as_str()))
}

proptest! {
    #[test]
    fn any_bytes_are_a_key_or_a_fault(
        bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..300), "\"[ -~\\\\\"]{0,40}\"?[;=a-z\"]{0,8}".prop_map(String::into_bytes)],
        uuid: bool,
    ) {
        let format = if uuid { KeyFormat::Uuid } else { KeyFormat::Any };
        let parsed = parse_key([bytes.as_slice()], format);
        prop_assert_ne!(parsed.clone(), Err(HeaderFault::Missing));
        if parsed.is_ok() {
            prop_assert!(bytes.iter().all(|b| matches!(b, b' '..=b'~' | b'\t')));
        }
    }

    #[test]
    fn bare_equals_quoted(text in bare_key()) {
        prop_assert_eq!(parse(&text), key(&text));
        prop_assert_eq!(parse(quote(&text)), key(&text));
    }

    #[test]
    fn quoted_is_unquoted_exactly(text in quotable_key()) {
        prop_assert_eq!(parse(quote(&text)), key(&text));
    }

    #[test]
    fn distinct_values_are_distinct_keys(a in quotable_key(), b in prop_oneof![quotable_key(), bare_key()]) {
        prop_assume!(a != b);
        prop_assert_ne!(parse(quote(&a)), parse(quote(&b)));
    }

    #[test]
    fn values_that_differ_in_one_character_are_distinct_keys(a in bare_key(), at: prop::sample::Index, c in "[a-zA-Z0-9]") {
        let at = at.index(a.len());
        let mut b = a.clone();
        b.replace_range(at..=at, &c);
        prop_assume!(a != b && !UNSET.contains(&b.as_str()));
        prop_assert_ne!(parse(&a), parse(&b));
        prop_assert_ne!(parse(&a), parse(quote(&b)));
    }
}
