"""The middleware that signs in users whose sessions last longer than a day."""

from typing import Any

from redis_kit.core.web.middleware import KitMiddleware
from redis_kit.signins.days import aread, today
from redis_kit.signins.errors import log_repeated_failure
from redis_kit.signins.mixin import SignInMixin

DAY = "_redis_kit_signed_in"  # in the session: the last day that was counted
FAILED = "the day of a session was not counted"


class SignInMiddleware(KitMiddleware):
    """Sign in the user of a request, once for each day of a session. Put it after AuthenticationMiddleware.

    Never raises: a failure is logged, at most once a minute. The first request of a day costs a round trip.
    """

    def __call__(self, request: Any) -> Any:
        """Count the day and answer the request."""
        if self.is_async:
            return self._acall(request)
        try:
            # Without a session nobody is signed in, and a look at the user would make the response vary by cookie.
            if request.session.session_key and request.user.is_authenticated:
                user = getattr(request.user, "_wrapped", request.user)  # the attribute is lazy
                if request.session.get(DAY) != str(today(user)):
                    request.session[DAY] = str(SignInMixin.sign_in(user).day)
        except Exception as error:
            log_repeated_failure(FAILED, error)
        return self.get_response(request)

    async def _acall(self, request: Any) -> Any:
        try:
            if request.session.session_key:
                user = await request.auser()
                if user.is_authenticated and await request.session.aget(DAY) != str(await aread(today, user)):
                    await request.session.aset(DAY, str((await SignInMixin.asign_in(user)).day))
        except Exception as error:
            log_repeated_failure(FAILED, error)
        return await self.get_response(request)
