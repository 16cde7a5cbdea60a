//! Payloads of one scope only: clause 05.

use super::*;
use crate::key::Scope;

const RULES: [PayloadRule; 4] = [PayloadRule::Whole, PayloadRule::Raw, PayloadRule::Fields(&["/a"]), PayloadRule::None];

fn by(rule: PayloadRule, scope: &str) -> Fingerprint {
    fingerprint(rule, &material(JSON, b"{\"a\":1}")).within(&Scope::of(scope))
}

#[test]
fn clause_05_another_scope_never_matches() {
    for ours in RULES {
        for theirs in RULES {
            assert!(!by(ours, "acme").matches(&by(theirs, "globex")), "{ours:?} {theirs:?}");
        }
        let unknown = Fingerprint::unknown();
        assert!(!by(ours, "acme").matches(&unknown) && !unknown.matches(&by(ours, "acme")));
        assert!(!by(ours, "acme").matches(&unknown.within(&Scope::of("globex"))));
        assert!(!by(ours, "acme").matches(&fingerprint(ours, &material(JSON, b"{\"a\":1}"))), "one that has no scope");
    }
}

#[test]
fn clause_30_within_a_scope_only_what_can_be_compared_is() {
    for ours in RULES {
        for theirs in RULES {
            assert!(by(ours, "acme").matches(&by(theirs, "acme")), "{ours:?} {theirs:?}");
        }
        assert!(by(ours, "acme").matches(&Fingerprint::unknown().within(&Scope::of("acme"))));
    }
    let other = fingerprint(PayloadRule::Whole, &material(JSON, b"{\"a\":2}")).within(&Scope::of("acme"));
    assert!(!by(PayloadRule::Whole, "acme").matches(&other));
}

#[test]
fn the_halves_change_only_with_the_algorithm() {
    let found = by(PayloadRule::None, "acme");
    assert_eq!(found.algorithm(), 0x4000 | 7);
    assert_eq!(hex(&found.digest()[16..]), "e52d9c508c502347344d8c07ad91cbd6", "of the payload, cut");
    assert_eq!(hex(&found.digest()[..16]), "611983f3442023dd35a95d72af857c0c", "of the scope");
}
