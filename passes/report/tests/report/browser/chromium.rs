//! Headless Chromium: loads a page, runs a script on it, and prints the document.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time limit for a page, generous for a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// First script of the page: records all errors.
const FIRST: &str = "
    const results = {errors: []};
    window.addEventListener('error', (event) => results.errors.push(String(event.message)));
    window.addEventListener('unhandledrejection', (event) => results.errors.push(String(event.reason)));
    for (const kind of ['error', 'warn']) console[kind] = (...words) => results.errors.push(words.join(' '));
    document.addEventListener('securitypolicyviolation', (event) => results.errors.push(`refused: ${event.blockedURI}`));
        // Synthetic pointers cannot be captured.
    Element.prototype.setPointerCapture = () => {};
";

/// Last script of the page: helpers that move the pointer and read the tooltip, and results common to all pages.
const LAST: &str = "
    function hover(target, x, y) {
      target.scrollIntoView({block: 'center'});
      const box = target.getBoundingClientRect();
      target.dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
    }
    function tip() {
      const made = document.getElementById('tooltip');
      if (made.hidden) return null;
      const words = (tag) => [...made.querySelectorAll(tag)].map((part) => part.textContent);
      const values = words('dd');
      const facts = Object.fromEntries(words('dt').map((name, index) => [name, values[index]]));
      return {name: words('strong')[0], facts};
    }
    results.lanes = [...document.querySelectorAll('[data-lane]')].map((lane) => lane.dataset.lane);
    results.rows = Number(document.getElementById('transfers').dataset.rows);
";

/// Stores `results` in the document, after the page has had time to repaint.
const FINISH: &str = "
    const picture = () => [...document.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL()).join();
    const before = picture();
    window.dispatchEvent(new Event('resize'));
    setTimeout(() => {
      results.repainted = picture() === before;
      results.fetched = performance.getEntriesByType('resource').length;
      const bytes = new TextEncoder().encode(JSON.stringify(results));
      const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
      const made = document.createElement('pre');
      made.id = 'results';
      made.textContent = `RESULTS<${text}>`;
      document.body.append(made);
    }, 1000);
";

/// Loads a page and runs a script at its end; returns the script's `results`.
pub(super) fn visit(name: &str, html: &str, script: &str) -> Value {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    fs::create_dir_all(&folder).expect("cargo's test directory is writable");
    let last = format!("<script>{{{LAST}\n{script}\n{FINISH}}}</script>\n</body>\n</html>");
    let page = html.replacen("<head>", &format!("<head><script>{FIRST}</script>"), 1);
    let page =
        page.trim_end().strip_suffix("</body>\n</html>").expect("the page ends with its body").to_owned() + &last;
    fs::write(folder.join("page.html"), page).expect("its subdirectories are writable");
    let printed = dump(&folder).expect("chromium can run");
    let results = printed.split_once("RESULTS&lt;").and_then(|(_, rest)| rest.split_once("&gt;"));
    let Some((hex, _)) = results else {
        panic!("{name}: the script did not finish; see {}", folder.display());
    };
    let bytes: Result<Vec<u8>, _> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
    serde_json::from_slice(&bytes.expect("two digits per byte")).expect("JSON as the browser writes it")
}

/// Returns the document after ten seconds of virtual time, which advances while the page is idle.
fn dump(folder: &Path) -> io::Result<String> {
    let output = folder.join("document.html");
    let profile = folder.join("profile");
    let mut browser = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--window-size=1280,900",
            "--virtual-time-budget=10000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", folder.join("page.html").display()))
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(folder.join("stderr.txt"))?)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start chromium ({error}); run tools/setup to install it"));
    let started = Instant::now();
    while browser.try_wait()?.is_none() {
        if started.elapsed() > TIMEOUT {
            browser.kill()?;
            browser.wait()?;
            panic!("chromium did not finish within {TIMEOUT:?}; see {}", folder.display());
        }
        thread::sleep(Duration::from_millis(50));
    }
    // The profile takes several megabytes.
    fs::remove_dir_all(profile)?;
    fs::read_to_string(output)
}
