"""What the test beside OpenBao asks about tokens, wrapped answers and capabilities."""

import itertools


class TokenTests:
    """A part of the tests of test_openbao.py, which sends the requests."""

    def test_tokens(self):
        self.theirs.send("POST", "sys/policies/acl/sign", {"policy": 'path "auth/token/*" { capabilities = ["update", "read"] }'})
        roots = {service: service.token for service in (self.theirs, self.ours)}
        parent = {"policies": ["sign"], "ttl": "1h", "renewable": False}
        made = self.statuses("POST", "auth/token/create", parent)
        for service, answer in made.items():
            service.token = answer["auth"]["client_token"]
        try:
            for body in (
                {"policies": ["root"]}, {"policies": ["other"]}, {"policies": "sign"}, {"policies": ["sign", "sign"]}, {"policies": []},
                {"ttl": "-1"}, {"ttl": "x"}, {"ttl": "10m"}, {"ttl": 60}, {"ttl": "99999h"}, {"no_parent": True}, {"period": "1h"},
                {"id": "abc"}, {"type": "bad"}, {"type": "service"}, {"type": "batch"}, {"num_uses": -1}, {"explicit_max_ttl": "10m"},
                {"entity_alias": "a"}, {"meta": {"a": "b"}}, {"display_name": "a"}, {"unknown": 1}, {}, None,
            ):  # fmt: skip
                self.statuses("POST", "auth/token/create", body)
                self.statuses("PUT", "auth/token/create", body)
            child = self.statuses("POST", "auth/token/create", {"ttl": "10m"})
            token, accessor = (lambda service: child[service]["auth"]["client_token"]), (lambda service: child[service]["auth"]["accessor"])
            for what in ("lookup", "renew"):
                for given in (None, {}, {"token": ""}, {"token": "nope"}):
                    self.statuses("POST", f"auth/token/{what}", given)
            self.statuses("POST", "auth/token/lookup", lambda service: {"token": token(service)})
            self.statuses("POST", "auth/token/renew-self", {"increment": "1h"})
            for what in ("lookup-accessor", "renew-accessor", "revoke-accessor"):
                for given in (None, {}, {"accessor": ""}, {"accessor": "nope"}):
                    self.statuses("POST", f"auth/token/{what}", given)
            found = self.statuses("POST", "auth/token/lookup-accessor", lambda service: {"accessor": accessor(service)})
            for name in ("creation_ttl", "explicit_max_ttl", "id", "num_uses", "orphan", "path", "type", "entity_id"):
                self.assertEqual(*(answer["data"][name] for answer in found.values()), name)
            self.statuses("GET", "auth/token/lookup-self")
            self.statuses("GET", "auth/token/lookup")
            self.statuses("POST", "auth/token/revoke-accessor", lambda service: {"accessor": accessor(service)})
            self.statuses("POST", "auth/token/revoke-accessor", lambda service: {"accessor": accessor(service)})
            for given in ({}, {"token": "nope"}, lambda service: {"token": token(service)}):
                self.statuses("POST", "auth/token/revoke", given)
            self.statuses("POST", "auth/token/revoke-self")
            self.statuses("GET", "auth/token/lookup-self")
        finally:
            for service, token in roots.items():
                service.token = token

    def test_wrapping(self):
        for ttl in ("0", "x", "-1", "60", "1h", "1m30s", ""):
            self.statuses("POST", "sys/wrapping/wrap", {"a": "b"}, wrap=ttl)
        self.statuses("POST", "sys/wrapping/wrap", {"a": "b"})
        for what in ("unwrap", "lookup", "rewrap"):
            self.statuses("POST", f"sys/wrapping/{what}", {"token": "nope"})
        made = self.statuses("POST", "sys/wrapping/wrap", {"a": {"b": 1}}, wrap="60")
        token = lambda service: {"token": made[service]["wrap_info"]["token"]}  # noqa: E731
        self.assertEqual(*({*answer["wrap_info"]} for answer in made.values()))
        found = self.statuses("POST", "sys/wrapping/lookup", token)
        for name in ("creation_path", "creation_ttl"):
            self.assertEqual(*(answer["data"][name] for answer in found.values()))
        again = self.statuses("POST", "sys/wrapping/rewrap", token)
        self.statuses("POST", "sys/wrapping/unwrap", token)
        new = lambda service: {"token": again[service]["wrap_info"]["token"]}  # noqa: E731
        taken = self.statuses("POST", "sys/wrapping/unwrap", new)
        self.assertEqual(*(answer["data"] for answer in taken.values()))
        self.statuses("POST", "sys/wrapping/unwrap", new)
        self.statuses("POST", "transit/random/8", {}, wrap="60")
        self.statuses("GET", "transit/keys/none", wrap="60")
        self.statuses("GET", "auth/token/lookup-self", wrap="60")

    def test_wrapping_of_batches_that_fail_in_part(self):
        name = self.key("aes256-gcm96")
        made = self.statuses("POST", f"transit/encrypt/{name}", {"plaintext": "aGk="})
        for code in (None, 200, 206, 400, 599):
            items = lambda service: [{"ciphertext": made[service]["data"]["ciphertext"]}, {"ciphertext": "vault:v1:aaaa"}]  # noqa: E731
            body = lambda service: {"batch_input": items(service), **({} if code is None else {"partial_failure_response_code": code})}  # noqa: E731
            wrapped = self.statuses("POST", f"transit/decrypt/{name}", body, wrap="60")
            found = self.statuses("POST", "sys/wrapping/unwrap", lambda service: {"token": wrapped[service]["wrap_info"]["token"]})
            self.assertEqual(*([item["plaintext"] for item in answer["data"]["batch_results"]] for answer in found.values()))

    def test_capabilities(self):
        for what, paths in itertools.product(
            ("capabilities-self", "capabilities"),
            (None, [], "", "transit/encrypt/a", "a,b", ["transit/encrypt/a", "sys/x"], 5, [5], {}),
        ):
            for field in ("paths", "path"):
                body = {} if paths is None else {field: paths}
                self.both("POST", f"sys/{what}", body)
                if what == "capabilities":
                    self.both("POST", f"sys/{what}", {**body, "token": "nonsense"})
                    self.both("POST", f"sys/{what}", lambda service: {**body, "token": service.token})
