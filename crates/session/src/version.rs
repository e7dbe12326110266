// SPDX-License-Identifier: GPL-2.0
//! Which words are understood at the socket, and what is told to one who speaks others.

use crate::{Answer, Fault, FaultKind};

/// Of all that is said at the socket. It rises when something that was understood is not any more, or means something
/// else. What is added beside it changes nothing: a program passes over what it does not know in an answer, and a
/// daemon refuses a request that it does not know.
pub const VERSION: u32 = 1;

/// Why a program of one version and a daemon of another do not understand each other, with the mend; none: they do.
pub fn differ(program: u32, daemon: u32) -> Option<String> {
    let mend = match program.cmp(&daemon) {
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Less => {
            "install the program, or the libandante that it uses, in the version that belongs to it"
        }
        std::cmp::Ordering::Greater => {
            "start the Andante that is installed, with `sudo systemctl restart andante`"
        }
    };
    Some(format!(
        "this program speaks version {program} of the socket's protocol, and the Andante that runs speaks version \
         {daemon}: {mend}"
    ))
}

/// Whether the daemon that has answered this to `hello` speaks the program's version.
///
/// # Errors
/// It speaks another, and what to do; or why it does not say.
pub fn greeted(answer: Answer) -> Result<(), Fault> {
    let other = |message| {
        let kind = FaultKind::Version;
        Err(Fault { kind, message })
    };
    match answer {
        Answer::Hello(hello) => differ(VERSION, hello.version).map_or(Ok(()), other),
        Answer::Error(fault) if fault.kind != FaultKind::BadRequest => Err(fault),
        // It does not know the word.
        _ => other(format!(
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
        assert_eq!(differ(2, 2), None);
        let older = differ(1, 2).unwrap();
        assert!(older.contains("version 1 of") && older.contains("libandante"));
        let newer = differ(2, 1).unwrap();
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
