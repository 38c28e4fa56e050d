# cython: language_level=3, boundscheck=True
"""Names of the mentions in a document: each mention joins the name with the highest score or begins a new name.

Called by ``herdner.ner.identity``, which describes the model. A score is the sum of the weights of binary features; a
feature is an index of `FEATURES`. All objects are Python objects that only this module can change. The loops hold the
GIL, because they compare strings.
"""

cimport cython
from libc.stdint cimport uint32_t

cdef enum:
    MOST_CANDIDATES = 8  # names per word and stage
    MOST_FORMS = 6  # forms per name that are compared
    BEFORE = 20  # characters in front of a mention in which a title is searched
    NEAR = 400  # characters
    FAR = 3000
    SHARE_OF_PRONOUNS = 2  # a gender needs twice as many pronouns as the other
    LONGEST_PRONOUN = 7  # letters
    LONGEST_REACH = 150  # characters between the name of a person and a pronoun
    SHORTEST_NAME = 3  # letters of a nickname, or of a name with nicknames
    MOST_SIMPLE_WORDS = 4
    LONGEST_ACRONYM = 8
    MOST_INITIALS = 6
    LENGTH_OF_BEGINNING = 3
    MOST_FEATURES = 24  # features of a pair of a mention and a name

# Matches of two forms, sorted from the closest to none.
cdef enum:
    SAME_WORDS, LAST_WORD, FIRST_WORD, ACRONYM, BEGINNING, END, HAS_LAST_WORD, HAS_FIRST_WORD, ALL_WORDS_AND_ENDS
    LAST_AND_SIMILAR_FIRST, ALL_WORDS, SIMILAR_FIRST, INNER_WORD, HAS_INNER_WORD, SIMILAR_WORDS
    LAST_AND_OTHER_FIRST, FIRST_AND_OTHER_LAST, OTHER_WORDS, NO_MATCH, N_MATCHES

MATCHES = (
    "same words", "last word", "first word", "acronym", "beginning", "end", "has last word", "has first word",
    "all words and same ends", "last word and similar first word", "all words", "similar to first word", "inner word",
    "has inner word", "similar words", "last word and other first word", "first word and other last word",
    "other words", "",
)

# Features behind those of the closest match of a person and of another name.
cdef enum:
    FIRST_CONFLICT = 2 * N_MATCHES
    FIRST_NEW = FIRST_CONFLICT + N_MATCHES - LAST_AND_OTHER_FIRST
    SAME_LABEL = FIRST_NEW + 12
    OTHER_LABEL, OTHER_LABEL_SAME_WORDS, PERSON_AND_OTHER, SAME_GENDER, OTHER_GENDER, SAME_PRONOUNS, OTHER_PRONOUNS
    SAME_TITLE, OTHER_TITLE, OTHER_TITLE_SAME_GENDER, MENTION_HAS_TITLE, WORD_HAS_TITLE, NAME_HAS_TITLE
    NAME_OF_WORD_HAS_TITLE, SIMILAR_FIRST_NAME, OTHER_FIRST_NAME, SAME_NUMBERS, OTHER_NUMBERS, PERSON_AND_GROUP
    OTHER_SINGLE_WORD, NOT_YET_MENTIONED, IS_NEAR, IS_FAR, AT_MEDIUM_DISTANCE, NEAREST_NAME, ONE_RIVAL, SEVERAL_RIVALS
    FREQUENT_NAME, WORD_BEFORE_NAME, FIRST_WORD_BEFORE_NAME, SAME_NAME_GENDER, OTHER_NAME_GENDER
    IS_BEGINNING, IS_NICKNAME, HAS_SAME_STEM, OTHER_ADDRESS, OTHER_TITLE_OF_WORD
    OTHER_KNOWN_FIRST_NAME
    FIRST_ADDRESS
    FIRST_NAME_ADDRESS = FIRST_ADDRESS + 8
    N_FEATURES = FIRST_NAME_ADDRESS + 4

ADDRESSES = ("", "Mr", "Mrs", "Miss")  # forms of address; the first is none of them

FEATURES = (
    *[f"{match or 'no word'} ({kind})" for kind in ("person", "name") for match in MATCHES],
    *[f"also {match or 'no word'}" for match in MATCHES[LAST_AND_OTHER_FIRST:]],
    *[f"new {kind}{title}, {n_words}" for kind in ("person", "name") for title in ("", ", title")
      for n_words in ("one word", "two words", "many words")],
    "same label", "other label", "other label, same words", "person and other", "same gender", "other gender",
    "same pronouns", "other pronouns", "same title", "other title", "other title, same gender",
    "only mention has title", "only mention has title, single word", "only name has title",
    "only name has title, single word", "similar first name", "other first name", "same numbers", "other numbers",
    "person and group", "other single word", "not yet mentioned", "near", "far", "at medium distance", "nearest name",
    "one rival", "several rivals", "frequent name", "word of a person, not yet mentioned",
    "first word of a person, not yet mentioned", "same gender of first names", "other gender of first names",
    "beginning of first name", "nickname", "same stem", "other form of address",
    "other title, single word", "other known first name",
    *[f"single word with {address or 'other title'}, {kind}" for kind in ("no first name", "first name")
      for address in ADDRESSES],
    *[f"single word, name with {address or 'other title'}" for address in ADDRESSES],
)
if len(FEATURES) != N_FEATURES or len(MATCHES) != N_MATCHES:
    raise ImportError("the tables of features and matches do not have the lengths of their enumerations")

