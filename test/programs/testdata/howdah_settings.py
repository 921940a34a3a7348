"""Settings of Django's own tests: the database of a Howdah instance, as its master user. psycopg takes the rest from libpq's environment."""
import os

ENGINE = {
    "ENGINE": "django.db.backends.postgresql",
    "HOST": os.environ["PGHOST"],
    "PORT": os.environ["PGPORT"],
    "USER": os.environ["PGUSER"],
    "PASSWORD": os.environ["PGPASSWORD"],
    "OPTIONS": {"sslmode": "verify-full", "sslrootcert": os.environ["PGSSLROOTCERT"]},
}
DATABASES = {"default": dict(ENGINE, NAME="django"), "other": dict(ENGINE, NAME="django_other")}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
