// Reports a view of this page to the beacon. It stores nothing in the browser.
(() => {
  "use strict";
  const { url, page } = document.currentScript.dataset;

  function report() {
    const campaign = [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("utm_"));
    const query = new URLSearchParams(campaign).toString();
    navigator.sendBeacon(url, new URLSearchParams({ page, referrer: document.referrer, query }));
  }

  // A page that the browser renders in advance has a view when a person opens it.
  if (document.prerendering) document.addEventListener("prerenderingchange", report, { once: true });
  else report();
})();