cdef enum:
    MALE = 1
    FEMALE = 2


@cython.final
cdef class NameWeights:
    """Weight of each feature: ``weights`` maps names of features to numbers; others have the weight 0."""

    cdef double values[N_FEATURES]

    def __cinit__(self, weights not None):
        cdef Py_ssize_t i
        for i in range(N_FEATURES):
            self.values[i] = weights.get(FEATURES[i], 0.0)


@cython.final
cdef class MentionForm:
    """Text of a mention, split into titles and words.

    Attributes:
        words: Words of the name without titles, articles and designators, case-folded and without accents.
        label: Label of the mention.
        is_person: The label is that of a person.
        title: Last title in front of the name, case-folded; empty if there is none.
        gender: "m" or "f" if a title determines it, else empty.
        numbers: Numbers in the text.
        is_group: The mention names several persons.
        initials: Initials of the capitalised words; empty if there is one word only.
        acronym: The only word without full stops if it is in capitals, else empty.
        is_full: The name has several words.
        content: Words without small words such as "of".
        keys: Keys of the form in the index of names.
        nicknames: Nicknames of the first word, and first names with this nickname.

    The arguments ``address``, ``name_gender`` and ``has_known_first_name`` are the form of address in `ADDRESSES`, the
    gender of the first name ("m", "f" or empty), and whether the first of several words is a known first name.
    """

    cdef readonly tuple words, keys
    cdef readonly str label, title, gender, initials, acronym
    cdef readonly frozenset numbers, content, nicknames
    cdef readonly bint is_person, is_group, is_full
    cdef frozenset all_words
    cdef int sex, name_sex, address  # `address` is an index of ADDRESSES
    cdef bint has_known_first_name

    def __cinit__(self, tuple words not None, str label not None, bint is_person, str title not None,
                  str gender not None, frozenset numbers not None, bint is_group, str initials not None,
                  str acronym not None, frozenset content not None, tuple keys not None, frozenset nicknames not None,
                  str address not None, str name_gender not None, bint has_known_first_name):
        if not words or not all([type(word) is str for word in (*words, *keys)]):
            raise ValueError("a form has at least one word, and its words and keys are strings")
        self.words, self.label, self.is_person, self.title, self.gender = words, label, is_person, title, gender
        self.numbers, self.is_group, self.initials, self.acronym = numbers, is_group, initials, acronym
        self.is_full = len(words) > 1
        self.content, self.keys, self.nicknames, self.all_words = content, keys, nicknames, frozenset(words)
        self.address, self.has_known_first_name = ADDRESSES.index(address), has_known_first_name
        self.sex, self.name_sex = sex_of(gender), sex_of(name_gender)


@cython.final
cdef class SimpleNames:
    """Parser of names that consist of up to four capitalised English words, which are most names.

    It returns the same forms as ``herdner.ner.identity.forms``, in a fraction of the time.

    Args:
        special: Words that need the general parser, in lower case: titles, designators, small words and abbreviations.
        titles: Title, gender and form of address of each word that is a title.
        nicknames: Nicknames of each first name.
        genders: Gender of each first name.
    """

    cdef frozenset special
    cdef dict titles, nicknames, genders

    def __cinit__(self, frozenset special not None, dict titles not None, dict nicknames not None,
                  dict genders not None):
        self.special, self.titles, self.nicknames, self.genders = special, dict(titles), dict(nicknames), dict(genders)

    def parse(self, str text not None, str label not None, str before not None):
        """Return the form of a name, or None if the name needs the general parser.

        ``before``: the word in front of the name in lower case, which is used if it is a title.
        """
        cdef list tokens = text.split(), words = [], keys
        cdef str token, word, first, initials = "", acronym = ""
        cdef str title = "", gender = "", address = "", name_gender = ""
        cdef bint is_person = is_person_label(label)
        cdef frozenset content, similar
        if not 1 <= len(tokens) <= MOST_SIMPLE_WORDS or not text.isascii():
            return None
        for token in tokens:
            word = token.lower()
            if not token.isalpha() or not token[0].isupper() or word in self.special:
                return None
            words.append(word)
            initials += word[0]
        first = words[0]
        keys = list(dict.fromkeys(words))
        if len(words) > 1:
            if len(words) <= MOST_INITIALS:
                keys.append("acronym " + initials)
        else:
            initials = ""
            if 1 < len(first) <= LONGEST_ACRONYM and text.strip().isupper():
                acronym = first
                keys.append("acronym " + acronym)
        similar = self.nicknames.get(first, NOTHING)
        if is_person:
            if before in self.titles:
                title, gender, address = self.titles[before]
            if len(words) > 1:
                name_gender = self.genders.get(first, "")
            if len(first) >= LENGTH_OF_BEGINNING:
                keys.append("beginning " + first[:LENGTH_OF_BEGINNING])
                keys.append("nickname " + first)
                for word in similar:
                    keys.append("nickname " + word)
        content = frozenset(words)
        return MentionForm(
            tuple(words), label, is_person, title, gender, NOTHING, False, initials, acronym, content, tuple(keys),
            similar, address, name_gender,
            is_person and len(words) > 1 and (len(name_gender) > 0 or len(similar) > 0),
        )


