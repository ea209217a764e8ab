"use strict";

// All parts of the page hang on this one name, because scripts of a page opened from disk cannot
// be modules. A backend is where answers go: each file of backends/ adds a function here that makes
// { place, asItHappens, join, save, complete }, and may have isOpen.
window.contstim = { backends: {} };

/** A text as HTML that shows it: nothing in it is taken for a tag, an attribute or an entity. */
contstim.escape = (text) =>
  String(text).replace(/[&<>"']/g, (sign) => `&#${sign.codePointAt(0)};`);
