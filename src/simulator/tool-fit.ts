import { type Fields, fields, list, string } from './fields.ts'
import { type Mention, type Mentions, stem, stemsOf, tellingStems } from './mentions.ts'
import type { Tool } from './prompt.ts'
import { needOf, wordsOfName } from './tool-needs.ts'
import { keywords } from './topic.ts'

/** How well a tool suits a message: the kind of evidence, how much of it, and where in the message it stands. */
export interface Fit {
  readonly tool: Tool
  readonly by: 'its name' | 'words of its name' | 'its description'
  readonly share: number
  readonly at: number
}

interface Verb {
  /** Stems with which a message asks for it. */
  readonly asked: ReadonlySet<string>
  /** Stems by which tools are named for it. */
  readonly named: ReadonlySet<string>
  /** Where a tool of the kind changes something or runs code. */
  readonly changes: boolean
}

function verb(asked: string, named: string, changes = false): Verb {
  const stems = (text: string): Set<string> => new Set(text.split(' ').map(stem))
  return { asked: stems(asked), named: stems(named), changes }
}

export const READING = verb(
  'read open view show print display cat summarize summarise say says contain contains',
  'read view open cat',
)
const VERBS: readonly Verb[] = [
  READING,
  verb('list ls', 'list ls dir'),
  verb('search grep', 'search grep'),
  verb('find locate glob', 'find glob'),
  verb('fetch download browse visit open', 'fetch webfetch browse'),
  verb('write create save', 'write create save', true),
  verb('edit replace change', 'edit replace', true),
  verb('run execute', 'bash shell run exec execute terminal', true),
]

/** Words of a name that a message need not say where it says the verb. */
const NEUTRAL = new Set(
  (
    'file files text content contents code web http url page shell command bash terminal string str local ' +
    'directory dir folder path paths many search grep glob get tool_call'
  )
    .split(' ')
    .map(stem),
)
/** Words that name things of the conversation rather than of the world. */
const EVERYDAY = new Set(
  'file name text code task agent skill tool message plan goal todo set'.split(' ').map(stem),
)
/** So many tools are few enough to go by one word of their descriptions. */
const FEW = 4

/** How a tool suits the message; undefined where it does not, or where the message lacks what the tool needs. */
export function fitOf(tool: Tool, said: Mentions, fewTools: boolean): Fit | undefined {
  const named = namedAt(tool.name, said)
  if (named !== undefined) return { tool, by: 'its name', share: 1, at: named }
  const words: Words = { all: stemsOf(said), telling: tellingStems(said) }
  return byWords(tool, said, words, fewTools) ?? byDescription(tool, said, words, fewTools)
}

/** The stems of a message. */
interface Words {
  readonly all: readonly Mention[]
  readonly telling: readonly Mention[]
}

/** Whether so many tools are few. */
export function areFew(tools: readonly Tool[]): boolean {
  return tools.length <= FEW
}

/** Names with a mark or a capital in them are unmistakable; of plain words, as `task`, the message must say that they are a tool. */
function namedAt(name: string, { words, quoted }: Mentions): number | undefined {
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

function byWords(tool: Tool, said: Mentions, { all, telling }: Words, fewTools: boolean): Fit | undefined {
  const parts = wordsOfName(tool.name).map(stem)
  const verbs = VERBS.filter(({ named }) => parts.some((part) => named.has(part)))
  const asked = verbs
    .map((one) => ({ one, at: all.find(({ text }) => one.asked.has(text))?.at }))
    .find(({ at }) => at !== undefined)
  const isVerb = (part: string): boolean => verbs.some(({ named }) => named.has(part))
  const things = parts.filter((part) => !isVerb(part) && !EVERYDAY.has(part) && part.length > 2)
  const met = things.filter((part) => telling.some(({ text }) => text === part))
  const thing = telling.find(({ text }) => met.includes(text))
  const open = things.filter((part) => !met.includes(part) && !NEUTRAL.has(part))
  const share = (met.length + (asked ? 1 : 0)) / (things.length + (verbs.length > 0 ? 1 : 0))
  if (verbs.length > 0) {
    const everyday = parts.filter((part) => EVERYDAY.has(part) && !NEUTRAL.has(part))
    if (asked?.at === undefined || open.length > 0 || everyday.length > 0) return undefined
    if (asked.one.changes && !begins(said, asked.at) && said.quoted.length === 0) return undefined
    return hasNeeds(tool, said, fewTools) ? { tool, by: 'words of its name', share, at: asked.at } : undefined
  }
  if (!thing || !hasNeeds(tool, said, fewTools)) return undefined
  return { tool, by: 'words of its name', share, at: thing.at }
}

function byDescription(
  tool: Tool,
  said: Mentions,
  { all, telling }: Words,
  fewTools: boolean,
): Fit | undefined {
  const [sentence = ''] = tool.description.slice(0, 400).split(/[.\n]/)
  const [first = '', ...others] = keywords(sentence).map(stem)
  const verbs = VERBS.filter(({ named }) => named.has(first))
  const doing = all.find(({ text }) => verbs.some(({ asked, changes }) => !changes && asked.has(text)))
  const met = telling.filter(({ text }) => text.length > 2 && [first, ...others].includes(text))
  const enough = fewTools ? met.length > 0 : met.length > 1 && doing !== undefined
  const at = (doing ?? met[0])?.at
  if (!enough || at === undefined || !hasNeeds(tool, said, fewTools)) return undefined
  if (
    VERBS.some(
      ({ changes, named }) => changes && wordsOfName(tool.name).some((part) => named.has(stem(part))),
    )
  )
    return undefined
  return { tool, by: 'its description', share: met.length / 100 + (doing ? 1 : 0), at }
}

/** True where the message begins with what stands there, but for a courtesy. */
function begins({ words }: Mentions, at: number): boolean {
  const before = words.filter((word) => word.at < at).map(({ text }) => text.toLowerCase())
  return before.every((word) =>
    /^(?:please|can|could|would|you|now|then|and|go|i|want|to|us|me|let|s)$/.test(word),
  )
}

/** True where the message names all that cannot be guessed; of few tools, each is likely to be meant. */
function hasNeeds({ schema }: Tool, said: Mentions, fewTools: boolean): boolean {
  const members = fields(schema.properties)
  return list(schema.required).every((one) => {
    const name = string(one)
    const member: Fields = fields(members[name])
    switch (needOf(name, member)) {
      case 'path':
        return said.paths.length > 0
      case 'url':
        return said.urls.length > 0
      case 'command':
        return said.command !== undefined
      case 'old':
        return said.quoted.length > 1
      case 'pattern':
        return said.quoted.length > 0 || said.paths.length > 0
      case 'identifier':
        return fewTools || said.quoted.length > 0 || said.identifiers.length > 0
      case 'structure':
        return fewTools
      default:
        return true
    }
  })
}
