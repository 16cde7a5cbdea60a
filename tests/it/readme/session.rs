//! Finds the sessions in a text.

/// One command and the output below it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) output: String,
}

/// The steps of every block that is fenced by ```` ```console ````.
pub(super) fn sessions(text: &str) -> Vec<Vec<Step>> {
    let mut sessions = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if line.trim_end() == "```console" {
            let session = lines.by_ref().take_while(|(_, line)| line.trim_end() != "```");
            sessions.push(steps(number, session));
        } else if line.starts_with("```") {
            // Some other block, whose content is not looked at.
            lines.by_ref().find(|(_, line)| line.trim_end() == "```");
        }
    }
    sessions
}

fn steps<'a>(fence: usize, session: impl Iterator<Item = (usize, &'a str)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (line, text) in session {
        if goes_on {
            let command = &mut steps.last_mut().unwrap().command;
            command.push('\n');
            command.push_str(text);
            goes_on = text.ends_with('\\');
        } else if let Some(command) = text.strip_prefix("$ ") {
            goes_on = command.ends_with('\\');
            steps.push(Step { line, command: command.to_owned(), output: String::new() });
        } else {
            let step = steps.last_mut().unwrap_or_else(|| panic!("the session at line {fence} begins without a `$ `"));
            step.output.push_str(text);
            step.output.push('\n');
        }
    }
    steps
}

#[test]
fn commands_and_their_outputs_are_told_apart() {
    let text = "# idem\n```sh\n$ not this\n```\n```console\n$ one \\\n    more\nfirst\n\nsecond\n$ two\n```\n";
    let step =
        |line, command: &str, output: &str| Step { line, command: command.to_owned(), output: output.to_owned() };
    assert_eq!(sessions(text), [[step(6, "one \\\n    more", "first\n\nsecond\n"), step(11, "two", "")]]);
}

#[test]
fn a_fence_in_another_block_opens_nothing() {
    assert!(sessions("```text\n```console\n$ no\n```\n").is_empty());
}
