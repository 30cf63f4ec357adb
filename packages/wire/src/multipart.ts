import { WireError } from './wire-error.ts'

const LF = 0x0a
const CR = 0x0d
const HYPHEN = 0x2d
const HEAD_END = Buffer.from('\r\n\r\n')

/** Maximum number of parts of a form. A form with 16 images has about 30. */
const MAX_PARTS = 128
/** Maximum number of bytes before the first boundary, which are ignored (RFC 2046). */
const MAX_PREAMBLE_BYTES = 8_192
/** Maximum size of a part's headers in bytes. */
const MAX_HEAD_BYTES = 8_192
/** Maximum number of bytes that are kept of a field that is not a file, and of all such fields together. */
const MAX_TEXT_BYTES = 262_144
const MAX_ALL_TEXT_BYTES = 524_288

const CRLF_BYTES = 2
const TOO_LONG = `more than ${MAX_PREAMBLE_BYTES} bytes stand in front of its first boundary`

/** A part of a form: its headers, and the position of its content in the body. */
export interface FormPart extends PartHead {
  /** Offset of the first byte of the headers. */
  readonly headStart: number
  /** Offset of the first byte of the content. */
  readonly start: number
  /** Offset after the last byte of the content. */
  readonly end: number
  /** Content of a field that is not a file; undefined if it is too long to be kept. */
  readonly text: string | undefined
  /** Whether the gateway has changed `text`, so that it differs from what the client sent. */
  readonly isChanged?: true
}

/**
 * Reads a form (RFC 7578) while it arrives. Keeps the positions of its parts, and the contents of short
 * fields.
 */
