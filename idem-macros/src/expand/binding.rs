//! How parameters travel: from the outer signature to the expressions of the attribute, and into the body.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Attribute;

use super::here;
use crate::{
    item::{HandlerFn, Param, Source, pattern},
    mention::Mentions,
};

/// A parameter and the name that holds its value until the body takes it.
pub(super) struct Binding<'a> {
    pub(super) param: &'a Param,
    /// In the signature: an `async fn` drops its parameters in the reverse order.
    pub(super) position: usize,
    pub(super) name: Ident,
}

impl<'a> Binding<'a> {
    /// The parameters of the outer function, and those that the runtime supplies.
    pub(super) fn all(func: &'a HandlerFn) -> (Vec<Self>, Vec<Self>) {
        let all = func.params.iter().enumerate().map(|(position, param)| Self {
            param,
            position,
            name: kept_name(param).cloned().unwrap_or_else(|| ours(&position.to_string())),
        });
        let (outer, mut supplied): (Vec<_>, Vec<_>) = all.partition(|binding| binding.param.source == Source::Caller);
        for (n, binding) in supplied.iter_mut().enumerate() {
            binding.name = ours(&format!("s{n}"));
        }
        (outer, supplied)
    }

    /// The same parameter under a name that says what it holds, unless its own has been kept.
    pub(super) fn called(mut self, name: &str) -> Self {
        if kept_name(self.param).is_none() {
            self.name = ours(name);
        }
        self
    }

    /// Takes the whole value into the async block, then apart. As in an `async fn`, the body owns all of its parameters
    /// until it ends, even a part that no pattern binds: that can be a permit or a lock.
    pub(super) fn take(&self) -> TokenStream {
        let (name, pat, attrs) = (&self.name, &self.param.pat, self.body_attrs());
        if let Some(plain) = pattern::plain_name(pat) {
            let lint = if plain == name {
                Some(quote_spanned!(here()=> #[allow(clippy::shadow_same)]))
            } else if is_unused(plain) {
                Some(quote_spanned!(here()=> #[allow(clippy::no_effect_underscore_binding)]))
            } else {
                None
            };
            return quote_spanned!(here()=> #(#attrs)* #lint let #pat = #name;);
        }
        let cfgs = self.cfgs();
        let mutable = pattern::borrows_mutably(pat).then(|| quote_spanned!(here()=> mut));
        quote_spanned!(here()=> #(#cfgs)* let #mutable #name = #name; #(#attrs)* let #pat = #name;)
    }

    /// Names that only the attribute mentions are used all the same.
    pub(super) fn mark_used(&self, is_mentioned: impl Fn(&Ident) -> bool) -> TokenStream {
        let cfgs: Vec<_> = self.cfgs().collect();
        let names = pattern::names(&self.param.pat);
        let mentioned = names.iter().filter(|name| is_mentioned(name));
        mentioned.map(|name| quote_spanned!(here()=> #(#cfgs)* let _ = &#name;)).collect()
    }

    /// The attributes that stay on the outer parameter.
    pub(super) fn outer_attrs(&self) -> impl Iterator<Item = &Attribute> {
        self.param.attrs.iter().filter(|attr| !is(attr, &["expect"]))
    }

    /// The attributes of the `let` that the user's names come from. An `#[expect]` is met there, and nowhere else.
    fn body_attrs(&self) -> impl Iterator<Item = &Attribute> {
        const OF_LET: &[&str] = &["cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid"];
        self.param.attrs.iter().filter(|attr| is(attr, OF_LET))
    }

    pub(super) fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.param.attrs.iter().filter(|attr| is(attr, &["cfg"]))
    }

    /// Binds what `mentions` may mean, for an expression of the attribute. A name that the signature has kept means the
    /// parameter itself; what a pattern binds is borrowed.
    pub(super) fn borrowed_for(&self, mentions: &Mentions) -> TokenStream {
        let (pat, names) = pattern::by_reference(&self.param.pat);
        if kept_name(self.param).is_some() || !names.iter().any(|name| mentions.contains(name)) {
            return TokenStream::new();
        }
        let (name, cfgs) = (&self.name, self.cfgs());
        // A pattern can bind more than the expression uses.
        let lints = quote_spanned!(here()=> #[allow(unused_variables, clippy::pattern_type_mismatch)]);
        quote_spanned!(here()=> #(#cfgs)* #lints let #pat = &#name;)
    }
}

/// A plain name stays in the signature, for rustdoc. One with an underscore does not: to move it into the body would
/// count as a use of something declared as unused.
fn kept_name(param: &Param) -> Option<&Ident> {
    pattern::plain_name(&param.pat).filter(|name| !is_unused(name))
}

fn is_unused(name: &Ident) -> bool {
    name.to_string().starts_with('_')
}

fn is(attr: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attr.path().is_ident(name))
}

fn ours(name: &str) -> Ident {
    format_ident!("__idem_{name}", span = here())
}

/// What `expr` may mean.
pub(super) fn mentions(expr: &impl ToTokens) -> Mentions {
    Mentions::of(expr.to_token_stream())
}
