"""A visitor of the app without a browser: it speaks to the server as a page does, and keeps what it was shown.

Twenty-five browsers would need more processor than the server they are to test.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

COOKIE = "_streamlit_xsrf"
PATIENCE = 1800.0
"""Seconds after which something that should have happened counts as not happening."""
PRESS_AGAIN = 15.0
"""Seconds after which a person presses a link again."""
PROBLEMS = ("The run failed.", "cannot be used.", "was not started.", "Traceback")


@dataclass(kw_only=True)
class _Shown:
    """An element on the page."""

    element: Any
    run: int
    fragment: str


@dataclass(kw_only=True)
class Visitor:
    """One browser with one tab."""

    url: str
    canaries: re.Pattern[bytes]
    """What to look for in everything that arrives."""
    problems: tuple[str, ...] = PROBLEMS
    """Words that end a visit."""
    seen: set[bytes] = field(default_factory=set)
    """Every canary that arrived, in frames or in files."""
    frames: int = 0
    pressed_again: int = 0
    """Links that led nowhere: Streamlit takes a timer's request that comes before the new page has begun for both."""
    pages: list[str] = field(default_factory=list)
    """Streamlit's name of the page that each run was of, parts of pages included."""
    cookie: str = ""
    uploaded_to: str = ""
    """Where the last file went."""
    _socket: ClientConnection | None = None
    _page: dict[tuple[int, ...], _Shown] = field(default_factory=dict)
    _run: int = 0
    _query: str = ""
    _page_hash: str = ""
    _timers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _urls: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    _finished: asyncio.Condition = field(default_factory=asyncio.Condition)
    _reader: asyncio.Task[None] | None = None
    _running: bool = False
    _values: dict[str, WidgetState] = field(default_factory=dict)
    """Of the widgets that were changed. A browser sends all of them each time: the server forgets a change that waits
    for its turn when the next request comes without it."""

    async def __aenter__(self) -> Self:
        status, _, headers = await self.fetch("/_stcore/health")
        assert status == http.HTTPStatus.OK
        self.cookie = headers["set-cookie"].split(";")[0].split("=", 1)[1]
        self._socket = await connect(
            f"{self.url.replace('http', 'ws')}/_stcore/stream",
            subprotocols=["streamlit", self.cookie],  # type: ignore[list-item]
            origin=self.url,  # type: ignore[arg-type]
            additional_headers={"Cookie": f"{COOKIE}={self.cookie}"},
            max_size=None,
            ping_interval=None,
        )
        self._reader = asyncio.create_task(self._read())
        await self._send()
        await self.quiet()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop_timers()
        assert self._socket is not None
        assert self._reader is not None
        await self._socket.close()
        await asyncio.gather(self._reader, return_exceptions=True)

    # What a person does

    async def go(self, title: str) -> None:
        """Follow a link of the sidebar."""
        while not await self._reached(title):
            self.pressed_again += 1
        await self.quiet()

    async def _reached(self, title: str) -> bool:
        """Follow a link; false if a person would press again, because nothing has been under way for a while."""
        await self.follow(title)
        end = time.monotonic() + PRESS_AGAIN
        await self.until(lambda: title in self.headings or (time.monotonic() > end and not self._running))
        return title in self.headings

    async def follow(self, title: str) -> None:
        """Press the link, and do not wait for what it leads to."""
        link = self._find("page_link", lambda proto: proto.label == title)
        self._stop_timers()
        self._page.clear()
        await self._send(page=link.element.page_script_hash)

    async def press(self, label: str) -> None:
        """A button."""
        button = await self.there("button", label)
        await self._change(button, trigger_value=True)

    async def choose(self, label: str, option: str) -> None:
        """An option of a radio."""
        radio = await self.there("radio", label)
        await self._change(radio, string_value=next(text for text in radio.element.options if text.startswith(option)))

    async def tick(self, label: str) -> None:
        """A box."""
        await self._change(await self.there("checkbox", label), bool_value=True)

    async def upload(self, name: str, content: bytes, *, label: str = "") -> None:
        """Hand over a file."""
        uploader = await self.there("file_uploader", label)
        request = BackMsg()
        request.file_urls_request.request_id = uuid.uuid4().hex
        request.file_urls_request.file_names.append(name)
        answer = asyncio.get_running_loop().create_future()
        self._urls[request.file_urls_request.request_id] = answer
        await self._give(request)
        (urls,) = (await asyncio.wait_for(answer, PATIENCE)).file_urls
        self.uploaded_to = urls.upload_url
        status = await self.put(urls.upload_url, name, content)
        assert status == http.HTTPStatus.NO_CONTENT, f"upload: {status}"
        state = WidgetState(id=uploader.element.id)
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.name, info.size, info.file_id = name, len(content), urls.file_id
        info.file_urls.CopyFrom(urls)
        await self._send(state, fragment=uploader.fragment)
        await self.quiet()

    async def download(self, label: str) -> bytes:
        """The file behind a link."""
        link = (await self.there("link_button", label)).element
        status, content, headers = await self.fetch(f"/{link.url}")
        assert status == http.HTTPStatus.OK, f"{label}: {status}"
        assert len(content) == int(headers["content-length"]), f"{label} is not complete"
        self.seen |= set(self.canaries.findall(content))
        return content

    async def ask(self, timer: str, *, page: str = "") -> None:
        """What a timer does by itself."""
        await self._send(fragment=timer, page=page, auto=True)

    # What a person sees

    @property
    def page(self) -> str:
        """Streamlit's name of the page."""
        return self._page_hash

    @property
    def timers(self) -> list[str]:
        """Parts of the page that ask for news by themselves."""
        return list(self._timers)

    @property
    def headings(self) -> list[str]:
        """Of every level."""
        return [shown.element.body for shown in self._all("heading")]

    @property
    def text(self) -> str:
        """Everything that is written on the page."""
        kinds = ("alert", "markdown", "text")
        return "\n".join(shown.element.body for kind in kinds for shown in self._all(kind))

    def usable(self, label: str) -> bool:
        """Whether there is such a button and it can be pressed."""
        return self._get("button", lambda proto: proto.label == label and not proto.disabled) is not None

    async def there(self, kind: str, label: str) -> _Shown:
        """A control, once it is there and can be used."""
        return await self.until(lambda: self._get(kind, lambda proto: label in proto.label and not proto.disabled))

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Whatever is true in the end; asked after each change of the page."""
        end = time.monotonic() + PATIENCE
        while True:
            if found := condition():
                return found
            problem = next((words for words in self.problems if words in self.text), None)
            assert problem is None, f"{problem}\n{self.text[-2000:]}"
            assert time.monotonic() < end, f"nothing happened:\n{self.text[-2000:]}"
            async with self._finished:
                try:
                    await asyncio.wait_for(self._finished.wait(), 1.0)
                except TimeoutError:
                    continue

    async def quiet(self) -> None:
        """Until the server has nothing more to say."""
        await asyncio.sleep(0.05)
        await self.until(lambda: not self._running)

    # How it is said to the server

    async def fetch(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """One request with this browser's cookie."""
        return await asyncio.to_thread(self._request, "GET", path, b"", {})

    async def put(self, path: str, name: str, content: bytes) -> int:
        """Send a file to an address for uploads; how the server answers."""
        mark = uuid.uuid4().hex
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}", "X-Xsrftoken": self.cookie}
        status, _, _ = await asyncio.to_thread(self._request, "PUT", path, body, headers)
        return status

    def _request(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        try:
            cookie = {"Cookie": f"{COOKIE}={self.cookie}"} if self.cookie else {}
            connection.request(method, path, body, {**cookie, **headers})
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    async def _change(self, shown: _Shown, **value: Any) -> None:
        await self._send(WidgetState(id=shown.element.id, **value), fragment=shown.fragment)
        await self.quiet()

    async def _send(self, *states: WidgetState, fragment: str = "", page: str = "", auto: bool = False) -> None:
        message = BackMsg()
        state = message.rerun_script
        # Until the server has begun another page, a browser is on the old one.
        state.query_string, state.page_script_hash = self._query, page or self._page_hash
        state.fragment_id, state.is_auto_rerun = fragment, auto
        kept = {each.id: each for each in states if each.WhichOneof("value") != "trigger_value"}
        self._values |= kept
        state.widget_states.widgets.extend(self._values.values())
        state.widget_states.widgets.extend(each for each in states if each.id not in kept)
        if not auto:
            self._running = True
        await self._give(message)

    async def _give(self, message: BackMsg) -> None:
        assert self._socket is not None
        await self._socket.send(message.SerializeToString())

    async def _read(self) -> None:
        assert self._socket is not None
        async for frame in self._socket:
            assert isinstance(frame, bytes)
            self.frames += 1
            self.seen |= set(self.canaries.findall(frame))
            message = ForwardMsg()
            message.ParseFromString(frame)
            self._take(message)
            if message.WhichOneof("type") in ("script_finished", "file_urls_response"):
                async with self._finished:
                    self._finished.notify_all()

    def _take(self, message: ForwardMsg) -> None:
        fragments = list(message.metadata.run.fragment_ids)
        match message.WhichOneof("type"):
            case "new_session":
                self._run, self._running = self._run + 1, True
                self.pages.append(message.new_session.page_script_hash)
                if not fragments:
                    self._page_hash = message.new_session.page_script_hash
                    self._stop_timers()
            case "delta":
                self._take_delta(message)
            case "page_info_changed":
                self._query = message.page_info_changed.query_string
            case "auto_rerun":
                self._start_timer(message.auto_rerun.fragment_id, message.auto_rerun.interval)
            case "stop_auto_rerun":
                for fragment in message.stop_auto_rerun.fragment_ids:
                    self._stop_timer(fragment)
            case "file_urls_response":
                self._urls.pop(message.file_urls_response.response_id).set_result(message.file_urls_response)
            case "script_finished":
                self._finish(message, fragments)

    def _take_delta(self, message: ForwardMsg) -> None:
        path, delta = tuple(message.metadata.delta_path), message.delta
        kind = delta.WhichOneof("type")
        if kind == "new_element":
            element = delta.new_element
            shown = getattr(element, element.WhichOneof("type"))
            if getattr(shown, "set_value", False):
                self._values.pop(shown.id, None)
        elif kind == "add_block":
            shown = delta.add_block
        else:
            return
        self._page[path] = _Shown(element=shown, run=self._run, fragment=delta.fragment_id)

    def _finish(self, message: ForwardMsg, fragments: list[str]) -> None:
        self._running = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
        if self._running:
            return
        stale = [
            path
            for path, shown in self._page.items()
            if shown.run < self._run and (not fragments or shown.fragment in fragments)
        ]
        for path in stale:
            del self._page[path]
        if not fragments:
            there = {getattr(shown.element, "id", None) for shown in self._page.values()}
            self._values = {name: state for name, state in self._values.items() if name in there}

    def _start_timer(self, fragment: str, interval: float) -> None:
        async def look() -> None:
            while True:
                await asyncio.sleep(interval)
                await self.ask(fragment)

        self._stop_timer(fragment)
        self._timers[fragment] = asyncio.create_task(look())

    def _stop_timer(self, fragment: str) -> None:
        timer = self._timers.pop(fragment, None)
        if timer is not None:
            timer.cancel()

    def _stop_timers(self) -> None:
        for fragment in list(self._timers):
            self._stop_timer(fragment)

    def _all(self, kind: str) -> list[_Shown]:
        return [shown for shown in self._page.values() if _kind(shown.element) == kind]

    def _get(self, kind: str, fits: Callable[[Any], bool]) -> _Shown | None:
        return next((shown for shown in self._all(kind) if fits(shown.element)), None)

    def _find(self, kind: str, fits: Callable[[Any], bool]) -> _Shown:
        found = self._get(kind, fits)
        assert found is not None, f"there is no such {kind}:\n{self.headings}"
        return found


def _kind(element: Any) -> str:
    name: str = element.DESCRIPTOR.name
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
