"""Adds up the results of scripts/test.sh: JUnit files of CTest and pytest, and NAME.passed or NAME.failed of parts
that are no test runners. A part that failed counts once if no failed test of its own explains it."""

import sys
import xml.etree.ElementTree as xml
from pathlib import Path

RUNNERS = {"tests": "release", "address": "asan", "thread": "tsan", "python": "python"}  # part to its JUnit file


def count(path: Path) -> tuple[int, list[str]]:
    passed, failed = 0, []
    for case in xml.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed.append(f"{path.stem}: {case.get('name')}")
        elif case.get("status") == "notrun":  # CTest did not find its program
            failed.append(f"{path.stem}: {case.get('name')} (not run)")
        elif case.find("skipped") is None and case.get("status") != "disabled":
            passed += 1
    return passed, failed


def main() -> int:
    folder = Path(sys.argv[1])
    passed = len(list(folder.glob("*.passed")))
    failed = []
    for path in sorted(folder.glob("*.xml")):
        more_passed, more_failed = count(path)
        passed += more_passed
        failed += more_failed
    for mark in sorted(folder.glob("*.failed")):
        if not any(line.startswith(RUNNERS.get(mark.stem, " ") + ": ") for line in failed):
            failed.append(mark.stem)
    for line in failed:
        print(f"failed: {line}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
