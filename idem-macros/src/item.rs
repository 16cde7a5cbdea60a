//! The annotated function: its signature parsed, its body opaque, so that an unfinished body still expands.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::{
    Attribute, FnArg, LitStr, Meta, Pat, Receiver, Signature, Token, Type, Visibility,
    parse::{ParseStream, Parser},
    token,
};

use crate::ctxt::Ctxt;

pub(crate) mod pattern;

/// The attribute that marks a parameter as supplied by the runtime.
const HELPER: &str = "idem";

/// The last word of the type of a transaction.
const TRANSACTION: &str = "Tx";

/// The type of recorded steps.
const STEPS: &str = "Steps";

pub(crate) struct HandlerFn {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    /// Without its inputs.
    pub(crate) sig: Signature,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Group,
}

pub(crate) struct Param {
    /// Without `#[idem]` and doc comments.
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) pat: Pat,
    pub(crate) ty: Type,
    pub(crate) source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The request, or the caller of a plain function.
    Caller,
    /// `#[idem]`: the runtime.
    Runtime,
}

impl HandlerFn {
    /// Reports in `cx` what is not an annotatable function at all; finer rules are in `check`.
    pub(crate) fn parse(cx: &Ctxt, item: TokenStream) -> Option<Self> {
        match (|input: ParseStream<'_>| parse(cx, input)).parse2(item) {
            Ok(func) => Some(func),
            Err(error) => {
                cx.syn_error(error);
                None
            }
        }
    }

    pub(crate) fn name(&self) -> &Ident {
        &self.sig.ident
    }

    /// The parameters that are the transaction in which the body runs. Known by its name, since a macro sees no types.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Param> {
        self.supplied(TRANSACTION)
    }

    /// The parameters that are the recorded steps of the body. Known by its name, too.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Param> {
        self.supplied(STEPS)
    }

    fn supplied(&self, name: &'static str) -> impl Iterator<Item = &Param> {
        let supplied = self.params.iter().filter(|param| param.source == Source::Runtime);
        supplied.filter(move |param| pattern::last_word(&param.ty).is_some_and(|word| word == name))
    }

    /// The parameters that the caller fills in.
    pub(crate) fn caller_params(&self) -> impl DoubleEndedIterator<Item = &Param> {
        self.params.iter().filter(|param| param.source == Source::Caller)
    }
}

fn parse(cx: &Ctxt, input: ParseStream<'_>) -> syn::Result<HandlerFn> {
    let attrs = input.call(Attribute::parse_outer)?;
    let vis = input.parse()?;
    require_fn(input)?;
    let mut sig: Signature = input.parse()?;
    if !input.peek(token::Brace) {
        let message = format_args!("`#[idempotent]` function `{}` must have a body", sig.ident);
        return Err(syn::Error::new_spanned(&sig.ident, message));
    }
    let body = input.parse()?;
    let mut receiver = None;
    let mut params = Vec::new();
    for input in std::mem::take(&mut sig.inputs) {
        match input {
            FnArg::Receiver(this) => {
                take_helper(cx, this.attrs.clone(), Place::Receiver);
                receiver = Some(this);
            }
            FnArg::Typed(param) => {
                let (attrs, source) = take_helper(cx, param.attrs, Place::Param);
                params.push(Param { attrs, pat: *param.pat, ty: *param.ty, source });
            }
        }
    }
    Ok(HandlerFn { attrs, vis, sig, receiver, params, body })
}

/// Says what the attribute is for, at the word that shows that this is something else.
fn require_fn(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    while ahead.peek(Token![const])
        || ahead.peek(Token![async])
        || ahead.peek(Token![unsafe])
        || ahead.peek(Token![extern])
        || ahead.peek(LitStr)
    {
        ahead.parse::<TokenTree>()?;
    }
    if ahead.peek(Token![fn]) {
        return Ok(());
    }
    let word: TokenTree = input.fork().parse()?;
    Err(syn::Error::new(word.span(), format_args!("`#[idempotent]` goes on an `async fn`, found `{word}`")))
}

#[derive(Clone, Copy)]
enum Place {
    Receiver,
    Param,
}

/// Takes `#[idem]` off a parameter, and doc comments, which rustc refuses there.
fn take_helper(cx: &Ctxt, attrs: Vec<Attribute>, place: Place) -> (Vec<Attribute>, Source) {
    let mut source = Source::Caller;
    let mut kept = Vec::new();
    for attr in attrs {
        if attr.path().is_ident("doc") {
            continue;
        }
        if !attr.path().is_ident(HELPER) {
            kept.push(attr);
            continue;
        }
        if let Place::Receiver = place {
            cx.error(&attr, format_args!("`#[{HELPER}]` cannot be on `self`"));
        } else if source == Source::Runtime {
            cx.error(&attr, format_args!("duplicate `#[{HELPER}]`"));
        } else if !matches!(attr.meta, Meta::Path(_)) {
            let message = format_args!("`#[{HELPER}]` takes no arguments, the type says what the runtime supplies");
            cx.error(&attr.meta, message);
        }
        source = Source::Runtime;
    }
    (kept, source)
}

/// The user's item as it came, except that our attribute is taken off the parameters: rustc does not know it. Works on
/// tokens, since the item may be anything.
pub(crate) fn without_helper_attributes(item: TokenStream) -> TokenStream {
    let parameters = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            let mut stripped = Group::new(Delimiter::Parenthesis, without_helper(group.stream()));
            stripped.set_span(group.span());
            TokenTree::Group(stripped)
        }
        other => other,
    };
    item.into_iter().map(parameters).collect()
}

fn without_helper(parameters: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in parameters {
        match (kept.last(), &token) {
            (Some(TokenTree::Punct(hash)), TokenTree::Group(group)) if hash.as_char() == '#' && is_helper(group) => {
                kept.pop();
            }
            _ => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_helper(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && matches!(first, Some(TokenTree::Ident(word)) if word == HELPER)
}
