//! Operations of several steps: scenarios 80 … 83 and 85, clauses 25, 26 and 33, cases 93, 94 and 96.

mod broken;
mod changed;
mod costs;
mod once;
mod resumed;
mod rows;
mod settled;
mod workshop;
