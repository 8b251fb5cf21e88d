//! The decisions: each file has a head, and the index `docs/decisions/README.md` agrees with the
//! heads.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::Context;

/// The folder of the decisions.
const FOLDER: &str = "docs/decisions";
const INDEX: &str = "README.md";

/// The first lines of the index's table.
const TABLE: &str = "| number | title | date | status | supersedes |\n|---|---|---|---|---|\n";

/// The title and the head of one decision.
#[derive(Debug, PartialEq, Eq)]
struct Decision {
    file: String,
    title: String,
    date: String,
    status: String,
    supersedes: String,
}

/// Checks the head of every decision, and that the index lists all of them with their heads.
pub(crate) fn check(context: &Context) -> Result<()> {
    let folder = context.root.join(FOLDER);
    let decisions = read(&folder)?;
    ensure!(!decisions.is_empty(), "{FOLDER} has no decisions");
    check_relations(&decisions)?;
    let index = fs::read_to_string(folder.join(INDEX)).with_context(|| format!("cannot read {INDEX}"))?;
    compare(&index, &decisions)?;
    println!("{} decisions", decisions.len());
    Ok(())
}

/// All decisions, by number.
fn read(folder: &Path) -> Result<BTreeMap<String, Decision>> {
    let mut decisions = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        if file == INDEX || !file.ends_with(".md") {
            continue;
        }
        let text = fs::read_to_string(folder.join(&file))?;
        let (number, decision) = parse(&file, &text).with_context(|| file.clone())?;
        if let Some(other) = decisions.insert(number, decision) {
            bail!("{file} and {} have the same number", other.file);
        }
    }
    Ok(decisions)
}

/// The number of a decision and its head.
fn parse(file: &str, text: &str) -> Result<(String, Decision)> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let (number, title) = first
        .strip_prefix("# ")
        .and_then(|title| title.split_once(": "))
        .context("the first line is not `# NNNN: Title`")?;
    ensure!(is_number(number), "the number in the title does not have four digits");
    ensure!(file.starts_with(&format!("{number}-")), "the title's number is not that of the file's name");
    ensure!(lines.next() == Some(""), "the line after the title is not empty");
    let mut field = |name: &str| {
        let line = lines.next().and_then(|line| line.strip_prefix(&format!("- {name}: ")));
        line.map(str::to_owned).with_context(|| format!("the head has no line `- {name}: ...` in its place"))
    };
    let (date, status, supersedes) = (field("Date")?, field("Status")?, field("Supersedes")?);
    ensure!(is_date(&date), "the date {date} is not YYYY-MM-DD");
    ensure!(lines.next() == Some(""), "the line after the head is not empty");
    let decision = Decision { file: file.to_owned(), title: title.to_owned(), date, status, supersedes };
    Ok((number.to_owned(), decision))
}

fn is_number(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if [year.len(), month.len(), day.len()] == [4, 2, 2])
        && parts.concat().bytes().all(|byte| byte.is_ascii_digit())
}

/// How much of a decision another one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Whole,
    Part,
}

/// Checks that each status is a known one, and that `Supersedes` and `superseded by` name each
/// other.
fn check_relations(decisions: &BTreeMap<String, Decision>) -> Result<()> {
    let (mut newer_say, mut older_say) = (BTreeSet::new(), BTreeSet::new());
    for (number, decision) in decisions {
        let about = || decision.file.clone();
        let older = superseded(&decision.supersedes).with_context(about)?;
        newer_say.extend(older.into_iter().map(|(older, extent)| (older, number.clone(), extent)));
        let newer = superseded_by(&decision.status).with_context(about)?;
        older_say.extend(newer.into_iter().map(|(newer, extent)| (number.clone(), newer, extent)));
    }
    if let Some((older, newer, extent)) = newer_say.symmetric_difference(&older_say).next() {
        bail!("only one of {older} and {newer} says that the newer one supersedes the older ({extent:?})");
    }
    Ok(())
}

/// The decisions that a line `Supersedes` names: `none`, or `0001, 0002 (in part)`.
fn superseded(text: &str) -> Result<Vec<(String, Extent)>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(", ")
        .map(|item| {
            let (number, extent) = match item.strip_suffix(" (in part)") {
                Some(number) => (number, Extent::Part),
                None => (item, Extent::Whole),
            };
            ensure!(is_number(number), "`Supersedes: {text}` is neither `none` nor a list of numbers");
            Ok((number.to_owned(), extent))
        })
        .collect()
}