export class FormReader {
  readonly #delimiter: Buffer
  readonly #parts: FormPart[] = []
  #state: 'start' | 'delimited' | 'head' | 'content' | 'over' = 'start'
  /** Bytes that are not read yet, and the offset of the first of them in the body. */
  #rest: Buffer = Buffer.alloc(0)
  #offset = 0
  #beginning = 0
  #ending = 0
  #headStart = 0
  #head: PartHead = { name: '', filename: undefined, contentType: '' }
  #contentStart = 0
  /**
   * Content of the current field as far as it has arrived; undefined for a file, and for a field that is too
   * long to be kept.
   */
  #text: Buffer[] | undefined
  #textBytes = 0
  #allTextBytes = 0

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\n--${boundary}`, 'latin1')
  }

  /** Reads more bytes. Throws `invalid_request` if they are not a valid form. */
  push(chunk: Buffer): void {
    if (this.#state === 'over') return
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    while (this.#readOn());
    // Copied, so that a few remaining bytes do not keep a whole chunk in memory.
    if (this.#rest.length > 0 && this.#rest.length < this.#rest.buffer.byteLength)
      this.#rest = Buffer.from(this.#rest)
  }

  /** Offsets of the first boundary, and of the end of the last one. What is around them is no part of the form. */
  get bounds(): readonly [from: number, to: number] {
    return [this.#beginning, this.#ending]
  }

  /** Ends the form. Returns its parts in order. */
  end(): readonly FormPart[] {
    if (this.#state !== 'over') throw refusal('it ends before its last boundary')
    return this.#parts
  }

  /**
   * Reads the next piece of the form: a boundary, the headers of a part, or its content. Returns false if
   * more bytes are needed.
   */
  #readOn(): boolean {
    switch (this.#state) {
      case 'start':
        return this.#readStart()
      case 'delimited':
        return this.#readDelimited()
      case 'head':
        return this.#readHead()
      case 'content':
        return this.#readContent()
      case 'over':
        this.#rest = Buffer.alloc(0)
        return false
    }
  }

  #readStart(): boolean {
    const first = this.#delimiter.subarray(1)
    if (this.#rest.length < first.length) return false
    const isFirst = this.#rest.subarray(0, first.length).equals(first)
    const at = isFirst ? -1 : this.#rest.indexOf(this.#delimiter)
    if (!isFirst && at < 0) {
      if (this.#rest.length > MAX_PREAMBLE_BYTES + CRLF_BYTES + first.length) throw refusal(TOO_LONG)
      return false
    }
    if (at > MAX_PREAMBLE_BYTES + 1) throw refusal(TOO_LONG)
    if (!isFirst && this.#rest[at - 1] !== CR) throw refusal('a line that is not a boundary begins like one')
    if (!isFirst && this.#rest.indexOf(first) < at)
      throw refusal('a line before its first boundary has a boundary in it')
    this.#beginning = at + 1
    this.#drop(at + 1 + first.length)
    this.#state = 'delimited'
    return true
  }

  #readDelimited(): boolean {
    if (this.#rest.length < 2) return false
    const [a, b] = this.#rest
    const isLast = a === HYPHEN && b === HYPHEN
    if (!isLast && (a !== CR || b !== LF)) throw refusal('a boundary is followed by other bytes')
    if (isLast) {
      this.#state = 'over'
      this.#ending = this.#offset + 2
    } else {
      if (this.#parts.length === MAX_PARTS) throw refusal(`it has more than ${MAX_PARTS} parts`)
      this.#drop(2)
      this.#headStart = this.#offset
      this.#state = 'head'
    }
    return true
  }

  #readHead(): boolean {
    const end = this.#rest.indexOf(HEAD_END)
    if (end > MAX_HEAD_BYTES || (end < 0 && this.#rest.length > MAX_HEAD_BYTES))
      throw refusal(`the head of a part is larger than ${MAX_HEAD_BYTES} bytes`)
    if (end < 0) return false
    this.#head = readPartHead(this.#rest.subarray(0, end))
    // The last line feed of the headers stays in `#rest`, because a delimiter may begin with it.
    this.#drop(end + HEAD_END.length - 1)
    this.#contentStart = this.#offset + 1
    this.#text = this.#head.filename === undefined ? [] : undefined
    this.#textBytes = 0
    this.#state = 'content'
    return true
  }

  #readContent(): boolean {
    const at = this.#rest.indexOf(this.#delimiter)
    if (at < 0) {
      // The last bytes stay in `#rest`, because they may be a carriage return and the beginning of a
      // delimiter.
      const sure = this.#rest.length - this.#delimiter.length
      if (sure > 0) this.#takeContent(sure)
      return false
    }
    const end = this.#offset + at - 1
    const isEmptyHead = end < this.#contentStart
    const before = at > 0 ? this.#rest[at - 1] : undefined
    if (isEmptyHead || before !== CR) throw refusal('a line that is not a boundary begins like one')
    this.#takeContent(at - 1)
    this.#parts.push({
      ...this.#head,
      headStart: this.#headStart,
      start: this.#contentStart,
      end,
      text: this.#textSoFar(),
    })
    this.#drop(1 + this.#delimiter.length)
    this.#state = 'delimited'
    return true
  }

  #takeContent(length: number): void {
    // The first of the remaining bytes may be the line feed at the end of the headers, which is not content.
    const from = this.#contentStart - this.#offset
    const piece = this.#rest.subarray(Math.max(0, from), length)
    if (this.#text && piece.length > 0) {
      this.#textBytes += piece.length
      this.#allTextBytes += piece.length
      if (this.#textBytes > MAX_TEXT_BYTES || this.#allTextBytes > MAX_ALL_TEXT_BYTES) this.#text = undefined
      else this.#text.push(Buffer.from(piece))
    }
    this.#drop(length)
  }

  #textSoFar(): string | undefined {
    return this.#text && Buffer.concat(this.#text).toString()
  }

  #drop(length: number): void {
    this.#rest = this.#rest.subarray(length)
    this.#offset += length
  }
}

function refusal(reason: string): WireError {
  return new WireError('invalid_request', `the form of the request is invalid: ${reason}`)
}

