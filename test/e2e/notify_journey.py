#!/usr/bin/env python3
"""A journey through notifications: topics, subscriptions that are confirmed, filters, and the events of a database.

Receivers of the journey's own listen on loopback. It runs against the environment that `howdah env` prints.
"""
import base64
import json
import os
import ssl
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
from botocore.config import Config

from api_steps import PATIENCE, available, create, delete, eventually, fails, rds, step, wait

sns = boto3.client("sns", config=Config(retries={"total_max_attempts": 1}))
TRUST = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])


def follow(url):
    with urllib.request.urlopen(url, context=TRUST, timeout=10 * PATIENCE) as answer:
        return answer.read().decode()


class Receiver:
    """An HTTP endpoint that keeps what it is sent."""

    def __init__(self):
        self.got = []
        self.broken = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if not outer.broken:
                    outer.got.append((dict(self.headers), body))
                self.send_response(503 if outer.broken else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def notifications(self):
        return [json.loads(body) for _, body in self.got if '"Type":"Notification"' in body]

    def events(self):
        return [json.loads(n["Message"]) for n in self.notifications() if n.get("Subject") == "RDS Notification Message"]

    def confirm(self):
        asked = eventually(10, lambda: [json.loads(b) for _, b in self.got if '"Type":"SubscriptionConfirmation"' in b], "a confirmation asked for")
        return follow(asked[-1]["SubscribeURL"])


def subscribe(topic, receiver, **attributes):
    answer = sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=receiver.url, Attributes=attributes)
    assert answer["SubscriptionArn"] == "pending confirmation", answer
    receiver.confirm()
    found = [s["SubscriptionArn"] for s in sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] if s["Endpoint"] == receiver.url]
    assert found[0].startswith(topic + ":"), found
    return found[0]


