import type { Pseudonyms } from './pseudonyms.ts'
import type { TextScreen, ScreeningResult } from './screen.ts'
import { type ScreenedTextReceiver, ScreenStream, type StreamScreenRules } from './screen-stream.ts'

const SPACE = /[ \t\r\n]/
const STRUCTURE = /[{}[\],:]/
/** Matches what can still become a value without quotes: a number, `true`, `false` or `null`. */
const BARE = /^(?:-?[0-9][-+.0-9eE]{0,39}|-|t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?)$/
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

/**
 * Screens a JSON text that arrives in pieces, such as the arguments of a tool call. Each string is decoded,
 * screened by itself and escaped again; unchanged parts keep their bytes. A number that matches becomes a
 * string. From the first character that JSON does not allow, the text is screened without decoding.
 */
export class JsonTextStream {
  readonly counts: number[]
  readonly #screen: StreamScreenRules
  readonly #pseudonyms: Pseudonyms | undefined
  #output = ''
  /** Screens the current string, or the text that turned out not to be JSON. */
  #stream: ScreenStream | undefined
  #isPlain = false
  /**
   * Number of decoded characters of the current string; `#pending` contains the last of them, which `#stream`
   * has not received yet.
   */
  #decoded = 0
  #pending = ''
  #isWhole = false
  /**
   * The original spelling of escaped characters, by position in the string, if `JSON.stringify` would write
   * them differently.
   */
  readonly #escapes = new Map<number, string>()
  #escape = ''
  #bare = ''
  #blockedBy: number | undefined

  /** @param pseudonyms Makes replacement tokens. Only for a text that is screened at once, by `whole`. */
  constructor(screen: StreamScreenRules, pseudonyms?: Pseudonyms) {
    this.#screen = screen
    this.#pseudonyms = pseudonyms
    this.counts = screen.rules.map(() => 0)
  }

  /** Index of the rule that blocked the rest of the text; undefined if none did. */
  get blockedBy(): number | undefined {
    return this.#blockedBy
  }