NOTHING = frozenset()


cdef int sex_of(str gender) noexcept:
    return MALE if gender == "m" else FEMALE if gender == "f" else 0


cdef MentionForm as_form(object value):
    if type(value) is not MentionForm:
        raise TypeError(f"forms must be objects of the class MentionForm, got {type(value).__name__}")
    return <MentionForm> value


PUNCTUATION = ".,;:!?\"“”()[]_*'’‘`"  # at the ends of words


def read_forms(str text not None, tuple entities not None, parse not None, frozenset titles not None):
    """Return the form of each entity; entities with the same text, label and title share one object: list[MentionForm].

    ``entities`` have the attributes ``start``, ``end`` and ``label``; ``parse`` returns the form of a text, a label and
    the word in front of the text if it is one of ``titles``, else the empty string.
    """
    cdef dict forms = {}
    cdef list parsed = []
    cdef Py_ssize_t start, end
    cdef tuple key
    cdef object form
    cdef str label, before
    for entity in entities:
        start, end, label = entity.start, entity.end, entity.label
        if not 0 <= start <= end <= len(text) or label is None:
            raise ValueError(f"an entity at {start}..{end} with the label {label!r} is not in the text")
        before = word_before(text, start) if is_person_label(label) else ""
        if before:
            before = before.strip(PUNCTUATION).casefold()
            if before not in titles:
                before = ""
        key = text[start:end], label, before
        form = forms.get(key)
        if form is None:
            form = as_form(parse(key[0], label, before))
            form = forms[key] = forms.setdefault((key[0], label, (<MentionForm> form).title), form)
        parsed.append(form)
    return parsed


def short_form_candidates(tokens not None, spans not None, tuple entities not None, str person not None,
                          str organisation not None):
    """Return the mentions and words whose labels a full name may change: (full, short, pairs, surnames, places).

    ``full`` maps a word and a label to the index of the first full name with this label, ``person`` or
    ``organisation``. The word is the last token of a person, and the first token of an organisation, case-folded.
    ``short`` are the mentions of one token that are this word of full names with one other label. ``pairs`` are the
    organisations of two tokens whose first token is this word of an organisation, and whose last token is in lower
    case. ``surnames`` maps the last word of each person to the index of the full name, and ``places`` are the tokens
    outside all spans that equal such a word.

    ``spans`` are tuples (start, end, label) in the order of the text, ``entities`` the same mentions.
    """
    cdef list words = list(tokens), single = [], double = [], short = [], pairs = [], places = []
    cdef dict full = {}, surnames = {}, names
    cdef Py_ssize_t i, k = 0, t, start, end, n_spans
    cdef list all_spans = [tuple(each) for each in spans]
    cdef str label, word
    n_spans = len(all_spans)
    if len(entities) != n_spans:
        raise ValueError(f"each span needs an entity, got {n_spans} spans and {len(entities)} entities")
    for i in range(n_spans):
        start, end, label = <tuple> all_spans[i]
        if end - start == 1:
            single.append(i)
            continue
        if label != person and label != organisation:
            continue
        if end - start == 2 and label == organisation:
            double.append(i)
        word = (<str?> words[end - 1 if label == person else start]).casefold()
        names = full.setdefault(word, {})
        if label not in names:
            names[label] = i
    if not full:
        return full, short, pairs, surnames, places
    for i in single:
        start, end, label = <tuple> all_spans[i]
        names = full.get((<str?> words[start]).casefold())
        if names is not None and len(names) == 1 and label not in names:
            short.append(i)
    for i in double:
        start, end, label = <tuple> all_spans[i]
        word = <str?> words[end - 1]
        if word.islower() and word.isalpha() and organisation in full.get((<str?> words[start]).casefold(), ()):
            pairs.append(i)
    for names in full.values():
        if person in names:
            word = entities[<Py_ssize_t> names[person]].text
            surnames[word.split()[-1] if word.strip() else word] = names[person]
    if surnames:
        for t in range(len(words)):
            if words[t] in surnames:
                while k < n_spans and <Py_ssize_t> (<tuple> all_spans[k])[1] <= t:
                    k += 1
                if k == n_spans or t < <Py_ssize_t> (<tuple> all_spans[k])[0]:
                    places.append(t)
    return full, short, pairs, surnames, places


cpdef bint is_person_label(str label) except -1:
    """Return True if a label, such as "PER" or "person", is that of persons."""
    return label is not None and (label == "PER" or label[:3].casefold() == "per")


