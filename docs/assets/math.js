// Typesets what pymdownx.arithmatex marked as mathematics, with the KaTeX of assets/katex.
const macros = {
  "\\kl": "D_{\\mathrm{KL}}",
};

const typeset = () => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    renderMathInElement(element, {
      delimiters: [
        { left: "\\(", right: "\\)", display: false },
        { left: "\\[", right: "\\]", display: true },
      ],
      macros,
      throwOnError: false,
    });
  }
};

document.addEventListener("DOMContentLoaded", typeset);
