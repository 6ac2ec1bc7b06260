"""The official Python SDK, unmodified, just works: all tests, and how many checks they made.

The server and its key come from ONCEPAY_URL and ONCEPAY_KEY.
"""

import sys
import unittest

import support

MODULES = ["customers", "payment_methods", "intents", "money", "events", "lists", "errors", "idempotency"]

if __name__ == "__main__":
    tests = unittest.defaultTestLoader.loadTestsFromNames(MODULES)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(tests)
    print(f"{support.Case.checks} assertions in {result.testsRun} tests")
    sys.exit(not result.wasSuccessful())