cdef str word_before(str text, Py_ssize_t position):
    """Return the last word of the `BEFORE` characters in front of a position."""
    cdef Py_ssize_t first = max(position - BEFORE, 0), start, end = position
    while end > first and text[end - 1].isspace():
        end -= 1
    start = end
    while start > first and not text[start - 1].isspace():
        start -= 1
    return text[start:end]


# Relations of two first names.
cdef enum:
    OTHER_NAME, EQUAL_NAME, BEGINNING_OF_NAME, NICKNAME, SAME_STEM


cdef int similarity(str a, frozenset nicknames_of_a, str b, frozenset nicknames_of_b) except -1:
    """Return the relation of two first names: one may be an initial, a beginning or a nickname of the other."""
    cdef str stem
    if a == b:
        return EQUAL_NAME
    if len(a) > len(b):
        a, b, nicknames_of_a = b, a, nicknames_of_b
    if b == a + "s" or b == a + "es":  # "the Blaines" are a family
        return OTHER_NAME
    if len(a) >= SHORTEST_NAME and b in nicknames_of_a:
        return NICKNAME
    if b.startswith(a):
        return BEGINNING_OF_NAME
    stem = a.rstrip("iey")
    if len(stem) >= SHORTEST_NAME and len(stem) != len(a) and b.startswith(stem):
        return SAME_STEM
    return OTHER_NAME


cdef int similarity_of_first_words(MentionForm a, MentionForm b) except -1:
    return similarity(a.words[0], a.nicknames, b.words[0], b.nicknames)


def match(MentionForm a not None, MentionForm b not None):
    """Return the element of `MATCHES` that describes how the words of two mentions match most closely.

    "last word" means that ``a`` is the last word of ``b``; "has last word" is the reverse.
    """
    return MATCHES[closest_match(a, b)]


cdef int closest_match(MentionForm a, MentionForm b) except -1:
    cdef int reverse
    if a is b or a.words == b.words:
        return SAME_WORDS
    if not a.is_full and not b.is_full:
        return SIMILAR_WORDS if a.is_person and b.is_person and similarity_of_first_words(a, b) else NO_MATCH
    if not a.is_full:
        return match_word(a, b)
    if not b.is_full:
        reverse = match_word(b, a)
        if reverse == LAST_WORD:
            return HAS_LAST_WORD
        if reverse == FIRST_WORD:
            return HAS_FIRST_WORD
        return HAS_INNER_WORD if reverse == INNER_WORD else reverse
    return match_words(a, b) if len(a.words) <= len(b.words) else match_words(b, a)


cdef int match_word(MentionForm short, MentionForm full) except -1:
    """Return the match of a form of one word and a form of several words."""
    cdef str word = short.words[0]
    if word == <str> full.words[len(full.words) - 1]:
        return LAST_WORD
    if word == <str> full.words[0]:
        return FIRST_WORD
    if word in full.all_words:
        return INNER_WORD
    if short.acronym and short.acronym == full.initials:
        return ACRONYM
    if short.is_person and full.is_person and len(word) >= SHORTEST_NAME and similarity_of_first_words(short, full):
        return SIMILAR_FIRST
    return NO_MATCH


cdef int match_words(MentionForm short, MentionForm full) except -1:
    """Return the match of two forms of several words, the shorter one first."""
    cdef Py_ssize_t n = len(short.words), most = len(full.words)
    cdef bint same_first = <str> short.words[0] == <str> full.words[0]
    cdef bint same_last = <str> short.words[n - 1] == <str> full.words[most - 1]
    if same_first and full.words[:n] == short.words:
        return BEGINNING
    if same_last and full.words[most - n:] == short.words:
        return END
    if short.all_words <= full.all_words:
        return ALL_WORDS_AND_ENDS if same_first and same_last else ALL_WORDS
    if same_last:
        return LAST_AND_SIMILAR_FIRST if similarity_of_first_words(short, full) else LAST_AND_OTHER_FIRST
    if same_first:
        return FIRST_AND_OTHER_LAST
    return NO_MATCH if short.content.isdisjoint(full.all_words) else OTHER_WORDS