def journey():
    step("a topic is made once, however often it is asked for")
    topic = sns.create_topic(Name="alarms", Tags=[{"Key": "team", "Value": "blue"}])["TopicArn"]
    assert sns.create_topic(Name="alarms")["TopicArn"] == topic
    assert topic in [t["TopicArn"] for page in sns.get_paginator("list_topics").paginate() for t in page["Topics"]]
    sns.set_topic_attributes(TopicArn=topic, AttributeName="DisplayName", AttributeValue="Alarms")
    assert sns.get_topic_attributes(TopicArn=topic)["Attributes"]["DisplayName"] == "Alarms"
    sns.tag_resource(ResourceArn=topic, Tags=[{"Key": "cost", "Value": "7"}])
    sns.untag_resource(ResourceArn=topic, TagKeys=["team"])
    assert sns.list_tags_for_resource(ResourceArn=topic)["Tags"] == [{"Key": "cost", "Value": "7"}]

    step("an endpoint gets nothing before it confirms, and all after")
    all_of_it, silent = Receiver(), Receiver()
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=silent.url)
    arn = subscribe(topic, all_of_it)
    sent = sns.publish(TopicArn=topic, Subject="Greetings", Message="hello é", MessageAttributes={
        "kind": {"DataType": "String", "StringValue": "greeting"}, "n": {"DataType": "Number", "StringValue": "7"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x01\x02"}})["MessageId"]
    got = eventually(10, all_of_it.notifications, "the message")[0]
    assert (got["MessageId"], got["Message"], got["Subject"], got["TopicArn"]) == (sent, "hello é", "Greetings", topic), got
    assert got["MessageAttributes"]["raw"] == {"Type": "Binary", "Value": base64.b64encode(b"\x01\x02").decode()}, got
    assert not silent.notifications()

    step("its signature's certificate is served")
    assert "BEGIN CERTIFICATE" in follow(got["SigningCertURL"])

    step("a filter lets pass what it names, and raw delivery leaves the envelope away")
    some = Receiver()
    chosen = subscribe(topic, some, FilterPolicy='{"n":[{"numeric":[">",10]}]}', RawMessageDelivery="true")
    for n in (1, 11):
        sns.publish(TopicArn=topic, Message=f"number {n}", MessageAttributes={"n": {"DataType": "Number", "StringValue": str(n)}})
    eventually(10, lambda: some.got[-1][1] == "number 11", "the message that passes")
    sns.set_subscription_attributes(SubscriptionArn=chosen, AttributeName="FilterPolicy", AttributeValue='{"EventID":["RDS-EVENT-0003"]}')
    assert sns.get_subscription_attributes(SubscriptionArn=chosen)["Attributes"]["FilterPolicyScope"] == "MessageAttributes"
    fails("InvalidParameter", sns.set_subscription_attributes, SubscriptionArn=chosen, AttributeName="FilterPolicy", AttributeValue="[]")

    step("events of databases are published from the moment that they are subscribed to")
    categories = rds.describe_event_categories(SourceType="db-instance")["EventCategoriesMapList"][0]["EventCategories"]
    assert {"creation", "deletion", "failover"} <= set(categories), categories
    made = rds.create_event_subscription(SubscriptionName="life", SnsTopicArn=topic, SourceType="db-instance", EventCategories=["creation", "deletion"])
    assert made["EventSubscription"]["Status"] == "creating", made
    assert rds.describe_event_subscriptions(SubscriptionName="life")["EventSubscriptionsList"][0]["Status"] == "active"
    fails("SubscriptionAlreadyExist", rds.create_event_subscription, SubscriptionName="life", SnsTopicArn=topic)
    fails("SNSTopicArnNotFound", rds.create_event_subscription, SubscriptionName="none", SnsTopicArn=topic + "x")
    fails("SNSInvalidTopic", rds.create_event_subscription, SubscriptionName="none", SnsTopicArn="alarms")
    fails("SubscriptionCategoryNotFound", rds.modify_event_subscription, SubscriptionName="life", EventCategories=["lunch"])
    fails("SourceNotFound", rds.add_source_identifier_to_subscription, SubscriptionName="life", SourceIdentifier="nobody")
    create("watched", Tags=[{"Key": "team", "Value": "blue"}])
    available("watched")
    events = eventually(20, all_of_it.events, "the event of the creation")
    assert events[0]["Event Message"] == "DB instance created" and events[0]["Source ID"] == "watched", events
    assert events[0]["Event ID"].endswith("#RDS-EVENT-0005") and events[0]["Tags"] == {"team": "blue"}, events
    assert rds.add_source_identifier_to_subscription(SubscriptionName="life", SourceIdentifier="watched")["EventSubscription"]["SourceIdsList"] == ["watched"]
    fails("InvalidParameterCombination", rds.remove_source_identifier_from_subscription, SubscriptionName="life", SourceIdentifier="watched")

    step("what an endpoint that is down misses, it gets when it is back")
    all_of_it.broken = True
    delete("watched")
    wait("db_instance_deleted", DBInstanceIdentifier="watched")
    sns.publish(TopicArn=topic, Message="while it was down")
    eventually(20, lambda: "RDS-EVENT-0003" in some.got[-1][1], "the event at the other endpoint")
    time.sleep(2)
    all_of_it.broken = False
    eventually(30, lambda: [e for e in all_of_it.events() if e["Event Message"] == "DB instance deleted"], "the event of the deletion")
    eventually(30, lambda: [n for n in all_of_it.notifications() if n["Message"] == "while it was down"], "the message")

    step("mail needs a relay")
    fails("InvalidParameter", sns.subscribe, TopicArn=topic, Protocol="email", Endpoint="ops@example.org")

    step("the link of a message ends a subscription, and a topic takes its subscriptions along")
    follow(all_of_it.notifications()[0]["UnsubscribeURL"])
    fails("NotFound", sns.get_subscription_attributes, SubscriptionArn=arn)
    sns.unsubscribe(SubscriptionArn=chosen)
    sns.delete_topic(TopicArn=topic)
    assert rds.describe_event_subscriptions(SubscriptionName="life")["EventSubscriptionsList"][0]["Status"] == "topic-not-exist"
    rds.delete_event_subscription(SubscriptionName="life")
    fails("SubscriptionNotFound", rds.delete_event_subscription, SubscriptionName="life")
    assert not [s for s in sns.list_subscriptions()["Subscriptions"] if s["TopicArn"] == topic]


def clean():
    for s in rds.describe_event_subscriptions()["EventSubscriptionsList"]:
        rds.delete_event_subscription(SubscriptionName=s["CustSubscriptionId"])
    for t in sns.list_topics()["Topics"]:
        sns.delete_topic(TopicArn=t["TopicArn"])
    for i in rds.describe_db_instances()["DBInstances"]:
        if i["DBInstanceStatus"] != "deleting":
            delete(i["DBInstanceIdentifier"])


if __name__ == "__main__":
    try:
        journey()
    finally:
        clean()
    step("done")
    sys.exit(0)
