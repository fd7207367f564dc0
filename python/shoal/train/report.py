"""What `shoal train` says at the end: the accuracy, where the time went, and where to look closer."""

import json

from .. import recording, session


def finish(summary: dict, here, as_json: bool) -> None:
    folder = session.run_folder()
    recording.stop()
    # Everybody's events are in their files when everybody has said so.
    seen = here.gather(str(folder).encode(), "end of the run")
    if here.rank != 0:
        return
    said = None
    if folder:
        said = recording.report()
        summary |= {"trace": said["trace"], "report": said["report"]}
    if as_json:
        print(json.dumps(summary), flush=True)
        return
    if said:
        tables = [said["tensors"], said["times"], said["links"]] if len(seen) > 1 else [said["times"]]
        print("\n" + "\n".join(tables), flush=True)
    hidden = "" if summary["hidden"] is None else f", {summary['hidden']:.0%} of communication hidden"
    print(f"test accuracy {summary['accuracy']:.4f} after {summary['steps']} steps in {summary['seconds']:.1f} s "
          f"({summary['images_per_second']:,.0f} images/s{hidden})", flush=True)
    if said:
        print(f"why     {said['why']}\ntrace   {said['trace']}   (open it in https://ui.perfetto.dev)\nreport  {said['report']}", flush=True)
