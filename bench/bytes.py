"""Bytes on the wire against the formula: a step of a bandwidth-optimal sum sends 2 (N-1)/N of the gradients from every member.

    python bench/bytes.py --rate 200mbit       four hosts of a lab: payload, frames, and what interfaces transmitted
    python bench/bytes.py                      loopback: payload and frames
    python bench/bytes.py --quick              a smoke test

The interface of a lab's host counts the headers of a segmented packet (GSO) once, as the kernel hands it on; on a cable every 1448
bytes have 66 of their own. Nothing is packed (docs/ways.md; bench/packed.py has that). Small tensors travel by programs with fewer steps and more bytes where that is quicker; `ways` says which were used.
"""

from __future__ import annotations

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "bytes_member.py")


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--model", default="fcnet", help="of bench/peers/models.py")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    if args.quick:
        args.members, args.model, args.steps = 2, "lenet", 2
    with sbs.Lab(args.members, args.rate) as lab:
        line = sbs.run_members(lab, [sbs.PYTHON, MEMBER, "--model", args.model, "--steps", str(args.steps)], {"SHOAL_PACKING": "never"})[-1]
    sbs.print_header(f"bytes of {args.steps} steps of {args.model}, {args.members} members, {args.rate or 'loopback'}, by {', '.join(line['ways'])}")
    print(f"{'member':>10} {'payload':>14} {'of formula':>10} {'with frames':>14} {'of formula':>10} {'interface':>14} {'of formula':>10}")
    columns = list(zip(*line["counted"]))
    rows = [*enumerate(line["counted"]), ("mean", [sum(column) / len(column) for column in columns])]
    for member, counted in rows:
        shown = "".join(f" {value:>14,.0f} {value / line['formula']:>10.4f}" if value else f" {'-':>14} {'-':>10}" for value in counted)
        print(f"{member:>10}{shown}")


if __name__ == "__main__":
    main()
