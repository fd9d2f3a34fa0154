# SPDX-License-Identifier: Apache-2.0
"""Finds the guards, which are marked where they stand in the sources, with comments of these forms:

    // guard(GROUP)                          the statement is taken away
    // guard(GROUP): without TEXT            TEXT is taken out of the statement
    // guard(GROUP): TEXT => NEW             NEW stands in the place of TEXT
    // guard(GROUP): => NEW                  NEW stands in the place of the statement
    // guard(GROUP): first NEW               NEW stands in front of the statement
    // guard(GROUP): after the next statement

With this change, a test of GROUP must fail. GROUP is a name in the file `groups`, or rows:LABEL: then
one test of each row in docs/conformance.md or docs/security.md that bears the label must fail.

After code, a mark is about the statement to which this code belongs; on a line of its own, about the
statement below. An `if` or a loop is one statement with all that depends on it, a function with its
body; the labels of a `case` stay. TEXT stands in the statement once, may run on into the next one,
and is compared without regard to white space; `condition` as TEXT means what stands in the
parentheses of an `if` or a `while`. A mark on a line of its own goes on in the lines below that begin
with // and three spaces or more.
"""
import os
import pathlib
import re
from dataclasses import dataclass

SKIPPED_FOLDERS = {".git", "build", "__pycache__"}
ROWS = "rows:"
ARROW = "=>"
SWAP = "after the next statement"
NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*"
MARK = re.compile(rf"// guard\(((?:{ROWS})?{NAME})\)(?:: (.+))?")
LIKE_A_MARK = re.compile(r"\bguard\s*\(|^/[/*]\W*(?:guard\b|guards:)")
CONTINUED = re.compile(r"// {3,}(\S.*)")
CONDITIONAL = ("if", "while")
SCOPES = ("namespace", "class", "struct", "union", "enum")

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<directive>^[ \t]*\#(?:[^\n\\/]|\\.|/(?![/*]))*)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=>|->\*|\.\.\.|<<=|>>=|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Token:
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Statement:
    """Tokens `first` to `last`, of which those before `own` are labels."""
    first: int
    own: int
    last: int


@dataclass(frozen=True)
class Block:
    """The tokens from `{` to `}`, and from where on a statement leads up to them."""
    head: int
    first: int
    last: int


@dataclass(frozen=True)
class Fault:
    text: str


@dataclass(frozen=True)
class Guard:
    file: str
    line: int
    group: str
    change: str  # what follows the group in the comment
    begin: int  # what is replaced, as a part of the file's text
    end: int
    replacement: str
    function: tuple | None  # where the body that all this stands in begins and ends, braces left out

    def __str__(self):
        return f"{self.file}:{self.line}: guard({self.group}){self.change and ': '}{self.change}"

    def switch_off(self, text):
        """The file's text without what is guarded."""
        return self.without(text, 0, len(text))

    def without(self, text, begin, end):
        """A part of the file's text without what is guarded in it."""
        return f"{text[begin:self.begin]} {self.replacement} {text[self.end:end]}"


def scan(text):
    """The tokens of a source, without comments and directives, and its comments."""
    tokens, comments = [], []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "comment":
            comments.append(Token(match[0], match.start(), match.end()))
        elif match.lastgroup not in ("space", "directive"):
            tokens.append(Token(match[0], match.start(), match.end()))
    return tokens, comments


def words(text):
    return [token.text for token in scan(text)[0]]


def opens_block(texts, start, at):
    """Whether the brace at `at`, in a statement that begins at `start`, encloses statements."""
    if at == start:
        return True
    before = at - 1
    while before > start and texts[before] in ("const", "mutable", "noexcept", "override", "final"):
        before -= 1
    if texts[before] in (")", "else", "do", "try"):
        return True
    if texts[before] == "]":  # of a lambda, unless it belongs to an array
        while texts[before] != "[":
            before -= 1
        return not re.fullmatch(r"\w+|[\])>]", texts[before - 1]) or texts[before - 1] == "return"
    while before > start and re.fullmatch(r"\w+|::|[<>*&,]", texts[before]):
        before -= 1
    if texts[before] == "->" and texts[before - 1] in (")", "mutable", "noexcept"):
        return True
    head = texts[start:at]
    if "(" in head and texts[at - 1] == "}":  # after the members that a constructor initializes
        return True
    return "enum" not in head and "=" not in head and "(" not in head and any(
        word in head for word in ("namespace", "class", "struct", "union", "extern"))


