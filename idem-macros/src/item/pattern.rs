//! Questions about patterns and types of a signature.

use proc_macro2::Ident;
use syn::{
    GenericArgument, Pat, PatIdent, Path, PathArguments, Type, TypeImplTrait, TypeParamBound, TypeReference,
    parse_quote,
    visit_mut::{self, VisitMut},
};

/// The names that a pattern binds.
pub(crate) fn names(pat: &Pat) -> Vec<Ident> {
    by_reference(pat).1
}

/// The name, if the pattern is nothing but one (perhaps `mut`).
pub(crate) fn plain_name(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(PatIdent { by_ref: None, subpat: None, ident, .. }) => Some(ident),
        _ => None,
    }
}

/// The same pattern for a borrowed value, and the names that it binds. `mut` and `ref` go, at every depth: edition 2024
/// refuses them there, and every name is a reference without them.
pub(crate) fn by_reference(pat: &Pat) -> (Pat, Vec<Ident>) {
    struct Strip(Vec<Ident>);
    impl VisitMut for Strip {
        fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
            pat.by_ref = None;
            pat.mutability = None;
            self.0.push(pat.ident.clone());
            visit_mut::visit_pat_ident_mut(self, pat);
        }
    }
    let (mut pat, mut strip) = (pat.clone(), Strip(Vec::new()));
    strip.visit_pat_mut(&mut pat);
    (pat, strip.0)
}

/// The type with `_` for every `impl Trait`, which is legal in a signature only, and the first of them.
pub(crate) fn erase_impl_trait(ty: &Type) -> (Type, Option<TypeImplTrait>) {
    struct Erase(Option<TypeImplTrait>);
    impl VisitMut for Erase {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::ImplTrait(opaque) = ty {
                let opaque = opaque.clone();
                *ty = parse_quote!(_);
                self.0.get_or_insert(opaque);
            } else {
                visit_mut::visit_type_mut(self, ty);
            }
        }
    }
    let (mut ty, mut erase) = (ty.clone(), Erase(None));
    erase.visit_type_mut(&mut ty);
    (ty, erase.0)
}

/// The last word of a type's path, without its arguments.
pub(crate) fn last_word(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(inner) => last_word(&inner.elem),
        Type::Paren(inner) => last_word(&inner.elem),
        _ => None,
    }
}

/// The `T` of a type that ends in `Result<T, ..>`, or another name with arguments.
pub(crate) fn first_argument(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The first reference in the type.
pub(crate) fn reference(ty: &Type) -> Option<TypeReference> {
    struct Find(Option<TypeReference>);
    impl VisitMut for Find {
        fn visit_type_reference_mut(&mut self, ty: &mut TypeReference) {
            self.0.get_or_insert_with(|| ty.clone());
        }
    }
    let mut find = Find(None);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

/// The traits that every `impl Trait` in the type names, without their own arguments.
pub(crate) fn traits_of_impl(ty: &Type) -> Vec<Path> {
    struct Find(Vec<Path>);
    impl VisitMut for Find {
        fn visit_type_impl_trait_mut(&mut self, ty: &mut TypeImplTrait) {
            visit_mut::visit_type_impl_trait_mut(self, ty);
            for bound in &ty.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    let mut path = bound.path.clone();
                    path.segments.iter_mut().for_each(|segment| segment.arguments = PathArguments::None);
                    self.0.push(path);
                }
            }
        }
    }
    let mut find = Find(Vec::new());
    find.visit_type_mut(&mut ty.clone());
    find.0
}

/// Whether taking a value apart with this pattern needs it to be mutable.
pub(crate) fn borrows_mutably(pat: &Pat) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
            self.0 |= pat.by_ref.is_some() && pat.mutability.is_some();
            visit_mut::visit_pat_ident_mut(self, pat);
        }
    }
    let mut find = Find(false);
    find.visit_pat_mut(&mut pat.clone());
    find.0
}
