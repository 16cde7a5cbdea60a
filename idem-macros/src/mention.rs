//! Which names an expression mentions, read off its tokens: no scopes, no types.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// The names that an expression may mean. Names it declares itself are among them; field and method names are not.
pub(crate) struct Mentions {
    names: HashSet<String>,
}

impl Mentions {
    pub(crate) fn of(tokens: TokenStream) -> Self {
        let mut found = Self { names: HashSet::new() };
        found.collect(tokens);
        found
    }

    pub(crate) fn contains(&self, name: &Ident) -> bool {
        self.names.contains(&name.unraw().to_string())
    }

    fn collect(&mut self, tokens: TokenStream) {
        let mut before = [None, None]; // the last two characters of punctuation, newest first
        for token in tokens {
            let mut now = None;
            match token {
                TokenTree::Group(group) => self.collect(group.stream()),
                TokenTree::Punct(punct) => now = Some(punct.as_char()),
                TokenTree::Ident(ident) => {
                    let is_field = matches!(before, [Some('.'), second] if second != Some('.')); // `a..b` is none
                    if !is_field {
                        self.names.insert(ident.unraw().to_string());
                    }
                }
                TokenTree::Literal(literal) => self.names.extend(captured(&literal.to_string())),
            }
            before = [now, before[0]];
        }
    }
}

/// The names that a format string captures: `tenant` and `width` in `"{tenant:>width$}"`.
fn captured(literal: &str) -> Vec<String> {
    if !literal.ends_with(['"', '#']) {
        return Vec::new();
    }
    let text = literal.replace("{{", "");
    let mut names = Vec::new();
    for placeholder in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside) {
        let (name, spec) = placeholder.split_once(':').unwrap_or((placeholder, ""));
        let widths = spec.split_inclusive('$').filter_map(|part| part.strip_suffix('$'));
        let widths = widths.filter_map(|part| part.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
        names.extend([name].into_iter().chain(widths).map(|name| name.trim().to_owned()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(expr: &str, name: &str) -> bool {
        let name: Ident = syn::parse_str(name).unwrap();
        Mentions::of(expr.parse().unwrap()).contains(&name)
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        for expr in ["id", "id.0", "f(&[id])", "x[..id]", "0..id", r#"format!("{id}")"#, r##"format!(r#"{x}{id:?}"#)"##]
        {
            assert!(mentions(expr, "id"), "{expr}");
        }
        assert!(mentions(r#"format!("{x:>id$}")"#, "id"));
        assert!(mentions("r#type", "r#type") && mentions(r#"format!("{type}")"#, "r#type"));
    }

    #[test]
    fn fields_methods_and_plain_text_are_no_names() {
        for expr in ["x.id", "x.id()", "x.y.id", r#"f("id")"#, r#"format!("{{id}}")"#, r#"format!("{x}id")"#, "'a'"] {
            assert!(!mentions(expr, "id"), "{expr}");
        }
    }
}