def structure(tokens):
    """All statements of a source and all blocks of statements, those inside others first."""
    texts = [token.text for token in tokens]
    found, blocks, open_blocks, depth, first, own = [], [], [], 0, 0, 0
    for at, text in enumerate(texts):
        following = texts[at + 1] if at + 1 < len(texts) else ""
        if text in ("(", "["):
            depth += 1
        elif text in (")", "]"):
            depth -= 1
        elif text == "{":
            block = opens_block(texts, own, at)
            open_blocks.append((block, depth, first, own, at))
            if block:
                depth, first, own = 0, at + 1, at + 1
            else:
                depth += 1
        elif text == "}" and open_blocks:
            block, depth, before, own_before, begin = open_blocks.pop()
            if block:
                blocks.append(Block(own_before, begin, at))
                first, own = before, own_before
                goes_on = following in ("else", "catch", ";", ",", ")", "(", ".") or (
                    texts[own] == "do" and following == "while")
                if depth == 0 and not goes_on:
                    found.append(Statement(first, own, at))
                    first = own = at + 1
        elif depth == 0 and text == ";":
            if following != "else":
                found.append(Statement(first, own, at))
                first = own = at + 1
        elif depth == 0 and text == ":" and (
                texts[own] in ("case", "default", "public", "protected", "private")):
            own = at + 1
    return found, blocks


def is_function(texts, block):
    """Whether a block that stands in no function is one's body."""
    head = texts[block.head:block.first]
    if head[:1] == ["template"]:
        depth, at = 1, 2
        while depth > 0:
            depth += {"<": 1, ">": -1, ">>": -2}.get(head[at], 0)
            at += 1
        head = head[at:]
    return "(" in head and not any(word in head for word in SCOPES)


def statement_at(found, at):
    """The smallest of the statements to which the token `at` belongs; None if there is none."""
    return min((one for one in found if one.first <= at <= one.last),
               key=lambda one: one.last - one.first, default=None)


def condition_of(texts, statement):
    """The first and the last token of an if's or a while's condition; None if it has none."""
    at = statement.own
    if texts[at] not in CONDITIONAL:
        return None
    at += 2 if texts[at + 1] == "(" else 3  # `if constexpr`
    first, depth = at, 1
    while depth != 0:
        depth += {"(": 1, ")": -1}.get(texts[at], 0)
        at += 1
    return first, at - 2


def find_once(texts, statement, wanted):
    """The first and the last of the tokens `wanted`, which begin in the statement; or a fault."""
    places = [at for at in range(statement.first, statement.last + 1)
              if texts[at:at + len(wanted)] == wanted]
    if len(places) != 1:
        return Fault(f"the text stands in the statement {len(places)} times, not once")
    return places[0], places[0] + len(wanted) - 1


def read_change(change):
    """What is replaced (empty: the whole statement), and by what; or a fault."""
    if not change:
        return "", ""
    if change.startswith("without "):
        return change.removeprefix("without "), ""
    parts = re.split(rf"(?:^|\s){ARROW}(?=\s|$)", change)
    if len(parts) != 2 or not parts[1].strip():
        return Fault(f"none of `without TEXT`, `TEXT {ARROW} NEW`, `first NEW`")
    return parts[0].strip(), parts[1].strip()


def find_text(texts, statement, wanted):
    """The first and the last token of what is replaced; or a fault."""
    if not wanted:
        return statement.own, statement.last
    if wanted == "condition":
        return condition_of(texts, statement) or Fault("the statement has no condition")
    return find_once(texts, statement, words(wanted))


