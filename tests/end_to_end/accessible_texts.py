#!/usr/bin/python3
"""What a window of another program shows, as screen readers get it: by AT-SPI, over D-Bus.

    xvfb-run -a dbus-run-session -- accessible_texts.py SECONDS TEXT COMMAND...

Starts the command and prints its widgets, once one of them has TEXT, as JSON: [[ROLE, TEXT], ...].
Exit status 1 if none ever has, and 77 if the command has no widgets at all there.
Debian: python3-dbus at-spi2-core. The interfaces are those of at-spi2-core's xml/Accessible.xml.
"""

import json
import os
import subprocess
import sys
import time

import dbus

ACCESSIBLE = "org.a11y.atspi.Accessible"
PROPERTIES = "org.freedesktop.DBus.Properties"


def accessibility_bus() -> dbus.connection.Connection:
    session = dbus.SessionBus().get_object("org.a11y.Bus", "/org/a11y/bus")
    return dbus.bus.BusConnection(session.GetAddress(dbus_interface="org.a11y.Bus"))


def widgets(bus, name="org.a11y.atspi.Registry", path="/org/a11y/atspi/accessible/root"):
    """(role, text) of all that is in one, itself first."""
    widget = bus.get_object(name, path, introspect=False)
    yield (str(widget.GetRoleName(dbus_interface=ACCESSIBLE)),
           str(widget.Get(ACCESSIBLE, "Name", dbus_interface=PROPERTIES)))
    for child in widget.GetChildren(dbus_interface=ACCESSIBLE):
        yield from widgets(bus, *child)


def wait_for(bus, text, seconds) -> tuple[list, bool]:
    """What is shown, once text is; nothing if that takes too long. And whether any program was."""
    registered = False
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            shown = list(widgets(bus))
            registered |= any(role == "application" for role, _ in shown)
            if any(text == of for _, of in shown):
                return shown, True
        except dbus.DBusException:
            pass  # a widget has gone while it was asked
        time.sleep(0.2)
    return [], registered


def main():
    seconds, text, *command = sys.argv[1:]
    bus = accessibility_bus()
    deadline = time.monotonic() + float(seconds)
    # Qt 5 registers before it is connected, about every other time, and then never again
    # ("Error in contacting registry"). So the command is started anew, with more patience each time.
    # On some machines, when they are idle, it never wins.
    patience = 4.0
    ever_registered = False
    while time.monotonic() < deadline:
        viewer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"})
        try:
            shown, registered = wait_for(bus, text, patience)
            ever_registered |= registered
            if shown:
                print(json.dumps(shown))
                return
        finally:
            viewer.kill()
            viewer.wait()
        patience *= 1.3
    print(f"{text} does not appear", file=sys.stderr)
    sys.exit(1 if ever_registered else 77)


main()
