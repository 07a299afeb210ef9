"""JSON Web Tokens: who calls, for whom, and with which scopes, as somebody says whose signature we know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jwt

from bide.clock import Clock
from bide.errors import SettingsError
from bide.server.auth.jwks import Jwks
from bide.server.auth.refusal import unauthenticated
from bide.server.caller import ADMIN, READ, RESOLVE, RUN, SCOPES, Caller

SHARED = frozenset(["HS256", "HS384", "HS512"])
PUBLIC = frozenset(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"])
SHORTEST_SECRET = 32
_KNOWN = frozenset(
    [
        "algorithms", "audience", "default_scopes", "identity_claim", "issuer", "jwks", "key", "leeway", "name_claim",
        "owner_claim", "scopes_claim", "secret",
    ]
)  # fmt: skip


class Tokens:
    """Reads tokens of one issuer.

    `settings` are those of `[auth.jwt]`. Which algorithms count is said here and never by the token: a public key is
    never taken for a shared secret, and `none` is no algorithm.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Clock) -> None:
        _check_settings(settings)
        self.clock = clock
        self.issuer = settings["issuer"]
        self.audience = _listed(settings["audience"])
        self.secret: str | None = settings.get("secret")
        self.public: str | None = settings.get("key")
        self.jwks = Jwks(str(settings["jwks"]), clock) if "jwks" in settings else None
        self.algorithms = _algorithms(settings)
        self.leeway = float(settings.get("leeway", 10))
        self.identity_claim = str(settings.get("identity_claim", "sub"))
        self.owner_claim = str(settings.get("owner_claim", self.identity_claim))
        self.scopes_claim = str(settings.get("scopes_claim", "scope"))
        self.name_claim = str(settings.get("name_claim", "name"))
        self.default_scopes = frozenset(_listed(settings.get("default_scopes", (READ, RUN, RESOLVE))))

    def caller(self, token: str) -> Caller:
        """Return who a token speaks of, or refuse it. May wait for a network."""
        claims = self._claims(token)
        self._check_times(claims)
        return Caller(
            identity=_text(claims, self.identity_claim),
            owner=_text(claims, self.owner_claim),
            scopes=self._scopes(claims),
            display_name=str(claims.get(self.name_claim) or ""),
            is_authenticated=True,
            user=claims,
        )

    def _claims(self, token: str) -> dict[str, Any]:
        """Check signature, issuer and audience."""
        try:
            return jwt.decode(
                token,
                self._key(token),
                algorithms=self.algorithms,
                audience=self.audience,
                issuer=self.issuer,
                # Times are checked below, by the clock that everything else here goes by.
                options={
                    "require": ["exp", "iss", "aud", self.identity_claim, self.owner_claim],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "enforce_minimum_key_length": True,
                },
            )
        except jwt.PyJWTError as problem:
            raise unauthenticated(f"The token is refused: {problem}", error="invalid_token") from None
        except (ValueError, TypeError):  # what no library of tokens expects in one
            raise unauthenticated("The token is refused: it cannot be read.", error="invalid_token") from None

    def _key(self, token: str) -> Any:
        """Return what its signature is to be checked with: chosen by our settings, and of a set by the key's id."""
        if self.jwks is None:
            return self.secret or self.public
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if algorithm not in self.algorithms or not isinstance(key_id, str):
            raise jwt.InvalidAlgorithmError("it is signed in a way that is not accepted here")
        key = self.jwks.key(key_id, str(algorithm))
        if key is None:
            raise jwt.InvalidKeyError("it is signed with a key that its issuer does not name")
        return key

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self.clock.now() / 1000
        exp, nbf, iat = (claims.get(name) for name in ("exp", "nbf", "iat"))
        for name, said in (("exp", exp), ("nbf", nbf), ("iat", iat)):
            if said is not None and (isinstance(said, bool) or not isinstance(said, int | float)):
                raise unauthenticated(f"The token is refused: {name} is no number.", error="invalid_token")
        if exp is None or now >= exp + self.leeway:
            raise unauthenticated("The token has expired: get a new one.", error="invalid_token")
        if max(nbf or 0, iat or 0) > now + self.leeway:
            raise unauthenticated("The token is not valid yet.", error="invalid_token")

    def _scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return what it is good for: a token that speaks of scopes has those, and no others."""
        said = claims.get(self.scopes_claim)
        if said is None:
            return self.default_scopes
        words = said.split() if isinstance(said, str) else said if isinstance(said, list) else []
        return frozenset(word.removeprefix("bide:") for word in words if isinstance(word, str)) & frozenset(SCOPES)


def _text(claims: Mapping[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str) or not found:
        raise unauthenticated(f"The token is refused: its {name!r} is no text.", error="invalid_token")
    return found


def _listed(said: str | Sequence[str]) -> list[str]:
    return [said] if isinstance(said, str) else list(said)


def _check_settings(settings: Mapping[str, Any]) -> None:
    unknown = sorted(settings.keys() - _KNOWN)
    if unknown:
        raise SettingsError(f"[auth.jwt] does not know {', '.join(unknown)}. It knows {', '.join(sorted(_KNOWN))}.")
    if sum(name in settings for name in ("jwks", "key", "secret")) != 1:
        raise SettingsError(
            "[auth.jwt] needs one of jwks (a URL or a file with public keys), key (a public key as PEM) and secret "
            "(shared with whoever issues the tokens)."
        )
    missing = [name for name in ("issuer", "audience") if not settings.get(name)]
    if missing:
        raise SettingsError(
            f"[auth.jwt] needs {' and '.join(missing)}: without them, a token that was made for another service would "
            f"open this one."
        )
    unknown = sorted(set(_listed(settings.get("default_scopes", ()))) - set(SCOPES))
    if unknown:
        raise SettingsError(f"default_scopes of [auth.jwt] are some of {', '.join(SCOPES)}, not {', '.join(unknown)}.")
    if ADMIN in _listed(settings.get("default_scopes", ())):
        raise SettingsError("default_scopes of [auth.jwt] cannot hold admin: say it in the tokens of admins.")


def _algorithms(settings: Mapping[str, Any]) -> list[str]:
    """Return the algorithms that count: of one kind, since a public key is a secret that everybody knows."""
    allowed = SHARED if "secret" in settings else PUBLIC
    said = _listed(settings.get("algorithms", ["HS256"] if "secret" in settings else ["RS256", "ES256"]))
    wrong = sorted(set(said) - allowed)
    if wrong or not said:
        raise SettingsError(
            f"algorithms of [auth.jwt] are some of {', '.join(sorted(allowed))} where "
            f"{'a secret' if 'secret' in settings else 'public keys'} check the signature, not {', '.join(wrong)}."
        )
    if "secret" in settings and len(str(settings["secret"]).encode()) < SHORTEST_SECRET:
        raise SettingsError(f"The secret of [auth.jwt] is short enough to be guessed: use {SHORTEST_SECRET} bytes.")
    return said