@cython.final
@cython.no_gc  # no cycle contains it: only this module sees its attributes
cdef class NameCluster:
    """Mentions of one name, while a document is clustered. Most names have one form, so most containers are None."""

    cdef list forms  # first six distinct forms
    cdef set all_forms  # None if there is one form only
    cdef set keys  # keys in the index; None if they are those of the only form
    cdef str label  # label of the first form
    cdef set labels  # None if there is one label only
    cdef set titles
    cdef bint has_person
    cdef int genders  # genders that titles determine: MALE, FEMALE, their sum or 0
    cdef int name_genders  # genders of the first names of persons: MALE, FEMALE, their sum or 0
    cdef bint has_known_first_name
    cdef int addresses  # bits of the indices of ADDRESSES
    cdef dict first_names  # nicknames by the first words of persons' names with several words
    cdef Py_ssize_t n_mentions
    cdef dict compared  # `WordFeatures` of the forms compared since the last new form, None for those without a match
    cdef list positions  # offsets of the mentions of several words
    cdef Py_ssize_t next_position, latest
    cdef Py_ssize_t search  # last search that found the name

    def __cinit__(self):
        self.latest = self.search = -1

    cdef bint add(self, MentionForm form, list positions) except -1:
        """Add mentions that have the same form; return True if the name did not have this form yet."""
        self.n_mentions += len(positions)
        if form.is_full:
            self.positions = positions if self.positions is None else self.positions + positions
        self.latest = positions[0]
        if self.forms is None:
            self.forms, self.label = [form], form.label
        elif not self.add_form(form):
            return False
        self.compared = None
        self.has_person |= form.is_person
        self.genders |= form.sex
        self.name_genders |= form.name_sex
        self.has_known_first_name |= form.has_known_first_name
        if form.address:
            self.addresses |= 1 << form.address
        if form.title:
            if self.titles is None:
                self.titles = set()
            self.titles.add(form.title)
        if form.is_person and form.is_full:
            if self.first_names is None:
                self.first_names = {}
            if len(self.first_names) < MOST_FORMS:
                self.first_names[form.words[0]] = form.nicknames
        return True

    cdef bint add_form(self, MentionForm form) except -1:
        """Add a form to a name that has mentions; return False if it has this form already."""
        cdef MentionForm each
        if self.all_forms is None:
            if form is self.forms[0]:
                return False
            self.all_forms = {self.forms[0]}
        elif form in self.all_forms:
            return False
        self.all_forms.add(form)
        if not self.has_label(form.label):
            self.labels = {self.label, form.label} if self.labels is None else self.labels | {form.label}
        if len(self.forms) < MOST_FORMS:
            for each in self.forms:
                if each.words == form.words:
                    return True
            self.forms.append(form)
        return True

    cdef bint has_label(self, str label) except -1:
        return label == self.label if self.labels is None else label in self.labels

    cdef int sort(self) except -1:
        """Sort the positions, after the mentions of several words have been added."""
        self.positions.sort()
        self.latest = -1
        return 0

    cdef Py_ssize_t position_before(self, Py_ssize_t position, bint is_sorted) except? -2:
        """Return the offset of the last known mention before ``position``, or -1. Positions never decrease."""
        cdef Py_ssize_t before = self.latest if self.latest < position else -1
        if is_sorted and self.positions is not None:
            while self.next_position < len(self.positions) and <object> self.positions[self.next_position] < position:
                self.next_position += 1
            if self.next_position:
                before = max(before, <Py_ssize_t> self.positions[self.next_position - 1])
        return before


@cython.final
@cython.no_gc  # it refers to a name only
@cython.auto_pickle(False)
cdef class Posting:
    """Name in the index, with the offset of the first mention that has the key."""

    cdef Py_ssize_t position
    cdef NameCluster name


cdef struct FeatureList:
    int items[MOST_FEATURES]
    int n


cdef inline int push(FeatureList* features, int feature) except -1:
    if features.n == MOST_FEATURES:
        raise OverflowError(f"a pair has at most {MOST_FEATURES} features")
    features.items[features.n] = feature
    features.n += 1
    return 0


@cython.final
@cython.auto_pickle(False)
cdef class WordFeatures:
    """Features of a pair of a mention and a name that depend on words, labels and genders only."""

    cdef FeatureList all
    cdef bint has_other_word  # a feature behind those that depend on positions
    cdef bint is_word_of_person, is_first_word  # features of words in front of the name
    cdef double score  # sum of the weights

    cdef int push(self, int feature) except -1:
        return push(&self.all, feature)


