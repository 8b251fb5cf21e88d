//! What C sees: the functions that programs call, and the memory that they give; and what the
//! system says of the program. The only `unsafe` code of the module is here.

mod raw;
pub(crate) mod rights;
pub(crate) mod table;
