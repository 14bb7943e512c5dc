"""A system without forks and Unix's modules still has the command line and the plugin."""

import subprocess
import sys

HIDE = "import sys; sys.modules |= dict.fromkeys(['resource', 'fcntl', 'pwd', 'grp', 'termios'])\n"


def test_nothing_of_unix_is_imported_at_the_top():
    code = HIDE + "import claims.__main__, claims.mkdocs_plugin, claims.worker, decoder.__main__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
