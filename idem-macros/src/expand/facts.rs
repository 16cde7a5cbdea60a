//! The static that says what the annotation says, and its registration.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::GenericParam;

use super::{here, private};
use crate::{
    args::{ClientErrors, ForeignScope, InDoubt, InFlight, KeyFormat, Order, Payload},
    item::pattern,
    operation::{Facts, Kind, Operation},
};

/// An expression of type `&'static Operation`. The static is inside of it, where the body cannot name it.
pub(super) fn operation(operation: &Operation) -> TokenStream {
    let p = private(operation);
    let op = &operation.facts.op;
    let kind = match operation.kind {
        Kind::Handler { .. } => quote_spanned!(here()=> Handler),
        Kind::Function { .. } => quote_spanned!(here()=> Function),
    };
    let name = operation.func.name().to_string();
    let (texts, mut settings) = (texts(operation), settings(&p, &operation.facts));
    settings.extend(transaction(&p, operation));
    settings.extend(operation.func.steps().next().map(|_| quote_spanned!(here()=> steps())));
    quote_spanned! {here()=>
        {
            static OPERATION: #p::Operation = #p::Operation::new(
                #op,
                #p::Kind::#kind,
                #p::Place {
                    file: ::core::file!(),
                    line: ::core::line!(),
                    column: ::core::column!(),
                    function: #name,
                },
            ) #(.#texts)* #(.#settings)*;
            #p::inventory::submit! { #p::Registered(&OPERATION) }
            &OPERATION
        }
    }
}

/// Whose transaction the body runs in, so that the runtime can tell at its start that its store has none of that kind.
/// Text, because a static cannot name a type parameter.
fn transaction(p: &TokenStream, operation: &Operation) -> Option<TokenStream> {
    let param = operation.func.transactions().next()?;
    let database = pattern::first_argument(&param.ty).and_then(pattern::last_word).filter(|word| {
        let parameters = &operation.func.sig.generics.params;
        !parameters.iter().any(|known| matches!(known, GenericParam::Type(known) if known.ident == **word))
    });
    let database = match database.map(ToString::to_string).as_deref() {
        Some(name @ ("Sqlite" | "Postgres")) => {
            let name = name.to_lowercase();
            quote_spanned!(here()=> Named(#name))
        }
        _ => quote_spanned!(here()=> Any),
    };
    Some(quote_spanned!(here()=> transaction(#p::Database::#database)))
}

/// Scope and key as they are written, for the list of operations. Text only: both are evaluated elsewhere.
fn texts(operation: &Operation) -> Vec<TokenStream> {
    let parts = &operation.scope;
    let scope = (!parts.is_empty()).then(|| quote_spanned!(here()=> scope(::core::stringify!(#(#parts),*))));
    let key = match &operation.kind {
        Kind::Handler { key, .. } => key.as_ref(),
        Kind::Function { key, .. } => Some(key),
    };
    let key = key.map(|key| quote_spanned!(here()=> key(::core::stringify!(#key))));
    scope.into_iter().chain(key).collect()
}

/// A builder call for everything that differs from the default.
fn settings(p: &TokenStream, facts: &Facts) -> Vec<TokenStream> {
    let ttl = facts.ttl.map(|seconds| quote_spanned!(here()=> ttl(#seconds)));
    let refuse_late = facts.refuse_late.map(|seconds| quote_spanned!(here()=> refuse_late(#seconds)));
    let header = facts.header.as_ref().map(|name| quote_spanned!(here()=> header(#name)));
    let optional = facts.optional.then(|| quote_spanned!(here()=> optional()));
    let key_format = facts.key_format.map(|KeyFormat::Uuid| quote_spanned!(here()=> key_format(#p::KeyFormat::Uuid)));
    let payload = facts.payload.as_ref().map(|payload| {
        let rule = match payload {
            Payload::Fields(pointers) => quote_spanned!(here()=> Fields(&[#(#pointers),*])),
            Payload::Raw => quote_spanned!(here()=> Raw),
            Payload::None => quote_spanned!(here()=> None),
        };
        quote_spanned!(here()=> payload(#p::PayloadRule::#rule))
    });
    let in_flight = facts.in_flight.as_ref().map(|in_flight| {
        let rule = match in_flight {
            InFlight::Reject => quote_spanned!(here()=> Reject),
            InFlight::Wait(wait) => duration("Wait", wait.seconds),
            InFlight::Accepted(_) => quote_spanned!(here()=> Accepted),
        };
        quote_spanned!(here()=> in_flight(#p::InFlight::#rule))
    });
    let client_errors = facts.client_errors.as_ref().map(|client_errors| {
        let rule = match client_errors {
            ClientErrors::Release => quote_spanned!(here()=> Release),
            ClientErrors::Keep(keep) => duration("Keep", keep.seconds),
            ClientErrors::Store => quote_spanned!(here()=> Store),
        };
        quote_spanned!(here()=> client_errors(#p::ClientErrors::#rule))
    });
    let in_doubt = facts.in_doubt.map(|in_doubt| {
        let rule = match in_doubt {
            InDoubt::Hold => quote_spanned!(here()=> Hold),
            InDoubt::RerunDeduped => quote_spanned!(here()=> RerunDeduped),
        };
        quote_spanned!(here()=> in_doubt(#p::InDoubt::#rule))
    });
    let input = facts.input.as_ref().map(|name| quote_spanned!(here()=> input(#name)));
    let timeout = facts.timeout.map(|seconds| quote_spanned!(here()=> timeout(#seconds)));
    let foreign_scope = facts
        .foreign_scope
        .map(|ForeignScope::Reject| quote_spanned!(here()=> foreign_scope(#p::ForeignScope::Reject)));
    let webhook = facts.webhook.then(|| quote_spanned!(here()=> webhook()));
    let order =
        facts.order.as_ref().map(|Order { object, sequence }| quote_spanned!(here()=> order(#object, #sequence)));
    let of_runs = [in_flight, client_errors, in_doubt, input, timeout];
    let all = [ttl, refuse_late, header, optional, key_format, payload].into_iter().chain(of_runs).chain([
        foreign_scope,
        webhook,
        order,
    ]);
    all.flatten().collect()
}

fn duration(variant: &str, seconds: u64) -> TokenStream {
    let variant = proc_macro2::Ident::new(variant, here());
    quote_spanned!(here()=> #variant(::core::time::Duration::from_secs(#seconds)))
}
