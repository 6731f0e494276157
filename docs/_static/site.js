// A page that was opened from disk may not fetch others, so its search shows titles without extracts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