@cython.final
cdef class Clustering:
    """Names of the mentions in one document; `cluster_mentions` describes the arguments."""

    cdef dict index  # a `Posting` or a list of postings, sorted by position, for each key
    cdef str text
    cdef list forms, ends
    cdef object choose
    cdef NameWeights weights  # None if a function chooses the names
    cdef dict pronouns  # computed on first use
    cdef bint is_sorted
    cdef Py_ssize_t n_searches

    def __cinit__(self, str text, list forms, list ends, choose):
        self.index, self.text, self.forms, self.ends, self.choose = {}, text, forms, ends, choose
        self.weights = <NameWeights> choose if type(choose) is NameWeights else None

    cdef NameCluster assign(self, MentionForm form, list mentions, list positions):
        """Add mentions with the same form to the best name or to a new one, and return this name."""
        cdef Py_ssize_t position = positions[mentions[0]]
        cdef list candidates = [], words = []
        cdef NameCluster name
        self.find_candidates(form, position, candidates, words)
        if self.weights is not None:
            name = self.best(form, position, candidates, words)
        else:
            rows = [[FEATURES[new_feature(form)]]] if candidates else []
            self.add_rows(position, candidates, words, rows)
            chosen = self.choose(mentions[0], list(candidates), rows)
            if type(chosen) is not NameCluster:
                raise TypeError(f"`choose` must return a NameCluster, got {type(chosen).__name__}")
            name = <NameCluster> chosen
        if name is None:
            name = NameCluster()
        if name.add(form, [positions[mention] for mention in mentions] if len(mentions) > 1 else [position]):
            self.add_to_index(form, name, position)
        return name

    cdef int find_candidates(self, MentionForm form, Py_ssize_t position, list candidates, list words) except -1:
        """Append the names that share a key with a mention and match it, and their features.

        These are names that begin before the mention and a few later names.
        """
        cdef str key
        cdef object found
        cdef list postings
        cdef Py_ssize_t i, end
        self.n_searches += 1
        for key in form.keys:
            found = self.index.get(key)
            if found is None:
                continue
            if type(found) is Posting:
                self.consider(form, <Posting> found, candidates, words)
                continue
            postings = <list> found
            end = min(first_at(postings, position) + MOST_CANDIDATES // 4, len(postings))
            for i in range(max(end - MOST_CANDIDATES, 0), end):
                self.consider(form, <Posting> postings[i], candidates, words)
        return 0

    cdef int consider(self, MentionForm form, Posting posting, list candidates, list words) except -1:
        """Append a name that this search did not find before to the candidates if it matches a mention."""
        cdef NameCluster name = posting.name
        if name.search == self.n_searches:
            return 0
        name.search = self.n_searches
        if name.compared is not None and form in name.compared:
            features = name.compared[form]
        else:
            features = self.compare(form, name)
            if name.compared is None:
                name.compared = {form: features}
            else:
                name.compared[form] = features
        if features is not None:
            candidates.append(name)
            words.append(features)
        return 0

    cdef int add_to_index(self, MentionForm form, NameCluster name, Py_ssize_t position) except -1:
        """Add a name to the index under the keys of one of its forms."""
        cdef Posting posting = Posting.__new__(Posting)
        cdef str key
        cdef list postings
        posting.name, posting.position = name, position
        if name.all_forms is not None and name.keys is None:
            name.keys = set((<MentionForm> name.forms[0]).keys)
        for key in form.keys:
            if name.keys is not None:
                if key in name.keys:
                    continue
                name.keys.add(key)
            found = self.index.get(key)
            if found is None:
                self.index[key] = posting
                continue
            if type(found) is Posting:
                postings = self.index[key] = [found]
            else:
                postings = <list> found
            if (<Posting> postings[len(postings) - 1]).position <= position:
                postings.append(posting)
            else:
                postings.insert(first_at(postings, position), posting)
        return 0

    cdef NameCluster best(self, MentionForm form, Py_ssize_t position, list candidates, list words):
        """Return the name with the highest score, or None if a new name has the highest one."""
        cdef NameCluster name, best = None
        cdef WordFeatures features
        cdef FeatureList more
        cdef int k
        cdef Py_ssize_t i, n_rivals = len(candidates) - 1, latest = self.latest(candidates, position)
        cdef double score, highest = self.weights.values[new_feature(form)]
        for i in range(len(candidates)):
            name, features = <NameCluster> candidates[i], <WordFeatures> words[i]
            position_features(name, features, position, self.is_sorted, latest, n_rivals, &more)
            score = features.score
            for k in range(more.n):
                score += self.weights.values[more.items[k]]
            if score > highest:
                best, highest = name, score
        return best

    cdef int add_rows(self, Py_ssize_t position, list candidates, list words, list rows) except -1:
        """Append the names of the features of each candidate to ``rows``."""
        cdef WordFeatures features
        cdef FeatureList more
        cdef int k
        cdef Py_ssize_t i, n_rivals = len(candidates) - 1, latest = self.latest(candidates, position)
        for i in range(len(candidates)):
            features = <WordFeatures> words[i]
            position_features(candidates[i], features, position, self.is_sorted, latest, n_rivals, &more)
            rows.append([FEATURES[features.all.items[k]] for k in range(features.all.n)]
                        + [FEATURES[more.items[k]] for k in range(more.n)])
        return 0

    cdef Py_ssize_t latest(self, list candidates, Py_ssize_t position) except? -2:
        """Return the offset of the last mention of any candidate before ``position``, or -1."""
        cdef Py_ssize_t latest = -1
        for name in candidates:
            latest = max(latest, (<NameCluster> name).position_before(position, self.is_sorted))
        return latest

    cdef WordFeatures compare(self, MentionForm form, NameCluster name):
        """Return the features that depend on the form of a mention and the distinct forms of a name.

        None if no form of the name matches.
        """
        cdef WordFeatures features
        cdef MentionForm other
        cdef uint32_t matches = 0
        cdef int best = 0, each
        cdef bint has_numbers = bool(form.numbers), same_numbers = False, is_group = False, has_other_word = False
        for other in name.forms:
            matches |= <uint32_t> 1 << closest_match(form, other)
            has_numbers |= bool(other.numbers)
            same_numbers |= form.numbers == other.numbers
            is_group |= other.is_group
            has_other_word |= not other.is_full and other.is_person == form.is_person and other.words != form.words
        while best < NO_MATCH and not matches >> best & 1:
            best += 1
        if best == NO_MATCH:
            return None
        features = WordFeatures.__new__(WordFeatures)
        features.push(best if form.is_person else N_MATCHES + best)
        for each in range(LAST_AND_OTHER_FIRST, N_MATCHES):
            if matches >> each & 1:
                features.push(FIRST_CONFLICT + each - LAST_AND_OTHER_FIRST)
        push_label(features, form, name, best)
        self.push_gender(features, form, name)
        if form.is_person:
            push_title(features, form, name)
            push_first_name(features, form, name)
        if has_numbers:
            features.push(SAME_NUMBERS if same_numbers else OTHER_NUMBERS)
        if form.is_group != is_group:
            features.push(PERSON_AND_GROUP)
        features.has_other_word = best != SAME_WORDS and not form.is_full and has_other_word
        features.is_word_of_person = form.is_person and not form.is_full
        features.is_first_word = best == FIRST_WORD
        if self.weights is not None:
            for each in range(features.all.n):
                features.score += self.weights.values[features.all.items[each]]
        return features

    cdef int push_gender(self, WordFeatures features, MentionForm form, NameCluster name) except -1:
        cdef MentionForm each
        cdef Py_ssize_t male = 0, female = 0
        cdef int own = form.sex, other
        if own and name.genders:
            return features.push(SAME_GENDER if own & name.genders else OTHER_GENDER)
        if not form.is_person:
            return 0
        other = name.genders if name.genders else name.name_genders
        if (own or form.name_sex) and other:
            return features.push(SAME_NAME_GENDER if (own or form.name_sex) & other else OTHER_NAME_GENDER)
        if not own:
            self.count_pronouns(form, &male, &female)
            own = gender_of_pronouns(male, female)
        if not own:
            return 0
        other = name.genders
        if other != MALE and other != FEMALE:
            male = female = 0
            for each in name.forms:
                self.count_pronouns(each, &male, &female)
            other = gender_of_pronouns(male, female)
        if other:
            features.push(SAME_PRONOUNS if own == other else OTHER_PRONOUNS)
        return 0

    cdef int count_pronouns(self, MentionForm form, Py_ssize_t* male, Py_ssize_t* female) except -1:
        """Add the numbers of pronouns behind the mentions with a form to ``male`` and ``female``."""
        if self.pronouns is None:
            self.pronouns = find_pronouns(self.text, self.forms, self.ends)
        counts = self.pronouns.get(form)
        if counts is not None:
            male[0] += <Py_ssize_t> (<list> counts)[0]
            female[0] += <Py_ssize_t> (<list> counts)[1]
        return 0


MALE_ENDINGS = frozenset(("e", "is", "im", "imself"))
FEMALE_ENDINGS = frozenset(("er", "ers", "he", "erself"))


@cython.boundscheck(False)
@cython.wraparound(False)
cdef dict find_pronouns(str text, list forms, list ends):
    """Return the numbers of male and female pronouns between mentions of a person and the next mention of a person.

    Pronouns far behind the mention do not count. The result has a list of two numbers for each form with pronouns.
    """
    cdef dict counts = {}
    cdef list people = [mention for mention in range(len(forms)) if as_form(forms[mention]).is_person]
    cdef Py_ssize_t k, i, end, begin, stop, n = len(text), n_people = len(people)
    cdef Py_UCS4 letter
    cdef bint is_male
    cdef str rest
    for k in range(n_people):
        begin = min(<Py_ssize_t> ends[<Py_ssize_t> people[k]], n)
        stop = min(begin + LONGEST_REACH, n)
        if k + 1 < n_people:
            stop = min(stop, <Py_ssize_t> ends[<Py_ssize_t> people[k + 1]])
        for i in range(max(begin, 1), stop):
            letter = text[i]
            if letter not in u"hsHS" or not text[i - 1].isspace():
                continue
            end = i + 1
            while end < n and end - i <= LONGEST_PRONOUN and (text[end].isalnum() or text[end] == u"_"):
                end += 1
            rest = text[i + 1:end]
            is_male = rest in MALE_ENDINGS
            if is_male or rest in FEMALE_ENDINGS:
                pair = counts.setdefault(forms[<Py_ssize_t> people[k]], [0, 0])
                pair[0 if is_male else 1] += 1
    return counts


cdef int position_features(NameCluster name, WordFeatures words, Py_ssize_t position, bint is_sorted, Py_ssize_t latest,
                           Py_ssize_t n_rivals, FeatureList* features) except -1:
    """Fill ``features`` with the features of a pair that depend on positions and numbers."""
    cdef Py_ssize_t before = name.position_before(position, is_sorted)
    features.n = 0
    if before < 0:
        push(features, NOT_YET_MENTIONED)
        if words.is_word_of_person:
            push(features, FIRST_WORD_BEFORE_NAME if words.is_first_word else WORD_BEFORE_NAME)
    else:
        push(features, IS_NEAR if position - before < NEAR else IS_FAR if position - before >= FAR
             else AT_MEDIUM_DISTANCE)
        if before == latest:
            push(features, NEAREST_NAME)
    if n_rivals:
        push(features, ONE_RIVAL if n_rivals == 1 else SEVERAL_RIVALS)
    if name.n_mentions > 3:
        push(features, FREQUENT_NAME)
    if words.has_other_word:
        push(features, OTHER_SINGLE_WORD)
    return 0


cdef int new_feature(MentionForm form) noexcept:
    """Return the feature of the decision that a mention is the first one of a name."""
    cdef int n_words = min(len(form.words), 3)
    return FIRST_NEW + (0 if form.is_person else 6) + (3 if form.title else 0) + n_words - 1


cdef int push_label(WordFeatures features, MentionForm form, NameCluster name, int best) except -1:
    if name.has_label(form.label):
        return features.push(SAME_LABEL)
    features.push(OTHER_LABEL_SAME_WORDS if best == SAME_WORDS else OTHER_LABEL)
    if form.is_person != name.has_person:
        features.push(PERSON_AND_OTHER)
    return 0


cdef int push_title(WordFeatures features, MentionForm form, NameCluster name) except -1:
    cdef int address
    if form.title and name.titles:
        if form.title in name.titles or form.address and name.addresses >> form.address & 1:
            return features.push(SAME_TITLE)
        if form.address and name.addresses:
            features.push(OTHER_ADDRESS)
        if not form.is_full:
            features.push(OTHER_TITLE_OF_WORD)
        return features.push(OTHER_TITLE_SAME_GENDER if form.sex & name.genders else OTHER_TITLE)
    if form.title:
        if form.is_full:
            return features.push(MENTION_HAS_TITLE)
        features.push(WORD_HAS_TITLE)
        return features.push(FIRST_ADDRESS + form.address + (4 if name.first_names else 0))
    if name.titles and form.is_full:
        return features.push(NAME_HAS_TITLE)
    if name.titles:
        features.push(NAME_OF_WORD_HAS_TITLE)
        address = 0
        while address < 3 and not name.addresses >> address & 1:
            address += 1
        return features.push(FIRST_NAME_ADDRESS + (address if name.addresses else 0))
    return 0


cdef int push_first_name(WordFeatures features, MentionForm form, NameCluster name) except -1:
    cdef int kind = OTHER_NAME
    if not name.first_names:
        return 0
    for first, nicknames in name.first_names.items():
        kind = similarity(form.words[0], form.nicknames, first, nicknames)
        if kind != OTHER_NAME:
            break
    if kind > EQUAL_NAME:
        features.push(IS_BEGINNING + kind - BEGINNING_OF_NAME)
    if not form.is_full:
        return 0
    if kind != OTHER_NAME:
        return features.push(SIMILAR_FIRST_NAME)
    if form.has_known_first_name and name.has_known_first_name:
        features.push(OTHER_KNOWN_FIRST_NAME)
    return features.push(OTHER_FIRST_NAME)


cdef int gender_of_pronouns(Py_ssize_t male, Py_ssize_t female) noexcept:
    """Return the gender of most pronouns, or 0."""
    if male >= max(1, SHARE_OF_PRONOUNS * female):
        return MALE
    return FEMALE if female >= max(1, SHARE_OF_PRONOUNS * male) else 0


cdef Py_ssize_t first_at(list postings, Py_ssize_t position) except -1:
    """Return the index of the first posting that is not in front of a position."""
    cdef Py_ssize_t low = 0, high = len(postings), middle
    while low < high:
        middle = (low + high) // 2
        if (<Posting> postings[middle]).position < position:
            low = middle + 1
        else:
            high = middle
    return low


def cluster_mentions(str text not None, tuple entities not None, list forms not None, choose not None):
    """Assign the mentions of a document to names: list[int], numbered from 0 in the order of first mentions.

    ``entities``: the mentions in the order of the text, with the attributes ``start`` and ``end``. ``forms``: the form
    of each mention, as `read_forms` returns them. ``choose``: a `NameWeights`, or a function that returns the name of a
    mention, possibly a new `NameCluster`. Its arguments are the index of the mention, the names to which it may belong,
    and the names of the features of a new name and of each of these names; no features without such names.
    """
    cdef list own_forms = list(forms)  # attributes of the entities may run any code
    cdef Py_ssize_t n = len(own_forms), i, position, before = 0
    cdef list names = [None] * n, starts = [], ends = [], mentions
    cdef dict full = {}, ids = {}
    cdef MentionForm form
    cdef object name
    if len(entities) != n:
        raise ValueError(f"there are {n} forms and {len(entities)} entities; the numbers must agree")
    for i in range(n):
        form, position = as_form(own_forms[i]), entities[i].start
        if position < before:
            raise ValueError(f"entities must be in the order of the text, but {position} follows {before}")
        before = position
        starts.append(position)
        ends.append(entities[i].end)
        if form.is_full:
            mentions = full.get(form)
            if mentions is None:
                full[form] = [i]
            else:
                mentions.append(i)
    cdef Clustering clustering = Clustering(text, own_forms, ends, choose)
    for form, mentions in full.items():
        name = clustering.assign(form, mentions, starts)
        for i in mentions:
            names[i] = name
    for name in dict.fromkeys(names):
        if name is not None:
            (<NameCluster> name).sort()
    clustering.is_sorted = True
    for i in range(n):
        if names[i] is None:
            names[i] = clustering.assign(as_form(clustering.forms[i]), [i], starts)
    return [ids.setdefault(name, len(ids)) for name in names]
