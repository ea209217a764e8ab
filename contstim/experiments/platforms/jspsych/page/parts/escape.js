"use strict";

// All parts of the page are properties of this object, because scripts of a page that is opened from
// disk cannot be modules. A backend stores answers. Each *_backend.js adds a function that returns { place
// (see keeping.js), asItHappens (whether each answer is sent at once), join, save, complete }, and possibly
// isOpen, isPreview, parameters and group.
window.contstim = { backends: {} };

/** Escape a text for HTML: no part of it is read as a tag, an attribute or an entity. */
contstim.escape = (text) =>
  String(text).replace(/[&<>"']/g, (sign) => `&#${sign.codePointAt(0)};`);
