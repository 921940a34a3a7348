"""Calls actions with boto3, for tests that walk the script. Each input line is a call, and each output line its answer, as JSON."""
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

clients = {}


def call(service, action, parameters):
    if service not in clients:
        clients[service] = boto3.client(service, config=Config(retries={"total_max_attempts": 1}))
    client = clients[service]
    method = next(m for m, a in client.meta.method_to_api_mapping.items() if a == action)
    try:
        return {"answer": getattr(client, method)(**parameters)}
    except ClientError as e:
        return {"code": e.response["Error"]["Code"], "message": e.response["Error"]["Message"]}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(call(asked["service"], asked["action"], asked["with"]), default=str), flush=True)
