"""What a test brings up for the time of a `with`: begun whole, or taken down again."""


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
