"""People who sign in."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _


class UserManager(BaseUserManager["User"]):
    """Creates users by e-mail address."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Store a user with a hashed password (None: no password sign-in). Raises ValueError without an address."""
        if not email:
            raise ValueError("A user needs an e-mail address.")
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Store an operator: staff with every permission."""
        return self.create_user(email, password, **{**fields, "is_staff": True, "is_superuser": True})


class User(AbstractBaseUser, PermissionsMixin):
    """One person. Addresses are unique whatever their letter case."""

    email = models.EmailField(_("e-mail address"), unique=True)
    is_staff = models.BooleanField(_("operator"), default=False)
    is_active = models.BooleanField(_("active"), default=True)
    joined_at = models.DateTimeField(_("joined"), auto_now_add=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(Lower("email"), name="user_email_unique_any_case")]

    def __str__(self) -> str:
        return self.email
