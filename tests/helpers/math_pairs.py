r"""Pairs of answers and whether they are the same: the contract of `same_answer`, read also by the cross-check."""

# ruff: noqa: RUF001 - answers use the signs people use
SAME = r"""
\frac{1}{2} | \dfrac{1}{2}
\frac12 | \frac{1}{2}
\tfrac{3}{4} | 0.75
\frac{1}{2} | .5
0.50 | 1/2
-\frac{1}{2} | \frac{-1}{2}
-\frac12 | \frac{1}{-2}
3\frac{1}{2} | \frac{7}{2}
1\frac{4}{5} | 1.8
0.\overline{3} | \frac{1}{3}
0.1\overline{6} | \frac{1}{6}
\frac{\frac{1}{2}}{3} | \frac{1}{6}
\frac{6}{4} | \frac{3}{2}
5 | 5.
5 | +5
-5 | −5
007 | 7
1,234 | 1234
1{,}234 | 1,234
10,\!000 | 10000
1\,000\,000 | 1,000,000
3\times10^5 | 300000
2.5 \cdot 10^{-3} | 0.0025
\$5.00 | 5
\$5 | 5\text{ dollars}
50\% | 50
50\% | 50\text{ percent}
90^\circ | 90
90^{\circ} | 90°
90\text{ degrees} | 90^\circ
5\text{ cm} | 5
12\text{ inches} | 12 inches
5\text{ cm}^2 | 5
21\pi\text{ cm}^3 | 21\pi
\text{Evelyn} | evelyn
\text{Evelyn} | \mathrm{Evelyn}
\text{(C)} | C
(C) | C
\textbf{odd} | \text{odd}
\text{odd} | odd
x=5 | 5
x = \frac{1}{2} | 0.5
y=2x+3 | 2x+3
f(x)=x+1 | x+1
x\in[-2,7] | [-2,7]
2x+3 | 3+2x
x^2 - 2x + 1 | 1 + x^{2} - 2x
11\sqrt2-3 | -3+11\sqrt{2}
6 - 5i | 6-5i
\sqrt2 | \sqrt{2}
sqrt(2) | \sqrt{2}
√2 | \sqrt 2
\sqrt[3]{2} | \sqrt[3] 2
2\cdot\sqrt{3} | 2\sqrt3
\frac{\sqrt{3}}{2} | \sqrt3/2
\frac{2\pi}{3} | \frac{2}{3}\pi
-\frac{\sqrt{3}}{2} | \frac{-\sqrt{3}}{2}
-\frac{2x}{3} | \frac{2x}{-3}
2\pi/3 | \frac{2\pi}{3}
\frac{x}{2} | \frac12x
(x+1)/2 | \frac{x+1}{2}
x^{2} | x^2
x_1 | x_{1}
1011_2 | 1011_{2}
\left( 0, \infty \right) | (0,\infty)
(-\infty,2)\cup(3,5] | (3,5]\cup(-\infty, 2)
(1, \frac{1}{2}) | (1.0, 0.5)
\left(5,\frac{\pi}{2}\right) | (5, \pi/2)
1,2 | 2, 1
\{1,2\} | \{2,1\}
\{1,2\} | 1, 2
1 \text{ and } 2 | 1,2
x=1,x=2 | 1,2
\frac{3}{2}, -1 | -1, 3/2
\begin{pmatrix}1\\2\end{pmatrix} | \begin{bmatrix} 1 \\ 2 \end{bmatrix}
\begin{pmatrix}1&0\\0&\frac12\end{pmatrix} | \begin{pmatrix} 1 & 0 \\ 0 & 0.5 \\ \end{pmatrix}
a\leq b | a\le b
\pm 2 | \pm2
\displaystyle \frac{7}{8} | 7/8
\boxed{4} | 4
$5$ | 5
4! | 4!
\binom52 | \binom{5}{2}
"""

DIFFERENT = r"""
5 | 6
5 | -5
0.33 | \frac{1}{3}
0.333333333 | \frac13
50\% | 0.5
2^{10} | 1024
2^10 | 2^{10}
\sqrt{4} | 2
2*3 | 6
2\cdot3 | 23
3+4 | 7
4! | 24
\binom52 | 10
\frac{1}{0} | 0
(x+1)^2 | x^2+2x+1
(1,2) | (2,1)
(1,2) | 1,2
[0,1] | (0,1)
[0,1) | [0,1]
(0,1)\cup(2,3) | (0,1)
\{1,2\} | \{1,2,3\}
1,1 | 1
x=1,y=2 | x=2,y=1
x<1 | x>1
x\le1 | x<1
a-b | b-a
x+1 | x-1
2^x | 2x
x2 | 2x
\sqrt{2}3 | \sqrt{23}
\frac{1}{2}^2 | \frac{1}{4}
3\frac{1}{2} | \frac{3}{2}
1011_2 | 1011
1011_2 | 1011_3
1,23 | 123
x | X
\text{even} | \text{odd}
\begin{pmatrix}1\\2\end{pmatrix} | \begin{pmatrix}1&2\end{pmatrix}
\begin{vmatrix}1&2\\3&4\end{vmatrix} | \begin{pmatrix}1&2\\3&4\end{pmatrix}
\pm2 | 2
\infty | -\infty
5 | 5 or 6
5 | 5\text{ or 6}
\frac{-x+1}{2} | -\frac{x+1}{2}
5 | 5x
5 | five
1e3 | 1000
"""


def pairs(block: str) -> list[tuple[str, str]]:
    """The lines of a block, split at the bar."""
    return [tuple(line.split(" | ")) for line in block.strip().splitlines()]  # type: ignore[misc]
