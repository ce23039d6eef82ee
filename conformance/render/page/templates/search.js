// Searches the cases by words: what they are called, ask, say and expect, and orders what is found.

const SYNONYMS = {
  inplace: ["overwritten", "written"], variable: ["tensor"], gradient: ["grad"], vs: [], derivative: ["gradient"], error: ["raises"], exception: ["raises"],
  freeze: ["frozen", "requires_grad"], frozen: ["requires_grad"], copy: ["clone"], callback: ["hook"], order: ["before"], memory: ["freed", "lifetimes"], leak: ["freed"],
};
const STOP_WORDS = new Set("a an and are by do does for in is it not of on or the to versus vs what when why with".split(" "));
// How much a word tells that stands in each text of a case.
const WEIGHTS = { title: 8, id: 1, topic: 5, rules: 3, why: 2, text: 2 };
const OF_MESSAGE = 2;
const OF_PART = 0.4; // of a word
const OF_PLURAL = 0.9;
const OF_PAIR = 0.4; // what two words add that stand close to each other in what a case is called, as they were asked for
const OF_SYNONYM = 0.6;
const OF_QUOTE = 0.5; // what it adds that a case says or does just what was asked for, as its text has it
const OF_TIMES = 0.05; // what a search that stands in what a case does adds, each time
const MOST_TIMES = 6;
const OF_NAME = 4; // how much more a case counts whose id is what is asked for

/** @typedef {Record<keyof typeof WEIGHTS, string>} Texts */

/** @type {{own: Texts[], messages: string[]} | undefined} */
let searched;
/** @type {Promise<void> | undefined} */
let everything; // done when the texts of the cases are among what is searched
let isEverythingRead = false;

/** Return text in lower case with spaces for all that is no word, and one around it. @param {string} text */
function plainWords(text) {
  return ` ${text.toLowerCase().replace(/in[- ]place/g, "inplace").replace(/[^\p{L}\p{N}_]+/gu, " ").trim()} `;
}

/** Return the texts that are searched; they are made once. */
function searchTexts() {
  const rules = model.index.rules.map(([id, text]) => `${id} ${text}`);
  searched ??= {
    own: model.cases.map((item) => ({
      title: plainWords(item.title), id: plainWords(item.id), topic: plainWords(`${model.index.topics[item.topic]} ${item.file}`),
      rules: plainWords(item.rules.map((rule) => rules[rule]).join(" ")), why: "", text: "",
    })),
    messages: model.index.messages.map(plainWords),
  };
  return searched;
}

/** Add what the cases do and why, which stands in the parts of the page, to what is searched. */
function searchEverything() {
  everything ??= addTexts();
  return everything;
}

async function addTexts() {
  const { own } = searchTexts();
  for (const item of model.cases) {
    const details = await detailsOf(item).catch(() => null); // what is damaged is not found
    if (details) [own[item.number].why, own[item.number].text] = [plainWords(details.why), plainWords(details.yaml)];
  }
  isEverythingRead = true;
  if (view.q) drawMatrix();
}

const MOST_RELATED = 6;
const OF_RULE = 0.2; // what a rule that two cases cite says of how alike they are, beside the part of words that they share
const ALIKE = 0.4; // at least, to be related
const OF_TWIN = 1; // what it says that two programs differ in a statement or two
const MOST_LOOKED_AT = 60; // cases whose statements are compared

/**
 * Return the cases that are most like another one in what they do, of those that cite its rules or use its words, with what
 * they have in common with it.
 * @param {Case} item
 * @returns {Promise<{other: Case, why: Child[]}[]>}
 */
async function relatedTo(item) {
  await searchEverything();
  const texts = searchTexts().own.map(({ text }) => text);
  const words = new Set(texts[item.number].split(" "));
  const rules = new Set(item.rules);
  const alike = model.cases.map((other) => {
    if (other === item) return 0;
    const theirs = new Set(texts[other.number].split(" "));
    const shared = [...theirs].reduce((count, word) => count + Number(words.has(word)), 0);
    return shared / (words.size + theirs.size - shared) + OF_RULE * other.rules.filter((rule) => rules.has(rule)).length;
  });
  const nearest = model.cases.filter((other) => alike[other.number] >= ALIKE).toSorted((one, other) => alike[other.number] - alike[one.number]);
  const own = statementsOf(await detailsOf(item));
  const found = await Promise.all(nearest.slice(0, MOST_LOOKED_AT).map(async (other) => {
    const instead = differing(own, statementsOf(await detailsOf(other)));
    const cited = other.rules.filter((rule) => rules.has(rule)).map((rule) => model.index.rules[rule][0]);
    const twin = instead?.length === 0 ? ["the same program"] : instead && ["the same program, but for ", ...instead.flatMap((text, place) => [place > 0 && " and ", h("code", {}, text)])];
    return { other, why: twin ?? [cited.length > 0 && `also checks ${cited.join(", ")}`], weight: alike[other.number] + (twin ? OF_TWIN : 0) };
  }));
  return found.toSorted((one, other) => other.weight - one.weight).slice(0, MOST_RELATED);
}

