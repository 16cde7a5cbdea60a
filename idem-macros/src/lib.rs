//! The attribute of `idem-runtime`.
