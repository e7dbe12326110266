//! Web servers: the real nginx, with the configuration that it needs and one page.

use std::fs;
use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_programs::assets;
use andante_scenario::{Kind, Program, Workload};

use super::prepared::Prepared;
use super::process::CommandLine;

/// The first port of web servers.
const FIRST_PORT: usize = 8080;

fn port(workload: &Workload, server: &str) -> usize {
    FIRST_PORT + workload.place_in_kind(server)
}

/// Where a server's page is, for its clients.
pub(super) fn url(prepared: &Prepared<'_>, server: &str) -> String {
    let address = prepared.address_of(server);
    let port = port(prepared.workload, server);
    format!("http://{address}:{port}/page.txt")
}

/// nginx, in the foreground and as one process, which is all that there is to schedule.
pub(super) fn server(folder: &Path) -> CommandLine {
    let nginx = assets::tool("nginx", "as web server", "nginx-light");
    let nginx = nginx.map_or_else(|_| "nginx".to_owned(), |file| file.display().to_string());
    let configuration = folder.join("nginx.conf").display().to_string();
    let folder = folder.display().to_string();
    ["-p", &folder, "-e", "stderr", "-c", &configuration]
        .into_iter()
        .fold(vec![nginx], |mut argv, word| {
            argv.push(word.to_owned());
            argv
        })
        .into()
}

/// Writes what the servers need into their folders.
pub(super) fn set_up(prepared: &Prepared<'_>) -> Result<(), LabError> {
    for program in prepared.workload.programs.iter().filter(|p| p.count > 0) {
        let Kind::WebServer { page_kb, gzip } = program.kind else {
            continue;
        };
        let folder = prepared.setup.folder.join(&program.name);
        fs::create_dir_all(&folder).map_err(|e| LabError::file("create", &folder, e))?;
        let write = |name: &str, text: String| {
            let file: PathBuf = folder.join(name);
            fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))
        };
        write("page.txt", page(page_kb))?;
        write("nginx.conf", configuration(prepared, program, gzip))?;
    }
    Ok(())
}

fn configuration(prepared: &Prepared<'_>, program: &Program, gzip: bool) -> String {
    let address = prepared.address_of(&program.name);
    let port = port(prepared.workload, &program.name);
    let gzip = if gzip { "on" } else { "off" };
    let folder = prepared.setup.folder.join(&program.name);
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary
        .map(|of| format!("  {of}_temp_path {folder}/{of};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nuser root;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  default_type text/plain;\n{temporary}\
         \x20 gzip {gzip};\n  gzip_types text/plain;\n\
         \x20 keepalive_requests 1000000000;\n\
         \x20 server {{ listen {address}:{port}; root {folder}; }}\n}}\n"
    )
}

/// So much text of words that come again, and not in turn: gzip has some work with it.
fn page(kb: u32) -> String {
    const WORDS: [&str; 8] = [
        "andante", "allegro", "presto", "largo", "adagio", "vivace", "moderato", "grave",
    ];
    let bytes = kb as usize * 1000;
    let mut page = String::with_capacity(bytes + 16);
    let mut state: u32 = 1;
    while page.len() < bytes {
        // A linear congruential generator; its upper bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        page.push_str(WORDS[(state >> 29) as usize]);
        page.push(if state & (1 << 20) == 0 { ' ' } else { '\n' });
    }
    page.truncate(bytes);
    page
}
