"""What `shoal train` says at the end: how well the model does, where the time went, and where to look closer."""

import json

from .. import recording, session


def finish(summary: dict, unit: str, here, as_json: bool) -> None:
    """unit: what the model reads, for `UNIT_per_second` in the summary."""
    folder = session.run_folder()
    recording.stop()
    # Everybody's events are in their files when everybody has said so.
    seen = here.gather(str(folder).encode(), "end of the run")
    if here.place != 0:  # among those that are left: rank 0 may be lost
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
    print(f"{_result(summary)} after {summary['steps']} steps in {summary['seconds']:.1f} s "
          f"({rate(summary[f'{unit}_per_second'], unit)}{hidden})", flush=True)
    if said:
        print(f"why     {said['why']}\ntrace   {said['trace']}   (open it in https://ui.perfetto.dev)\nreport  {said['report']}", flush=True)


def rate(per_second: float, unit: str) -> str:
    """As in "1,234 images/s"; large models on small machines take seconds for one."""
    return f"{per_second:,.0f} {unit}/s" if per_second >= 10 else f"{per_second:.2g} {unit}/s"


def _result(summary: dict) -> str:
    if "accuracy" in summary:
        return f"test accuracy {summary['accuracy']:.4f}"
    if "perplexity" in summary:
        return f"held-out loss {summary['held_out_loss']:.4f} nats a token, perplexity {summary['perplexity']:.2f},"
    return "no test: the data was synthetic,"