/** Return the statements of a case, without what it expects of them. @param {Details} details */
function statementsOf(details) {
  const lines = details.yaml.split("\n");
  const steps = details.steps.map((start, number) => dedented(lines.slice(start, details.steps[number + 1] ?? lines.length)).replace(/^- /, ""));
  return steps.filter((text) => !text.startsWith("expect:")).map((text) => text.replace(/^do: /, "").replace(/\n *(raises|warns):.*$/s, "").trim());
}

/** Return the statements of a program that stand in the place of others in another one, or null where these are many. @param {string[]} own @param {string[]} theirs */
function differing(own, theirs) {
  const found = theirs.filter((text, place) => text !== own[place]);
  return own.length === theirs.length && own.length > found.length && found.length <= 2 ? found : null;
}

/** Return the words of a search, and other ways to say each. @param {string} asked @returns {string[][]} */
function wordsAsked(asked) {
  const words = plainWords(asked).split(" ").filter(Boolean);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length ? telling : words).map((word) => {
    const parts = word.split("_").filter((part) => part && !STOP_WORDS.has(part)).join(" ");
    return [...new Set([word, word.replaceAll("_", " "), parts, ...(Object.hasOwn(SYNONYMS, word) ? SYNONYMS[/** @type {keyof typeof SYNONYMS} */ (word)] : [])])].filter(Boolean);
  });
}

/** Return how much a word tells of a text. @param {string} text @param {string} word */
function matchOf(text, word) {
  if (!text.includes(word)) return 0; // which is so of nearly all
  if (text.includes(` ${word} `)) return 1;
  return text.includes(` ${word}s `) ? OF_PLURAL : OF_PART;
}

/** Return how much the best of some ways to say a word tells of a text. @param {string} text @param {string[]} ways */
function bestMatchOf(text, ways) {
  return ways.reduce((most, way, place) => Math.max(most, matchOf(text, way) * (place ? OF_SYNONYM : 1)), 0);
}

/** Return a pattern of two words, in either order, with at most two others between them. @param {string} one @param {string} other */
function besideEachOther(one, other) {
  const [first, second] = [`${one}s?`, `${other}s?`];
  return new RegExp(` (?:${first}(?: [^ ]+){0,2} ${second}|${second}(?: [^ ]+){0,2} ${first}) `, "u");
}

/** Return the place of one case of each entry: those that an entry was written out to have nearly all words in common. */
function entriesOf() {
  const places = new Map(model.cases.map((item, place) => [`${item.file}:${item.line}`, place]));
  return [...places.values()];
}

/**
 * Return how well each case fits what is asked; 0 where one of the words is nowhere in it.
 * @param {string} asked
 * @param {Track[][]} tracks of which messages are searched
 */
function scoresOf(asked, tracks) {
  const { own, messages } = searchTexts();
  const scores = new Float64Array(own.length);
  if (!plainWords(asked).trim()) return scores.fill(asked.trim() ? 0 : 1);
  const fields = /** @type {(keyof typeof WEIGHTS)[]} */ (Object.keys(WEIGHTS));
  const phrase = plainWords(asked).trim();
  const telling = wordsAsked(asked).map(([word]) => word);
  const pairs = telling.slice(1).map((word, place) => besideEachOther(telling[place], word));
  const entries = entriesOf();
  const messagesOf = tracks.flat().map((track) => track.message);
  const all = wordsAsked(asked).map((ways) => {
    const inMessage = messages.map((text) => bestMatchOf(text, ways));
    const found = own.map((texts, item) => {
      const ofTexts = fields.reduce((sum, field) => sum + WEIGHTS[field] * bestMatchOf(texts[field], ways), 0);
      const ofMessages = messagesOf.reduce((most, numbers) => Math.max(most, inMessage[numbers[item]] ?? 0), 0);
      return ofTexts + OF_MESSAGE * ofMessages;
    });
    const rarity = Math.log(1 + entries.length / (1 + entries.filter((place) => found[place]).length));
    return found.map((score) => score * rarity);
  });
  own.forEach((texts, item) => {
    if (all.some((found) => found[item] === 0)) return;
    const sum = all.reduce((total, found) => total + found[item], 0);
    const beside = pairs.filter((pair) => pair.test(texts.title) || pair.test(texts.id)).length;
    const times = texts.text.split(phrase).length - 1;
    const isName = texts.id.trim() === phrase ? OF_NAME : 1;
    scores[item] = (isName * sum * (1 + OF_PAIR * beside + (pairs.length > 0 && times > 0 ? OF_QUOTE : 0) + OF_TIMES * Math.min(times, MOST_TIMES))) / Math.log(16 + texts.title.split(" ").length);
  });
  return scores;
}
