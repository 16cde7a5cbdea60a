//! What can be a key or part of a scope: text, bytes, integers, `Uuid`, references, tuples.

use std::{borrow::Cow, rc::Rc, sync::Arc};

use super::{KeyPart, ScopePart, ScopeWriter};

macro_rules! text_parts {
    ($($ty:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl ScopePart for $ty {
            fn write_scope(&self, out: &mut ScopeWriter) { out.part(self) }
        }
        #[diagnostic::do_not_recommend]
        impl KeyPart for $ty {
            fn key_bytes(&self) -> Cow<'_, [u8]> { Cow::Borrowed(self.as_bytes()) }
        }
    )*};
}
text_parts!(str, String, Cow<'_, str>);

macro_rules! display_parts {
    ($($ty:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl ScopePart for $ty {
            fn write_scope(&self, out: &mut ScopeWriter) { out.part(&self.to_string()) }
        }
        #[diagnostic::do_not_recommend]
        impl KeyPart for $ty {
            fn key_bytes(&self) -> Cow<'_, [u8]> { Cow::Owned(self.to_string().into_bytes()) }
        }
    )*};
}
display_parts!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, uuid::Uuid);

macro_rules! pointer_parts {
    ($($ty:ty),*) => {$(
        impl<T: ScopePart + ?Sized> ScopePart for $ty {
            fn write_scope(&self, out: &mut ScopeWriter) { (**self).write_scope(out) }
        }
        impl<T: KeyPart + ?Sized> KeyPart for $ty {
            fn key_bytes(&self) -> Cow<'_, [u8]> { (**self).key_bytes() }
        }
    )*};
}
pointer_parts!(&T, &mut T, Box<T>, Arc<T>, Rc<T>);

macro_rules! byte_keys {
    ($($ty:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl KeyPart for $ty {
            fn key_bytes(&self) -> Cow<'_, [u8]> { Cow::Borrowed(self) }
        }
    )*};
}
byte_keys!([u8], Vec<u8>, bytes::Bytes);

#[diagnostic::do_not_recommend]
impl<const N: usize> KeyPart for [u8; N] {
    fn key_bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }
}

macro_rules! tuple_scopes {
    ($($name:ident)+) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: ScopePart),+> ScopePart for ($($name,)+) {
            #[allow(non_snake_case, reason = "one letter per part")]
            fn write_scope(&self, out: &mut ScopeWriter) {
                let ($($name,)+) = self;
                $($name.write_scope(out);)+
            }
        }
    };
}
tuple_scopes!(A);
tuple_scopes!(A B);
tuple_scopes!(A B C);
tuple_scopes!(A B C D);
tuple_scopes!(A B C D E);
tuple_scopes!(A B C D E F);
