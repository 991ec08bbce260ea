// Returns what is wrong with the page as it is drawn: too little contrast, or wider than the window.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map(); // colors by their names
  const rgba = (color) => {
    if (!known.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      known.set(color, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(color);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((one) => one / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = rgba(getComputedStyle(one).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const wrong = [];
  for (const element of document.querySelectorAll(".rk-page *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, option")) continue;
    const found = contrast(rgba(getComputedStyle(element).color), behind(element));
    if (found < 4.5) wrong.push(`${element.tagName} "${element.textContent.trim().slice(0, 30)}" has ${found.toFixed(2)}`);
  }
  for (const drawn of document.querySelectorAll(".rk-page .rk-chart:not(.rk-line-chart) rect, .rk-page .rk-line-chart path, .rk-page .rk-part")) {
    const { fill, stroke } = getComputedStyle(drawn);
    const found = contrast(rgba(fill === "none" ? stroke : fill), behind(drawn.closest("svg").parentElement));
    if (found < 3) wrong.push(`a ${drawn.tagName} has ${found.toFixed(2)}`);
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`${root.scrollWidth} px in a window of ${root.clientWidth}`);
  return wrong;
}
