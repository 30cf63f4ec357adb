import type { Grammar } from './conversation.ts'
import { asRecord } from './json/record.ts'

/** Name of the argument that contains the text of a custom tool, when it is sent as a function. */
export const CUSTOM_INPUT_MEMBER = 'input'

const CUSTOM_SCHEMA = JSON.stringify({
  type: 'object',
  properties: {
    [CUSTOM_INPUT_MEMBER]: { type: 'string', description: 'The whole input of the tool, as plain text.' },
  },
  required: [CUSTOM_INPUT_MEMBER],
  additionalProperties: false,
})

/**
 * Description and schema of a function that stands for a custom tool. The description contains the tool's
 * grammar.
 */
export function customTool(
  description: string | undefined,
  grammar: Grammar | undefined,
): { readonly description: string; readonly schema: string } {
  const rule =
    grammar &&
    `The value of "${CUSTOM_INPUT_MEMBER}" must match this ${grammar.syntax} grammar:\n${grammar.definition}`
  return {
    description: [description, rule].filter((part) => part !== undefined && part !== '').join('\n\n'),
    schema: CUSTOM_SCHEMA,
  }
}

/** Renders the text of a custom tool's input as a function's arguments in JSON. */
export function customArguments(input: string): string {
  return JSON.stringify({ [CUSTOM_INPUT_MEMBER]: input })
}

/** Matches arguments that begin with the text of a custom tool. */
const HEAD = new RegExp(String.raw`^\s*\{\s*"${CUSTOM_INPUT_MEMBER}"\s*:\s*"`)
/**
 * Maximum length, in characters, of what comes before the text. If it is longer, the arguments do not have
 * the expected form.
 */
const MAX_HEAD = 64
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Extracts the text of a custom tool's input from the arguments of the function that stands for the tool,
 * while they stream. In the expected form, text is returned at once; otherwise the arguments are held until
 * they are complete.
 */
export class CustomInput {
  /** Arguments that were not returned yet: what comes before the text, or an incomplete escape sequence. */
  #rest = ''
  #state: 'before' | 'within' | 'after' | 'other' = 'before'

  /** Adds a piece of the arguments; returns the text that is complete now. */
  push(piece: string): string {
    if (this.#state === 'after') return ''
    this.#rest += piece
    if (this.#state === 'before') this.#begin()
    return this.#state === 'within' ? this.#decode() : ''
  }

  /** Returns the remaining text after the arguments have ended. */
  end(): string {
    return this.#state === 'before' || this.#state === 'other' ? textOf(this.#rest) : ''
  }

  #begin(): void {
    const head = HEAD.exec(this.#rest)
    if (head) {
      this.#rest = this.#rest.slice(head[0].length)
      this.#state = 'within'
    } else if (this.#rest.length > MAX_HEAD) this.#state = 'other'
  }

  /** Decodes the text up to the closing quote, or up to an incomplete escape sequence. */
  #decode(): string {
    const text = this.#rest
    let end = 0
    while (end < text.length) {
      const code = text.charCodeAt(end)
      if (code === QUOTE) {
        this.#state = 'after'
        break
      }
      const size = code === BACKSLASH ? escapeSize(text, end) : 1
      if (end + size > text.length) break
      end += size
    }
    this.#rest = text.slice(end)
    return unescaped(text.slice(0, end))
  }
}

/** Returns the whole text of a custom tool's input. */
export function customInput(args: string): string {
  const input = new CustomInput()
  return input.push(args) + input.end()
}

/**
 * Length of an escape sequence: two or six characters, or twelve for a surrogate pair. Both halves of a pair
 * are decoded together, so a first half waits for the second.
 */
function escapeSize(text: string, at: number): number {
  if (text[at + 1] !== 'u') return 2
  if (!/^\\u[dD][89abAB]/.test(text.slice(at, at + 4))) return 6
  const next = text.slice(at + 6, at + 8)
  return next === '' || next === '\\' || next === String.raw`\u` ? 12 : 6
}

function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  try {
    // Models write line ends into strings without escaping them.
    return JSON.parse(
      `"${text.replaceAll('\n', String.raw`\n`).replaceAll('\r', String.raw`\r`).replaceAll('\t', String.raw`\t`)}"`,
    ) as string
  } catch {
    return text
  }
}

/**
 * Text of arguments that do not have the expected form: the value of `input`, or of the only argument, if it
 * is a string; otherwise all of the arguments unchanged.
 */
function textOf(args: string): string {
  try {
    const fields = asRecord(JSON.parse(args))
    const values = Object.values(fields ?? {})
    const named = fields?.[CUSTOM_INPUT_MEMBER] ?? (values.length === 1 ? values[0] : undefined)
    if (typeof named === 'string') return named
    return fields && values.length === 0 ? '' : args
  } catch {
    return args
  }
}

/** `docs/api.md: Limits`, web search max_uses, by `search_context_size`; smallest first. */
const SIZES = [
  ['low', 1],
  ['medium', 5],
  ['high', 10],
] as const

/** Maximum number of searches, by the name of a context size. */
export const MAX_SEARCHES_BY_SIZE: ReadonlyMap<string, number> = new Map(SIZES)

/** The name of the smallest context size that allows this many searches. */
export function searchSizeFor(maxUses: number): string {
  return SIZES.find(([, uses]) => maxUses <= uses)?.[0] ?? 'high'
}

const CHOICES = [
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
] as const

/** The kind of a tool choice that names no tool, by the word in `tool_choice`. */
export const CHOICE_KINDS: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map(
  CHOICES.map(([kind, word]) => [word, kind]),
)

/** The word in `tool_choice`, by the kind of the tool choice. */
export const CHOICE_WORDS = Object.fromEntries(CHOICES) as Readonly<Record<'auto' | 'any' | 'none', string>>

/** The kind of a tool choice, by the mode of `allowed_tools`. */
export const CHOICE_MODES: ReadonlyMap<string, 'auto' | 'any'> = new Map([
  ['auto', 'auto'],
  ['required', 'any'],
])
