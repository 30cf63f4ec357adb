import { withoutReminders } from './conversation.ts'
import { asFields, asList } from './fields.ts'
import { splitIntoTokens } from './tokens.ts'

/** Maximum number of tokens that are quoted from tool results. */
const MAX_TOKENS = 240
/** Maximum number of characters of a token, including a leading space. */
const MAX_TOKEN_LENGTH = 6
const NOTHING = 'there is nothing to report'

/** Generates a reply from tool results: JSON is described in words, anything else is quoted. */
export function paraphraseResults(results: readonly string[]): string {
  return results.map((result) => quoted(result, Math.floor(MAX_TOKENS / results.length))).join('\n\n')
}

function quoted(result: string, maxTokens: number): string {
  const text = proseOf(parsed(result))
  const beginning = splitIntoTokens(text.slice(0, maxTokens * MAX_TOKEN_LENGTH))
    .slice(0, maxTokens)
    .join('')
  const short = beginning.length < text.length ? `${beginning.trimEnd()} …` : text
  return short.includes('\n')
    ? `The tool returned:\n\n${short}`
    : `According to the tool, ${short.replace(/\.$/, '')}.`
}

function parsed(result: string): unknown {
  try {
    return JSON.parse(result)
  } catch {
    return withoutLineNumbers(contentOf(withoutHeads(withoutReminders(result)))).trim() || NOTHING
  }
}

/** Lines that agents put before the output of a command. */
const HEAD =
  /^(?:(?:Chunk ID|Wall time|Process exited|Exit code|Original token count|Total output lines)\b[^\n]*\n)+Output:\n/

/** Removes the lines that agents put before the output of a command, also before that of a patch command. */
function withoutHeads(text: string): string {
  const rest = text.replace(HEAD, '')
  return rest === text ? text : withoutHeads(rest)
}

/** Extracts the text between `<content>` tags, if the tool's result has them. */
function contentOf(text: string): string {
  const from = text.indexOf('<content>')
  const to = text.lastIndexOf('</content>')
  return from >= 0 && to > from ? text.slice(from + '<content>'.length, to) : text
}

const NUMBERED = /^ {0,8}\d{1,7}(?:\t|→|: |\| )/

/** Removes line numbers that a tool added. Lines without a number are the tool's own notes, and dropped. */
function withoutLineNumbers(text: string): string {
  const numbered = text.split('\n').filter((line) => NUMBERED.test(line))
  const isNumbered = NUMBERED.test(text.replace(/^\n{1,3}/, ''))
  return isNumbered ? numbered.map((line) => line.replace(NUMBERED, '')).join('\n') : text
}

function proseOf(value: unknown): string {
  if (Array.isArray(value)) return asList(value).map(proseOf).join('; ') || 'the list is empty'
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(asFields(value)).map(
      ([name, member]) => `${name.replaceAll('_', ' ')} is ${proseOf(member)}`,
    )
    return members.join(', ') || NOTHING
  }
  return String(value)
}
