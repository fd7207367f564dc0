"""What a test brings up for the time of a `with`: begun whole, or taken down again. Also where the test's process is killed: a guard sees
its end, for it reads from a pipe whose other end that process holds."""

import subprocess


def guard(words) -> subprocess.Popen:
    """`words`, with such a pipe as standard input. What Ctrl-C sends to the tests does not reach them."""
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def dismiss(guarding: subprocess.Popen) -> None:
    """As if this process had ended; returns when it is done."""
    guarding.stdin.close()
    guarding.wait()


class BroughtUp:
    def _start(self):
        raise NotImplementedError

    def close(self):
        raise NotImplementedError

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()
