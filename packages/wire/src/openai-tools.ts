import type { Grammar } from './conversation.ts'
import { asRecord } from './json/record.ts'

/** Name of the argument that contains the text for a custom tool, when the tool is sent as a function. */
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
 * The function that replaces a custom tool: its description, which contains the tool's grammar, and its
 * schema.
 */
export function customToolAsFunction(
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

/** Writes the text for a custom tool as the JSON arguments of the function that replaces the tool. */
export function customArguments(input: string): string {
  return JSON.stringify({ [CUSTOM_INPUT_MEMBER]: input })
}

/** Matches the beginning of a function's arguments, up to the text for a custom tool. */
const HEAD = new RegExp(String.raw`^\s*\{\s*"${CUSTOM_INPUT_MEMBER}"\s*:\s*"`)
/**
 * Maximum length of the text that `HEAD` matches, in characters. Longer arguments without a match are not in
 * the expected form.
 */
const MAX_HEAD = 64
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Extracts the text for a custom tool from the streamed arguments of the function that replaced the tool.
 * Text in arguments of the expected form is returned as it arrives. Other arguments are held back until they
 * are complete.
 */
export class CustomInputDecoder {
  /**
   * Arguments that are still held back: a beginning that is not recognized yet, or an incomplete escape
   * sequence.
   */
  #rest = ''
  #state: 'before' | 'within' | 'after' | 'other' = 'before'

  /** Adds a piece of the arguments. Returns the text that can be sent to the client. */
  push(piece: string): string {
    if (this.#state === 'after') return ''
    this.#rest += piece
    if (this.#state === 'before') this.#begin()
    return this.#state === 'within' ? this.#decode() : ''
  }

  /** Ends the arguments. Returns the rest of the text. */
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

  /** Decodes the text up to its closing quote or to an incomplete escape sequence. */
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

/** Returns the text for a custom tool from complete arguments. */
export function decodeCustomInput(args: string): string {
  const input = new CustomInputDecoder()
  return input.push(args) + input.end()
}

/**
 * Length of an escape sequence: two or six characters. Two escaped halves of a surrogate pair count as one
 * sequence, so that the first half is held back until the second arrives.
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
    // Models sometimes write line ends into strings without escaping them.
    return JSON.parse(
      `"${text.replaceAll('\n', String.raw`\n`).replaceAll('\r', String.raw`\r`).replaceAll('\t', String.raw`\t`)}"`,
    ) as string
  } catch {
    return text
  }
}

/**
 * Returns the text for a custom tool from arguments that are not in the expected form: the member `input` or
 * the only member, if it is a string; otherwise the arguments unchanged.
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

/**
 * Values of `search_context_size`, each with the maximum number of searches that it stands for, ascending.
 * `docs/api.md: Limits`, web search max_uses.
 */
const SIZES = [
  ['low', 1],
  ['medium', 5],
  ['high', 10],
] as const

/** Maximum number of searches, by the value of `search_context_size`. */
export const MAX_SEARCHES_BY_SIZE: ReadonlyMap<string, number> = new Map(SIZES)

/** The smallest `search_context_size` that allows this many searches. */
export function searchSizeFor(maxUses: number): string {
  return SIZES.find(([, uses]) => maxUses <= uses)?.[0] ?? 'high'
}

const CHOICES = [
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
] as const

/** Kinds of tool choices that name no tool, by the value of `tool_choice` in requests. */
export const TOOL_CHOICE_KINDS: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map(
  CHOICES.map(([kind, word]) => [word, kind]),
)

/** Values of `tool_choice` in requests, by the kind of tool choice. */
export const TOOL_CHOICE_WORDS = Object.fromEntries(CHOICES) as Readonly<
  Record<'auto' | 'any' | 'none', string>
>

/** Kinds of tool choices, by the mode of `allowed_tools`. */
export const TOOL_CHOICE_MODES: ReadonlyMap<string, 'auto' | 'any'> = new Map([
  ['auto', 'auto'],
  ['required', 'any'],
])