  /**
   * Number of characters that are held back: of the current string (decoded), of an unfinished escape, or of
   * a number.
   */
  get held(): number {
    return (this.#stream?.held ?? 0) + this.#escape.length + this.#bare.length
  }

  /** Screens the next piece. Returns the text that can be passed on now. */
  push(chunk: string): string {
    this.#read(chunk)
    if (this.#pending !== '') this.#flush()
    return this.#taken()
  }

  /** Screens the end of the text. Returns all text that was held back. */
  end(): string {
    if (this.#bare !== '') this.#endBare()
    if (this.#escape !== '') this.#add(this.#escape, this.#escape)
    this.#escape = ''
    if (this.#stream) this.#endStream()
    return this.#taken()
  }

  /** Screens a whole text at once. Returns the text that can be passed on. */
  whole(text: string): string {
    this.#read(text)
    return this.end()
  }

  #taken(): string {
    const output = this.#output
    this.#output = ''
    return output
  }

  #read(chunk: string): void {
    for (let at = 0; at < chunk.length && this.#blockedBy === undefined; at++) {
      if (this.#isPlain) {
        this.#pending += chunk.slice(at)
        return
      }
      const unit = chunk[at] as string
      if (!this.#stream) this.#outside(unit)
      else if (this.#escape !== '') this.#escaped(unit)
      else if (unit === '\\') this.#escape = unit
      else if (unit === '"') this.#close()
      else if (unit < ' ') this.#add(unit, unit)
      else {
        let end = at + 1
        while (end < chunk.length && isPlainUnit(chunk.charCodeAt(end))) end++
        this.#pending += chunk.slice(at, end)
        this.#decoded += end - at
        at = end - 1
      }
    }
  }

  #outside(unit: string): void {
    const isEnd = SPACE.test(unit) || STRUCTURE.test(unit) || unit === '"'
    if (isEnd) {
      if (this.#bare !== '') this.#endBare()
      if (this.#blockedBy !== undefined) return
      this.#output += unit
      if (unit === '"') this.#open()
      return
    }
    this.#bare += unit
    if (BARE.test(this.#bare)) return
    this.#isPlain = true
    this.#begin({ keep: (text) => (this.#output += text), write: (text) => (this.#output += text) })
    this.#pending = this.#bare
    this.#bare = ''
  }

  #endBare(): void {
    const bare = this.#bare
    this.#bare = ''
    let isChanged = false
    let text = ''
    this.#begin({
      keep: (kept) => (text += kept),
      write: (written) => {
        text += written
        isChanged = true
      },
    })
    this.#pending = bare
    this.#endStream()
    if (this.#blockedBy === undefined) this.#output += isChanged ? JSON.stringify(text) : text
  }

  #open(): void {
    this.#decoded = 0
    this.#begin({
      keep: (text, position) => (this.#output += this.#written(text, position)),
      write: (text) => (this.#output += JSON.stringify(text).slice(1, -1)),
    })
  }

  #close(): void {
    this.#endStream()
    this.#escapes.clear()
    if (this.#blockedBy === undefined) this.#output += '"'
  }

  /** Adds a character of a string; `written` is its spelling in the JSON text. */
  #add(text: string, written: string): void {
    if (JSON.stringify(text).slice(1, -1) !== written) this.#escapes.set(this.#decoded, written)
    for (let unit = 1; unit < text.length; unit++) this.#escapes.set(this.#decoded + unit, '')
    this.#pending += text
    this.#decoded += text.length
  }

  #escaped(unit: string): void {
    this.#escape += unit
    const escape = this.#escape
    if (escape[1] === 'u') {
      if (escape.length < 6 && /^[0-9a-fA-F]$|^u$/.test(unit)) return
      const isComplete = /^\\u[0-9a-fA-F]{4}$/.test(escape)
      this.#escape = ''
      if (isComplete) this.#add(String.fromCharCode(Number.parseInt(escape.slice(2), 16)), escape)
      else this.#spoiled(escape)
      return
    }
    this.#escape = ''
    const character = ESCAPES[unit]
    if (character === undefined) this.#spoiled(escape)
    else this.#add(character, escape)
  }

  /** Adds the characters of an escape that JSON does not allow, unchanged. A quote in it ends the string. */
  #spoiled(escape: string): void {
    const isEnd = escape.endsWith('"')
    for (const unit of (isEnd ? escape.slice(0, -1) : escape).split('')) this.#add(unit, unit)
    if (isEnd) this.#close()
  }

  #begin(sink: ScreenedTextReceiver): void {
    this.#stream = new ScreenStream(this.#screen, this.#pseudonyms, sink)
    this.#isWhole = true
  }

  #flush(): void {
    this.#stream?.push(this.#pending)
    this.#isWhole = false
    this.#pending = ''
    this.#blockedBy ??= this.#stream?.blockedBy
    if (this.#blockedBy !== undefined) this.#count()
  }

  #endStream(): void {
    if (!this.#stream) return
    if (this.#isWhole) {
      this.#stream.whole(this.#pending)
    } else {
      this.#stream.push(this.#pending)
      this.#stream.end()
    }
    this.#pending = ''
    this.#blockedBy ??= this.#stream.blockedBy
    this.#count()
  }

  #count(): void {
    for (const [rule, count] of this.#stream?.counts.entries() ?? [])
      this.counts[rule] = (this.counts[rule] as number) + count
    this.#stream = undefined
  }

  /** Escapes a part of a string, with the original spelling of its escapes. */
  #written(text: string, position: number): string {
    if (this.#escapes.size === 0) return JSON.stringify(text).slice(1, -1)
    let result = ''
    let plain = ''
    for (let unit = 0; unit < text.length; unit++) {
      const escape = this.#escapes.get(position + unit)
      if (escape === undefined) {
        plain += text[unit]
        continue
      }
      this.#escapes.delete(position + unit)
      result += JSON.stringify(plain).slice(1, -1) + escape
      plain = ''
    }
    return result + JSON.stringify(plain).slice(1, -1)
  }
}

/** Screens a complete JSON text. */
export function screenJsonText(screen: TextScreen, text: string, pseudonyms?: Pseudonyms): ScreeningResult {
  const stream = new JsonTextStream(screen, pseudonyms)
  const screened = stream.whole(text)
  return { text: screened, counts: stream.counts, blockedBy: stream.blockedBy }
}

/**
 * Whether a UTF-16 code unit can be in a JSON string without an escape: not a quote, a backslash or a control
 * character.
 */
function isPlainUnit(unit: number): boolean {
  return unit !== 0x22 && unit !== 0x5c && unit >= 0x20
}
