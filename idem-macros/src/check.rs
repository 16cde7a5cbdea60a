//! The rules between the arguments, and between them and the function. What one value may be is in `args`.

use crate::{args::Args, ctxt::Ctxt, item::HandlerFn};

mod arguments;
mod mentions;
mod signature;

pub(crate) fn check(cx: &Ctxt, args: &Args, func: &HandlerFn) {
    signature::check(cx, args, func);
    arguments::check(cx, args, func);
    mentions::check(cx, args, func);
}
