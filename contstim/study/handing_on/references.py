"""The works that a methods section cites, each where what it is about was done."""

from __future__ import annotations

REFERENCES = {
    "Benjamini & Hochberg, 1995": "Benjamini, Y., & Hochberg, Y. (1995). Controlling the false "
    "discovery rate: A practical and powerful approach to multiple testing. Journal of the Royal "
    "Statistical Society: Series B, 57(1), 289-300.",
    "Chen & Goodman, 1999": "Chen, S. F., & Goodman, J. (1999). An empirical study of smoothing "
    "techniques for language modeling. Computer Speech & Language, 13(4), 359-394. "
    "https://doi.org/10.1006/csla.1999.0128",
    "Efron, 1979": "Efron, B. (1979). Bootstrap methods: Another look at the jackknife. The Annals "
    "of Statistics, 7(1), 1-26.",
    "Golan et al., 2023": "Golan, T., Siegelman, M., Kriegeskorte, N., & Baldassano, C. (2023). "
    "Testing the limits of natural language models for predicting human language judgements. "
    "Nature Machine Intelligence, 5, 952-964. https://doi.org/10.1038/s42256-023-00718-1",
    "Heafield et al., 2013": "Heafield, K., Pouzyrevsky, I., Clark, J. H., & Koehn, P. (2013). "
    "Scalable modified Kneser-Ney language model estimation. Proceedings of the 51st Annual "
    "Meeting of the Association for Computational Linguistics, 690-696.",
    "Kauf & Ivanova, 2023": "Kauf, C., & Ivanova, A. (2023). A better way to do masked language "
    "model scoring. Proceedings of the 61st Annual Meeting of the Association for Computational "
    "Linguistics (Volume 2: Short Papers), 925-935.",
    "Pauls & Klein, 2012": "Pauls, A., & Klein, D. (2012). Large-scale syntactic language modeling "
    "with treelets. Proceedings of the 50th Annual Meeting of the Association for Computational "
    "Linguistics, 959-968.",
    "Perron & Furnon": "Perron, L., & Furnon, V. OR-Tools{or-tools}. Google. "
    "https://developers.google.com/optimization/",
    "Holm, 1979": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics, 6(2), 65-70.",
    "Huangfu & Hall, 2018": "Huangfu, Q., & Hall, J. A. J. (2018). Parallelizing the dual revised "
    "simplex method. Mathematical Programming Computation, 10(1), 119-142.",
    "Salazar et al., 2020": "Salazar, J., Liang, D., Nguyen, T. Q., & Kirchhoff, K. (2020). Masked "
    "language model scoring. Proceedings of the 58th Annual Meeting of the Association for "
    "Computational Linguistics, 2699-2712.",
    "Schuirmann, 1987": "Schuirmann, D. J. (1987). A comparison of the two one-sided tests "
    "procedure and the power approach for assessing the equivalence of average bioavailability. "
    "Journal of Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.",
    "Schütt et al., 2023": "Schütt, H. H., Kipnis, A. D., Diedrichsen, J., & Kriegeskorte, N. "
    "(2023). Statistical inference on representational geometries. eLife, 12, e82566.",
    "van Heuven et al., 2014": "van Heuven, W. J. B., Mandera, P., Keuleers, E., & Brysbaert, M. "
    "(2014). SUBTLEX-UK: A new and improved word frequency database for British English. "
    "Quarterly Journal of Experimental Psychology, 67(6), 1176-1190.",
    "Wilcoxon, 1945": "Wilcoxon, F. (1945). Individual comparisons by ranking methods. Biometrics "
    "Bulletin, 1(6), 80-83.",
}
"""Each work by the words that cite it; `{or-tools}` is the version that was used."""


def works_in(text: str, or_tools: str = "") -> list[str]:
    """The works that a text cites, as `Golan et al., 2023` or `Golan et al. (2023)`.

    Args:
        text: in Markdown.
        or_tools: the version of that program; empty where it is not known.
    """
    plain, works = text.replace("\\", ""), []
    for work, reference in REFERENCES.items():
        authors, _, year = work.rpartition(", ")
        if work in plain or f"{authors} ({year})" in plain:
            version = f" (version {or_tools})" if or_tools else ""
            works.append(reference.replace("{or-tools}", version))
    return sorted(works, key=str.casefold)
