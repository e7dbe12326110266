// SPDX-License-Identifier: GPL-2.0
//! Which words are understood at the socket, and what is told to one who speaks others.

use crate::{Answer, Fault, FaultKind};

/// Of all that is said at the socket. It rises when something that was understood is not any more, or means something
/// else. An addition beside it changes nothing: a program passes over what it does not know in an answer, and a
/// daemon refuses a request that it does not know.
pub const VERSION: u32 = 1;

/// Whether a program of one version and a daemon of another understand each other.
///
/// # Errors
/// They do not: which of them is to be brought up to date, and how.
pub fn understood(program: u32, daemon: u32) -> Result<(), Fault> {
    let mend = match program.cmp(&daemon) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => {
            "install the program, or the libandante that it uses, in the version that belongs to it"
        }
        std::cmp::Ordering::Greater => {
            "start the Andante that is installed, with `sudo systemctl restart andante`"
        }
    };
    other_version(format!(
        "this program speaks version {program} of the socket's protocol, and the Andante that runs speaks version \
         {daemon}: {mend}"
    ))
}

fn other_version(message: String) -> Result<(), Fault> {
    let kind = FaultKind::Version;
    Err(Fault { kind, message })
}

/// Whether the daemon that has answered this to `hello` speaks the program's version.
///
/// # Errors
/// It speaks another, and what to do; or why it does not say.
pub fn greeted(answer: Answer) -> Result<(), Fault> {
    match answer {
        Answer::Hello(hello) => understood(VERSION, hello.version),
        Answer::Error(fault) if fault.kind != FaultKind::BadRequest => Err(fault),
        // It does not know the word.
        _ => other_version(format!(
            "the Andante that runs is older than this program, which speaks version {VERSION} of the socket's \
             protocol: start the one that is installed, with `sudo systemctl restart andante`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hello;

    #[test]
    fn whoever_is_older_is_to_be_installed_anew() {
        assert!(understood(2, 2).is_ok());
        let message = |program, daemon| understood(program, daemon).unwrap_err().message;
        let older = message(1, 2);
        assert!(older.contains("version 1 of") && older.contains("libandante"));
        let newer = message(2, 1);
        assert!(newer.contains("speaks version 1: start") && newer.contains("restart andante"));
    }

    #[test]
    fn a_daemon_is_understood_if_it_says_the_same() {
        let said = |line: &str| greeted(serde_json::from_str(line).unwrap());
        assert_eq!(greeted(Answer::Hello(Hello { version: VERSION })), Ok(()));
        let kind = |line: &str| said(line).unwrap_err().kind;
        assert_eq!(kind(r#"{"hello":{"version":9}}"#), FaultKind::Version);
        // One of before there was a version.
        let old = r#"{"error":{"kind":"bad_request","message":"unknown variant `hello`"}}"#;
        assert_eq!(kind(old), FaultKind::Version);
        assert!(
            said(old)
                .unwrap_err()
                .message
                .contains("older than this program")
        );
        assert_eq!(kind(r#"{"done":{}}"#), FaultKind::Version);
        // One that has no time.
        assert_eq!(
            kind(r#"{"error":{"kind":"busy","message":"later"}}"#),
            FaultKind::Busy
        );
    }
}
