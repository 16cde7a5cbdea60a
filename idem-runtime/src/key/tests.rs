use super::*;

fn id(scope: &Scope, op: &str, key: &str) -> RecordId {
    RecordId::new("shop", scope, op, &Key::new(key).unwrap())
}

#[test]
fn case_35_identity_is_namespace_scope_op_and_key() {
    let (acme, globex) = (Scope::of("acme"), Scope::of("globex"));
    let base = id(&acme, "charge", "k");
    assert_eq!(base, id(&Scope::of(&String::from("acme")), "charge", "k"));
    assert_ne!(base, id(&globex, "charge", "k"));
    assert_ne!(base, id(&acme, "refund", "k"));
    assert_ne!(base, id(&acme, "charge", "K"));
    assert_ne!(base, RecordId::new("other", &acme, "charge", &Key::new("k").unwrap()));
}

#[test]
fn scopes_cannot_run_into_each_other() {
    assert_ne!(Scope::of(&("a", "bc")), Scope::of(&("ab", "c")));
    assert_ne!(Scope::of(&("a", "")), Scope::of("a"));
    assert_ne!(Scope::of(""), Scope::from(ScopeWriter::default()));
    assert_ne!(Scope::of("a/b"), Scope::of(&("a", "b")));
    assert_eq!(Scope::of(&("a", ("b", "c"))), Scope::of(&(("a", "b"), "c")), "a tuple is its parts");
}

#[test]
fn scope_text_is_for_operators() {
    assert_eq!(Scope::of(&("a/b", 7u8, "50%")).as_str(), "a%2Fb/7/50%25");
    assert_eq!(Scope::of(&("", "x")).as_str(), "/x");
}

#[test]
fn neither_key_nor_scope_reaches_a_debug_output() {
    let (key, scope) = (Key::new("super-secret").unwrap(), Scope::of("acme"));
    let text = format!("{key:?} {scope:?}");
    assert!(!text.contains("secret") && !text.contains("acme"), "{text}");
    assert_eq!(text.len(), "Key(#01234567) Scope(#01234567)".len());
}

#[test]
fn keys_have_a_length() {
    assert!(Key::new("").is_err());
    assert!(Key::new(vec![0; 1024]).is_ok());
    assert!(Key::new(vec![b'a'; 1025]).is_err());
}

#[test]
fn record_ids_are_read_back() {
    let id = id(&Scope::of("acme"), "charge", "k");
    assert_eq!(id.to_string().parse(), Ok(id));
    for bad in ["", "+0000000000000000000000000000001", "xyz", &format!("{id}0")] {
        assert_eq!(bad.parse::<RecordId>(), Err(InvalidRecordId), "{bad}");
    }
}

#[test]
fn case_93_provider_keys_differ_by_step_epoch_and_tenant() {
    let (a, b) = (id(&Scope::of("a"), "op", "k"), id(&Scope::of("b"), "op", "k"));
    let keys = [a.provider_key(0, ""), a.provider_key(0, "pay"), a.provider_key(1, ""), b.provider_key(0, "")];
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
    assert!(keys.iter().all(|k| k.len() == 64));
    assert_eq!(a.provider_key(0, ""), a.provider_key(0, ""));
}

/// Also where a scope was made to look like the mark of those.
#[test]
fn clause_05_a_record_of_all_scopes_is_none_of_one_scope() {
    let key = Key::new("k").unwrap();
    let of_all = RecordId::of_all_scopes("shop", "charge", &key);
    for scope in [Scope::of("all"), Scope::of(""), Scope::from(ScopeWriter::default()), Scope::of(&("a", "ll"))] {
        assert_ne!(of_all, RecordId::new("shop", &scope, "charge", &key));
    }
    assert_ne!(of_all, RecordId::of_all_scopes("other", "charge", &key));
    assert_ne!(of_all, RecordId::of_all_scopes("shop", "refund", &key));
    assert_ne!(of_all, RecordId::of_all_scopes("shop", "charge", &Key::new("K").unwrap()));
    assert_eq!(of_all.to_string(), "b8190b6515727157023629d5c3691a54", "stored in somebody's database");
}

#[test]
fn record_ids_can_be_deserialised() {
    let id = id(&Scope::of("acme"), "charge", "k");
    let text = format!("\"{id}\"");
    assert_eq!(serde_json::from_str::<RecordId>(&text).unwrap(), id);
    assert_eq!(serde_json::from_reader::<_, RecordId>(text.as_bytes()).unwrap(), id);
    let error = serde_json::from_str::<RecordId>("\"secret\"").unwrap_err();
    assert!(error.to_string().starts_with("a record id is 32 hex digits"), "{error}");
}
