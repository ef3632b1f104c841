"""Verifies captured requests and their key directory: RFC 9421 in the Web Bot Auth profile, read independently of the
Rust code, with the ed25519 of the package `cryptography`.

Reads one JSON object from standard input: `agent` (the link in Signature-Agent), `directory` (`authority`, `headers`,
`body` as served) and `requests` (each `method`, `scheme`, `authority`, `target`, `headers`). Headers are lists of
[name, value]. Prints a line for what is verified and ends with status 1 at the first thing that is not.
"""

import base64
import hashlib
import json
import re
import sys
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class NotVerified(Exception):
    pass


def need(condition, why):
    if not condition:
        raise NotVerified(why)


def field(headers, name):
    lines = [value.strip() for field, value in headers if field.lower() == name]
    need(lines, f"no {name}")
    return ", ".join(lines)


ITEM = re.compile(r'"([^"\\]*)"((?:;[a-z*][a-z0-9_\-.*]*(?:=(?:"[^"\\]*"|[0-9]+|\?[01]))?)*)')
PARAMETER = re.compile(r';([a-z*][a-z0-9_\-.*]*)(?:=(?:"([^"\\]*)"|([0-9]+)|\?([01])))?')


def parameters(text):
    found = {}
    at = 0
    while at < len(text):
        match = PARAMETER.match(text, at)
        need(match, f"parameters do not parse: {text}")
        name, string, number, boolean = match.groups()
        if string is not None:
            found[name] = string
        elif number is not None:
            found[name] = int(number)
        else:
            found[name] = boolean != "0"
        at = match.end()
    return found


def signature_input(headers):
    """Label, covered components as (text, name, parameters), all after the label, parameters."""
    text = field(headers, "signature-input")
    label, params = text.split("=", 1)
    need(params.startswith("(") and ")" in params, "no inner list")
    end = params.index(")")
    items, at = [], 1
    while at < end:
        match = ITEM.match(params, at)
        need(match, f"a component does not parse: {params}")
        items.append((match.group(0), match.group(1), parameters(match.group(2))))
        at = match.end()
        need(at == end or params[at] == " ", "components are not separated")
        at += at < end
    need(len({text for text, _, _ in items}) == len(items), "a component is covered twice")
    return label, items, params, parameters(params[end + 1 :])


def signature(headers, label):
    match = re.fullmatch(r"([a-z*][a-z0-9_\-.*]*)=:([A-Za-z0-9+/=]*):", field(headers, "signature"))
    need(match and match.group(1) == label, "no signature under the label")
    return base64.b64decode(match.group(2), validate=True)


def thumbprint(key):
    """RFC 7638, 3 and RFC 8037, 2."""
    members = {name: key[name] for name in ("crv", "kty", "x")}
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return unpadded(hashlib.sha256(text.encode()).digest())


def unpadded(bytes):
    return base64.urlsafe_b64encode(bytes).rstrip(b"=").decode()


def public(keys, keyid):
    for key in keys:
        if key.get("kty") == "OKP" and key.get("crv") == "Ed25519" and thumbprint(key) == keyid:
            text = key["x"]
            return Ed25519PublicKey.from_public_bytes(
                base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            )
    raise NotVerified(f"the directory has no key {keyid}")


def check(base, headers, label, params, keys):
    key = public(keys, params["keyid"])
    try:
        key.verify(signature(headers, label), base.encode())
    except InvalidSignature:
        raise NotVerified("the signature does not fit this base:\n" + base) from None


def in_time(params):
    now = time.time()
    need(isinstance(params.get("created"), int) and params["created"] <= now + 1, "created")
    need(isinstance(params.get("expires"), int) and now <= params["expires"], "expired")


def verify_request(request, agent, keys):
    headers = request["headers"]
    label, items, text, params = signature_input(headers)
    need(params.get("tag") == "web-bot-auth", "another tag")
    in_time(params)
    path, mark, query = request["target"].partition("?")
    authority = request["authority"].lower()
    default = {"http": ":80", "https": ":443"}[request["scheme"]]
    authority = authority.removesuffix(default)
    derived = {
        "@method": request["method"],
        "@authority": authority,
        "@scheme": request["scheme"],
        "@path": path,
        "@query": "?" + query,
        "@request-target": request["target"],
        "@target-uri": f'{request["scheme"]}://{authority}{request["target"]}',
    }
    names = [name for _, name, _ in items]
    need("@authority" in names or "@target-uri" in names, "the target is not covered")
    need("signature-agent" in names, "the agent is not covered")
    lines = []
    for item, name, own in items:
        if name in derived:
            value = derived[name]
        elif "key" in own:
            member = re.fullmatch(r'([a-z0-9_\-.*]+)=("[^"\\]*")', field(headers, name))
            need(member and member.group(1) == own["key"], f"no member {own['key']} in {name}")
            value = member.group(2)
            need(name != "signature-agent" or value == f'"{agent}"', "another agent")
        else:
            value = field(headers, name)
        lines.append(f"{item}: {value}")
    lines.append(f'"@signature-params": {text}')
    check("\n".join(lines), headers, label, params, keys)
    return names


def verify_directory(directory):
    headers = directory["headers"]
    media_type = "application/http-message-signatures-directory+json"
    need(field(headers, "content-type") == media_type, "another media type")
    keys = json.loads(directory["body"])["keys"]
    need(not any("d" in key for key in keys), "the directory shows a private key")
    label, items, text, params = signature_input(headers)
    need(params.get("tag") == "http-message-signatures-directory", "another tag")
    in_time(params)
    digest = base64.b64encode(hashlib.sha256(directory["body"].encode()).digest()).decode()
    need(field(headers, "content-digest") == f"sha-256=:{digest}:", "the digest is not that of the body")
    lines = []
    for item, name, own in items:
        if name == "@authority":
            need(own.get("req") is True, "@authority is not that of the request")
            value = directory["authority"]
        else:
            value = field(headers, name)
        lines.append(f"{item}: {value}")
    need(any(name == "@authority" for _, name, _ in items), "the authority is not covered")
    lines.append(f'"@signature-params": {text}')
    check("\n".join(lines), headers, label, params, keys)
    return keys


def main():
    captured = json.load(sys.stdin)
    try:
        keys = verify_directory(captured["directory"])
        print(f"verified the key directory of {captured['directory']['authority']}: {len(keys)} key")
        for request in captured["requests"]:
            names = verify_request(request, captured["agent"], keys)
            print(f"verified {request['method']} {request['target']}: {', '.join(names)}")
    except NotVerified as why:
        print(f"not verified: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
