"""What a member has sent."""

from shoal import session


def bytes_sent() -> int:
    """By this member, to all others, so far."""
    return sum(link["sent"] for link in session.current().links())
