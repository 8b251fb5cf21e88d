//! What C sees: the functions that programs call, and the memory that they give. The only `unsafe`
//! code of the module is here.

mod raw;
pub(crate) mod table;
