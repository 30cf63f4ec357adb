import { CUSTOM_MEMBER } from './custom-tool.ts'
import { asRecord } from './json/record.ts'

/** The beginning of arguments that hold a custom tool's text and, so far, nothing else. */
const HEAD = new RegExp(String.raw`^\s*\{\s*"${CUSTOM_MEMBER}"\s*:\s*"`)
/** A longer beginning is none of these. */
const MAX_HEAD = 64
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * The plain text of a custom tool's input, taken out of the arguments of the function that it went by as,
 * while they come in. What comes in the expected form goes on at once; other arguments wait until they are
 * whole.
 */
export class CustomInput {
  /** Text not emitted yet: a beginning that is not recognised, or an incomplete escape. */
  #rest = ''
  #state: 'before' | 'within' | 'after' | 'other' = 'before'

  /** The text that more arguments bring. */
  push(piece: string): string {
    if (this.#state === 'after') return ''
    this.#rest += piece
    if (this.#state === 'before') this.#begin()
    return this.#state === 'within' ? this.#decode() : ''
  }

  /** The text that is left when the arguments have ended. */
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

  /** Up to the closing quote, or to an escape that is cut. */
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

/** The whole text of a custom tool's input. */
export function customInput(args: string): string {
  const input = new CustomInput()
  return input.push(args) + input.end()
}

/**
 * Length of an escape: two units, or six. The halves of a surrogate pair stay together, so a first half waits
 * for the second.
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
    // Models write line ends into strings as they are.
    return JSON.parse(
      `"${text.replaceAll('\n', String.raw`\n`).replaceAll('\r', String.raw`\r`).replaceAll('\t', String.raw`\t`)}"`,
    ) as string
  } catch {
    return text
  }
}

/** Arguments in another form: their one text, else all of them as they are. */
function textOf(args: string): string {
  try {
    const fields = asRecord(JSON.parse(args))
    const values = Object.values(fields ?? {})
    const named = fields?.[CUSTOM_MEMBER] ?? (values.length === 1 ? values[0] : undefined)
    if (typeof named === 'string') return named
    return fields && values.length === 0 ? '' : args
  } catch {
    return args
  }
}