class Source:
    """A source file whose comments are looked through."""

    def __init__(self, file, text):
        self.file = file
        self.text = text
        self.tokens, self.comments = scan(text)
        self.texts = [token.text for token in self.tokens]
        self.statements, blocks = structure(self.tokens)
        self.functions = self.outermost_functions(blocks)

    def outermost_functions(self, blocks):
        """Where the bodies of functions begin and end, braces left out."""
        found, last = [], -1
        for block in sorted(blocks, key=lambda block: block.first):
            if block.first > last and is_function(self.texts, block):
                last = block.last
                found.append((self.tokens[block.first].end, self.tokens[block.last].begin))
        return found

    def function_around(self, begin, end):
        return next((one for one in self.functions if one[0] <= begin and end <= one[1]), None)

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def before(self, comment):
        """What stands in front of a comment on its line."""
        return self.text[self.text.rfind("\n", 0, comment.begin) + 1:comment.begin].strip()

    def is_alone(self, comment):
        return not self.before(comment)

    def marks(self):
        """(comment, its text with the lines that continue it) of all that look like marks"""
        mark, whole, line = None, "", 0
        for comment in self.comments:
            here = self.line(comment.begin)
            continued = CONTINUED.fullmatch(comment.text)
            if mark and continued and self.is_alone(mark) and here == line + 1:
                whole, line = f"{whole} {continued[1]}", here
                continue
            if mark:
                yield mark, whole
            mark, whole, line = None, "", here
            if LIKE_A_MARK.search(comment.text):
                mark, whole = comment, comment.text.rstrip()
        if mark:
            yield mark, whole

    def statement_of(self, comment):
        """The statement that a mark is about; None if there is none."""
        after = next((at for at, token in enumerate(self.tokens) if token.begin > comment.begin),
                     len(self.tokens))
        if self.before(comment).startswith("#"):
            return None
        if not self.is_alone(comment):
            return statement_at(self.statements, after - 1)
        if after == len(self.tokens) or self.texts[after] in ("}", "else"):
            return None
        return statement_at(self.statements, after)

    def read_mark(self, comment, whole):
        """A guard; or a fault."""
        mark = MARK.fullmatch(whole)
        if not mark:
            return Fault("not `// guard(GROUP)` or `// guard(GROUP): CHANGE`")
        statement = self.statement_of(comment)
        if statement is None:
            return Fault("belongs to no statement")
        group, change = mark[1], mark[2] or ""
        place = self.find_change(statement, change)
        if isinstance(place, Fault):
            return place
        begin, end, replacement = place
        if words(self.text[begin:end]) == words(replacement):
            return Fault("changes nothing")
        return Guard(self.file, self.line(comment.begin), group, change, begin, end, replacement,
                     self.function_around(begin, end))

    def find_change(self, statement, change):
        """Where the text begins and ends that is replaced, and by what; or a fault."""
        if change == SWAP:
            return self.swap(statement)
        if change.startswith("first ") and ARROW not in change:
            begin = self.tokens[statement.own].begin
            return begin, begin, change.removeprefix("first ")
        read = read_change(change)
        if isinstance(read, Fault):
            return read
        place = find_text(self.texts, statement, read[0])
        if isinstance(place, Fault):
            return place
        return self.tokens[place[0]].begin, self.tokens[place[1]].end, read[1]

    def swap(self, statement):
        following = statement_at(self.statements, statement.last + 1)
        if following is None or following.first != statement.last + 1:
            return Fault("no statement follows")
        begin, end = self.tokens[statement.own].begin, self.tokens[statement.last].end
        next_begin, next_end = self.tokens[following.own].begin, self.tokens[following.last].end
        return begin, next_end, f"{self.text[next_begin:next_end]}\n{self.text[begin:end]}"


def read_source(file, text):
    """The guards that are marked in a source, and what is wrong with its marks."""
    if not re.search(r"\bguard", text):
        return [], []
    guards, faults, source = [], [], Source(file, text)
    for comment, whole in source.marks():
        guard = source.read_mark(comment, whole)
        if isinstance(guard, Fault):
            faults.append(f"{file}:{source.line(comment.begin)}: {whole}: {guard.text}")
        else:
            guards.append(guard)
    return guards, faults


def read_tree(root):
    """The guards that are marked in all sources below a folder, and what is wrong with the marks."""
    guards, faults = [], []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            if name.endswith((".h", ".cpp")):
                path = pathlib.Path(folder, name)
                found, wrong = read_source(path.relative_to(root).as_posix(), path.read_text())
                guards += found
                faults += wrong
    return guards, faults


def read_groups(listing):
    """{name: regular expression} of the file `groups`, and what is wrong with its lines."""
    groups, faults = {}, []
    for number, line in enumerate(listing.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        group = re.fullmatch(rf"({NAME}) = (\S.*)", line)
        if not group:
            faults.append(f"groups:{number}: not `name = regular expression`")
        elif group[1] in groups:
            faults.append(f"groups:{number}: {group[1]} stands there twice")
        else:
            groups[group[1]] = group[2]
    return groups, faults


def labels_of(guards):
    """The labels of rows that guards name."""
    return {guard.group.removeprefix(ROWS) for guard in guards if guard.group.startswith(ROWS)}