/// The decisions that a status names.
fn superseded_by(status: &str) -> Result<Vec<(String, Extent)>> {
    let (numbers, extent) = match status.strip_prefix("superseded ") {
        None if ["accepted", "tried and lost"].contains(&status) => return Ok(Vec::new()),
        None => bail!("the status `{status}` is unknown"),
        Some(rest) => match (rest.strip_prefix("by "), rest.strip_prefix("in part by ")) {
            (Some(numbers), _) => (numbers, Extent::Whole),
            (_, Some(numbers)) => (numbers, Extent::Part),
            _ => bail!("the status `{status}` is unknown"),
        },
    };
    numbers
        .split(", ")
        .map(|number| {
            ensure!(is_number(number), "the status `{status}` does not end in a list of numbers");
            Ok((number.to_owned(), extent))
        })
        .collect()
}

/// The table of the index.
fn table(decisions: &BTreeMap<String, Decision>) -> String {
    let mut table = TABLE.to_owned();
    for (number, Decision { file, title, date, status, supersedes }) in decisions {
        let _ = writeln!(table, "| [{number}]({file}) | {title} | {date} | {status} | {supersedes} |");
    }
    table
}

fn compare(index: &str, decisions: &BTreeMap<String, Decision>) -> Result<()> {
    let wanted = table(decisions);
    let wanted: Vec<_> = wanted.lines().collect();
    let found: Vec<_> = index.lines().filter(|line| line.starts_with('|')).collect();
    let lacking = wanted.iter().filter(|line| !found.contains(line)).map(|line| format!("it lacks: {line}"));
    let more = found.iter().filter(|line| !wanted.contains(line));
    let wrong: Vec<_> = lacking.chain(more.map(|line| format!("no head says: {line}"))).collect();
    ensure!(wrong.is_empty(), "{FOLDER}/{INDEX} differs from the decisions\n{}", wrong.join("\n"));
    ensure!(found == wanted, "the index is not in the order of the numbers");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(number: &str, status: &str, supersedes: &str) -> (String, Decision) {
        let file = format!("{number}-a.md");
        let text = format!(
            "# {number}: A title\n\n- Date: 2026-01-31\n- Status: {status}\n- Supersedes: {supersedes}\n\nText.\n"
        );
        parse(&file, &text).unwrap()
    }

    #[test]
    fn heads_are_parsed() {
        let (number, decision) = decision("0007", "accepted", "none");
        assert_eq!(number, "0007");
        assert_eq!((decision.title.as_str(), decision.date.as_str()), ("A title", "2026-01-31"));
        for text in [
            "# A title\n\n- Date: 2026-01-31\n- Status: accepted\n- Supersedes: none\n\n",
            "# 0008: A title\n\n- Date: 2026-01-31\n- Status: accepted\n- Supersedes: none\n\n",
            "# 0007: A title\n\n- Date: today\n- Status: accepted\n- Supersedes: none\n\n",
            "# 0007: A title\n\n- Status: accepted\n- Date: 2026-01-31\n- Supersedes: none\n\n",
            "# 0007: A title\n\n- Date: 2026-01-31\n- Status: accepted\n\n",
        ] {
            assert!(parse("0007-a.md", text).is_err(), "{text}");
        }
    }

    #[test]
    fn both_ends_of_a_relation_name_each_other() {
        let check = |old: &str, new: &str| {
            check_relations(&[decision("0001", old, "none"), decision("0002", "accepted", new)].into())
        };
        assert!(check("accepted", "none").is_ok());
        assert!(check("tried and lost", "none").is_ok());
        assert!(check("superseded by 0002", "0001").is_ok());
        assert!(check("superseded in part by 0002", "0001 (in part)").is_ok());
        assert!(check("superseded in part by 0002", "0001").is_err());
        assert!(check("superseded by 0002", "none").is_err());
        assert!(check("accepted", "0001").is_err());
        assert!(check("rejected", "none").is_err());
        assert!(check("accepted", "0003").is_err());
    }

    #[test]
    fn the_index_has_a_row_for_each_decision_and_no_other() {
        let decisions = [decision("0001", "accepted", "none"), decision("0002", "accepted", "none")].into();
        let index = format!("# Decisions\n\n{}", table(&decisions));
        assert!(compare(&index, &decisions).is_ok());
        assert!(compare(&index.replace("2026-01-31", "2026-02-01"), &decisions).is_err());
        assert!(
            compare(&format!("{index}| [0003](b) | B | 2026-01-31 | accepted | none |\n"), &decisions)
                .is_err()
        );
        let (head, row) = index.trim_end().rsplit_once('\n').unwrap();
        assert!(compare(head, &decisions).is_err());
        let (head, first) = head.rsplit_once('\n').unwrap();
        assert!(compare(&format!("{head}\n{row}\n{first}\n"), &decisions).is_err());
    }
}