/** What the headers of a part state. */
interface PartHead {
  readonly name: string
  /** Name of the file; undefined for a field that is not a file. */
  readonly filename: string | undefined
  /** Content type of the part; empty if not stated. */
  readonly contentType: string
}

const FIELD = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([^]*)$/
/**
 * Matches a header parameter whose value is a word, or a quoted string in which a backslash escapes the next
 * character.
 */
const PARAMETER = /;[ \t]*([\w!#$&'+.^`|~-]+\*?)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s;"]+))[ \t]*/y

/** Without spaces and tabs at the end, for which an expression would take quadratic time. */
function withoutBlanksAtEnd(text: string): string {
  let end = text.length
  while (text[end - 1] === ' ' || text[end - 1] === '\t') end -= 1
  return text.slice(0, end)
}

/** Transfer encodings that do not change the bytes. */
const IDENTITY = /^(?:7bit|8bit|binary)$/i

/**
 * Reads the headers of a part. Throws `invalid_request` for anything that another parser might read
 * differently, because the client is charged for the model that a form names.
 */
function readPartHead(bytes: Buffer): PartHead {
  let disposition: string | undefined
  let contentType = ''
  for (const line of bytes.toString().split('\r\n')) {
    const [, name = '', padded = ''] = FIELD.exec(line) ?? []
    const value = withoutBlanksAtEnd(padded)
    if (name === '' || /[\r\n\0]/.test(value)) throw refusal('a header line of a part cannot be read')
    switch (name.toLowerCase()) {
      case 'content-disposition':
        if (disposition !== undefined) throw refusal('a part has two content-dispositions')
        disposition = value
        break
      case 'content-type':
        contentType = value
        break
      case 'content-transfer-encoding':
        if (!IDENTITY.test(value)) throw refusal('a part is encoded; send its bytes as they are')
    }
  }
  return { ...named(disposition), contentType }
}

function named(disposition: string | undefined): Pick<PartHead, 'name' | 'filename'> {
  const parameters = new Map<string, string>()
  if (disposition === undefined || !/^form-data[ \t]*(?:;|$)/i.test(disposition))
    throw refusal('a part has no "content-disposition: form-data"')
  const at = disposition.indexOf(';')
  PARAMETER.lastIndex = at < 0 ? disposition.length : at
  while (PARAMETER.lastIndex < disposition.length) {
    const found = PARAMETER.exec(disposition)
    if (!found) throw refusal('the content-disposition of a part cannot be read')
    const [, key = '', quoted, plain = ''] = found
    const name = key.toLowerCase()
    if (parameters.has(name)) throw refusal('the content-disposition of a part names something twice')
    parameters.set(name, quoted ?? plain)
  }
  const name = parameters.get('name')
  if (name === undefined || name === '' || parameters.has('name*')) throw refusal('a part has no name')
  // Some parsers treat a backslash as an escape character, others as an ordinary character.
  if (name.includes('\\')) throw refusal('the name of a part has a backslash')
  return { name, filename: parameters.get('filename') ?? parameters.get('filename*') }
}

/** Boundary as defined by RFC 2046, 5.1.1. */
const BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/
const TYPE_PARAMETER = /;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g

/** Whether a content type is `multipart/form-data`. */
export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)
}

/**
 * Returns the boundary of a content type. Throws `invalid_request` if it is missing, invalid or given twice.
 */
export function boundaryOf(contentType: string): string {
  const stated = [...contentType.matchAll(TYPE_PARAMETER)].filter(
    ([, name]) => name?.toLowerCase() === 'boundary',
  )
  const [only] = stated
  const boundary = only?.[2]?.replaceAll(/\\(.)/g, '$1') ?? only?.[3] ?? ''
  if (stated.length === 1 && BOUNDARY.test(boundary)) return boundary
  throw new WireError(
    'invalid_request',
    stated.length > 1
      ? 'the content-type of the form states two boundaries'
      : 'the content-type of the form states no valid boundary, as in "multipart/form-data; boundary=…"',
  )
}
