//! Environment variables over the file: `BULLA_SERVE__TABLE__KEY=value`.

use bulla_kms::{Code, KmsError, Result};
use toml::{Table, Value};

const PREFIX: &str = "BULLA_SERVE__";

/// Puts the variables with our prefix into the table. A value is TOML where it parses as such, and
/// text otherwise.
pub(super) fn apply(table: &mut Table, variables: &mut dyn Iterator<Item = (String, String)>) -> Result<()> {
    for (name, value) in variables {
        let Some(path) = name.strip_prefix(PREFIX) else { continue };
        let path = path.to_ascii_lowercase();
        let keys: Vec<_> = path.split("__").collect();
        set(table, &keys, parsed(&value)).ok_or_else(|| {
            KmsError::new(Code::InvalidArgument, format!("the variable {name} names no setting"))
        })?;
    }
    Ok(())
}

fn set(table: &mut Table, keys: &[&str], value: Value) -> Option<()> {
    match keys {
        [] => None,
        [key] => {
            table.insert((*key).to_owned(), value);
            Some(())
        }
        [key, rest @ ..] => {
            let inner = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            set(inner.as_table_mut()?, rest, value)
        }
    }
}

fn parsed(value: &str) -> Value {
    let line = format!("value = {value}");
    let table: Option<Table> = line.parse().ok();
    table.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(value.to_owned()))
}
