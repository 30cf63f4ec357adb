import { asFields } from './fields.ts'
import { type Mention, type Mentions, stem, wordStemsOf, meaningfulStems } from './mentions.ts'
import type { Tool } from './prompt.ts'
import { mentionsRequiredArguments, argumentKindOf, wordsOfName } from './argument-kinds.ts'
import { keywords } from './topic.ts'

/**
 * How well a tool fits a message: what the message matches (the name of the tool, or its description), the
 * share (0 to 1) of words that match, and the position in the message in characters.
 */
export interface ToolMatch {
  readonly tool: Tool
  readonly by: 'its name' | 'words of its name' | 'its description'
  readonly share: number
  readonly at: number
}

interface Verb {
  /** Stems of the words with which a message asks for the action of this verb, such as `show` for reading. */
  readonly requestStems: ReadonlySet<string>
  /** Stems of the words in the names of tools that do the action of this verb. */
  readonly nameStems: ReadonlySet<string>
  /** Whether tools that do the action change something or run code. */
  readonly changes: boolean
}

function verb(requestWords: string, nameWords: string, changes = false): Verb {
  const stems = (text: string): Set<string> => new Set(text.split(' ').map(stem))
  return { requestStems: stems(requestWords), nameStems: stems(nameWords), changes }
}

export const READ_VERB = verb(
  'read open view show print display cat summarize summarise say says contain contains',
  'read view open cat',
)
export const RUN_VERB = verb('run execute list', 'bash shell run exec execute terminal', true)
const VERBS: readonly Verb[] = [
  READ_VERB,
  verb('list ls', 'list ls dir'),
  verb('search grep', 'search grep'),
  verb('find locate glob', 'find glob'),
  verb('fetch download browse visit open', 'fetch webfetch browse'),
  verb('write create save', 'write create save', true),
  verb('edit replace change', 'edit replace', true),
  RUN_VERB,
]

/** Words that the message need not contain if it contains the tool's verb: `file` in `read_file`. */
const NEUTRAL = new Set(
  (
    'file files text content contents code web http url page shell command bash terminal string str local ' +
    'directory dir folder path paths many search grep glob'
  )
    .split(' ')
    .map(stem),
)
/** Words that usually refer to the conversation itself, and so do not indicate a tool. */
const EVERYDAY = new Set(
  'file name text code task agent skill tool message plan goal todo set'.split(' ').map(stem),
)
/** Maximum number of tools at which one matching word of a description suffices. */
const MAX_FEW_TOOLS = 4

/**
 * Rates how well a tool fits a message; undefined if it does not fit, or if the message lacks its arguments.
 */
export function matchTool(tool: Tool, mentions: Mentions, fewTools: boolean): ToolMatch | undefined {
  const named = namePosition(tool.name, mentions)
  if (named !== undefined) return { tool, by: 'its name', share: 1, at: named }
  const words: Stems = { all: wordStemsOf(mentions), meaningful: meaningfulStems(mentions) }
  return byWords(tool, mentions, words, fewTools) ?? byDescription(tool, mentions, words, fewTools)
}

/** Stems of the words of a message: all of them, and those that carry meaning. */
interface Stems {
  readonly all: readonly Mention[]
  readonly meaningful: readonly Mention[]
}

/** Whether there are so few tools that one matching word of a description suffices. */
export function isShortToolList(tools: readonly Tool[]): boolean {
  return tools.length <= MAX_FEW_TOOLS
}

/**
 * Finds the tool's name in the message. A name with punctuation or a capital letter suffices; for a plain
 * word such as `task`, the message must contain the word "tool".
 */
