"""What `shoal train` says at the end."""

import json


def finish(summary: dict, model, here, as_json: bool) -> None:
    if here.rank != 0:
        return
    if as_json:
        print(json.dumps(summary), flush=True)
        return
    hidden = "" if summary["hidden"] is None else f", {summary['hidden']:.0%} of communication hidden"
    print(f"test accuracy {summary['accuracy']:.4f} after {summary['steps']} steps in {summary['seconds']:.1f} s "
          f"({summary['images_per_second']:,.0f} images/s{hidden})", flush=True)