function namePosition(name: string, { words, quoted }: Mentions): number | undefined {
  if (name === '') return undefined
  const inQuotes = quoted.find(({ text }) => text === name)
  if (inQuotes) return inQuotes.at
  const place = words.findIndex(({ text }) => text === name)
  if (place >= 0 && /_|\p{Ll}\p{Lu}/u.test(name)) return words[place]?.at
  const lower = words.map(({ text }) => text.toLowerCase())
  const found = lower.findIndex((word, at) => {
    if (word !== name.toLowerCase()) return false
    const before = lower[at - 1] === 'the' ? lower[at - 2] : lower[at - 1]
    return lower[at + 1] === 'tool' || /^(?:use|using|call|invoke)$/.test(before ?? '')
  })
  return words[found]?.at
}

function byWords(tool: Tool, mentions: Mentions, words: Stems, fewTools: boolean): ToolMatch | undefined {
  const parts = wordsOfName(tool.name).map(stem)
  const verbs = VERBS.filter(({ nameStems }) => parts.some((part) => nameStems.has(part)))
  const others = parts.filter((part) => !verbs.some(({ nameStems }) => nameStems.has(part)))
  const things = new Set(others.filter((part) => !EVERYDAY.has(part) && part.length > 2))
  const matches = words.meaningful.filter(({ text }) => things.has(text))
  const unmentioned = others.filter(
    (part) => !NEUTRAL.has(part) && matches.every(({ text }) => text !== part),
  )
  const position = verbs.length > 0 ? requestPosition(verbs, mentions, words, isDelicate(tool)) : matches[0]
  const isClear = fewTools || matches.length > 0
  if (!position || (verbs.length > 0 && unmentioned.length > 0 && !fewTools)) return undefined
  if (!mentionsRequiredArguments(tool, mentions, isClear)) return undefined
  // A shell can do most things, so a specific tool is preferred to it.
  const purpose = verbs.includes(RUN_VERB) ? 0.5 : 1
  return { tool, by: 'words of its name', share: purpose / (1 + unmentioned.length), at: position.at }
}

/**
 * Finds the position at which the message asks for one of the verbs. For changing files or running code, the
 * request must be explicit.
 */
function requestPosition(
  verbs: readonly Verb[],
  mentions: Mentions,
  { all }: Stems,
  delicate: boolean,
): Mention | undefined {
  return verbs
    .map(({ requestStems, changes }) => {
      const at = all.find(({ text }) => requestStems.has(text))
      return at && delicate && changes && mentions.quoted.length === 0 && !isNearBeginning(mentions, at.at)
        ? undefined
        : at
    })
    .find((at) => at !== undefined)
}

/** Whether a tool works on files or runs commands. */
function isDelicate({ schema }: Tool): boolean {
  return Object.entries(asFields(schema.properties)).some(([name, member]) =>
    ['path', 'command'].includes(argumentKindOf(name, asFields(member))),
  )
}

function byDescription(
  tool: Tool,
  mentions: Mentions,
  words: Stems,
  fewTools: boolean,
): ToolMatch | undefined {
  const [sentence = ''] = tool.description.slice(0, 400).split(/[.\n]/)
  const described = keywords(sentence).map(stem)
  const verbs = VERBS.filter(({ nameStems }) => nameStems.has(described[0] ?? ''))
  if (isDelicate(tool) && !verbs.some(({ changes }) => !changes)) return undefined
  const doing = requestPosition(verbs, mentions, words, true)
  const matches = words.meaningful.filter(({ text }) => text.length > 2 && described.includes(text))
  const enough = fewTools ? matches.length > 0 : matches.length > 1 && doing !== undefined
  const at = (doing ?? matches[0])?.at
  if (!enough || at === undefined || !mentionsRequiredArguments(tool, mentions, fewTools)) return undefined
  return { tool, by: 'its description', share: matches.length / 100 + (doing ? 1 : 0), at }
}

/** Whether a position is at the beginning of the message; polite words before it do not count. */
function isNearBeginning({ words }: Mentions, at: number): boolean {
  const before = words.filter((word) => word.at < at).map(({ text }) => text.toLowerCase())
  return before.every((word) =>
    /^(?:please|can|could|would|you|now|then|and|go|i|want|to|us|me|let|s)$/.test(word),
  )
}
