import {
  tokensOfEncryptedText,
  type MediaTokens,
  type PromptText,
  TYPICAL_MESSAGE_TOKENS,
  TYPICAL_REQUEST_TOKENS,
} from './prompt-tokens.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { decodePercent } from './media-source.ts'
import type { Shape } from './shape/define-shape.ts'
import {
  eachObject,
  indexOf,
  kindOfCode,
  mayHaveTable,
  type Outline,
  outlineOf,
  ownerOfCode,
  tableBits,
  tableOfCode,
} from './shape/outline.ts'
import { KIND, OWNER } from './shape/vocabulary.ts'

/** Matches the escape sequences of JSON. `\u…` is replaced by its character; all others are kept. */
const ESCAPE = /\\(?:u([\da-fA-F]{4})|[^u])/g

/**
 * Collects the texts of a request's prompt from its JSON: everything except what is for the provider, and media, whose
 * tokens are estimated. The text of a longer conversation begins with the text of its earlier turns, whose tokens may
 * have been counted already. `model` is the name of the model, on which the maximum number of tokens of an image depends.
 */
export function promptText(scan: ScannedObject, rules: PromptRules, model: string): PromptText {
  const count = new PromptCount(scan, rules, model)
  const members = [...scan.members.values()]
  const turns = members.filter(({ key }) => key === rules.turns)
  for (const { node, key } of members) if (key !== rules.turns) count.member(node - 3)
  for (const { node } of turns) count.member(node - 3)
  return count.result(turns.map(({ node }) => node))
}

/** Collects the texts of the prompt from the bytes of a request that is being sent. */
export function promptTextOf(body: Buffer, rules: PromptRules, model: string): PromptText {
  return promptText(scanObject(body, RESPONSE_LIMITS), rules, model)
}

/** Kinds that are not a part of the prompt. */
const UNREAD: ReadonlySet<number> = new Set([KIND.signature, KIND.mark, KIND.id, KIND.term, KIND.number])

class PromptCount {
  readonly #scan: ScannedObject
  readonly #rules: PromptRules
  readonly #model: string
  readonly #outline: Outline
  readonly #texts: string[] = []
  /** The JSON strings that contain media data and are therefore not counted as texts. */
  readonly #media = new Set<Node>()
  #extraTokens = 0
  #typicalOfMedia = 0
  #maxMediaTokens = 0

  constructor(scan: ScannedObject, rules: PromptRules, model: string) {
    this.#scan = scan
    this.#rules = rules
    this.#model = model
    this.#outline = outlineOf(scan, rules.shape)
  }

  result(turns: readonly Node[]): PromptText {
    const framed = this.#extraTokens + (this.#rules.isFramed ? this.#frames(turns) : 0)
    return {
      text: this.#texts.join('\n'),
      extraTokens: framed + this.#typicalOfMedia,
      chargedExtraTokens: framed + this.#maxMediaTokens,
    }
  }

  member(key: Node): void {
    const scan = this.#scan
    const value = scan.valueOf(key)
    if (scan.kindOf(value) === 'null') return
    const isDescribed = kindOfCode(this.#codeOf(key)) === KIND.structure
    // A name that is not the protocol's is a text of the client.
    if (!isDescribed) this.#add(scan.keyText(key))
    if (isDescribed || kindOfCode(this.#codeOf(value)) !== KIND.undescribed) this.#value(value)
    else this.#written(value)
  }

  #value(node: Node): void {
    const scan = this.#scan
    const code = this.#codeOf(node)
    const kind = kindOfCode(code)
    const owner = ownerOfCode(code)
    const type = scan.kindOf(node)
    if (type === 'null') return
    if (owner === OWNER.program) return this.#written(node)
    if (tableOfCode(code) !== -1) return this.#object(node, code)
    if (kind === KIND.structure) return type === 'array' ? this.#elements(node) : this.#object(node, code)
    if (owner === OWNER.provider || UNREAD.has(kind)) return
    if (kind === KIND.role && !this.#rules.countsRoles) return
    if (type !== 'string' && !scan.isContainer(node)) this.#number()
    else if (kind === KIND.sealed && type === 'string')
      this.#extraTokens += tokensOfEncryptedText((scan.parse(node) as string).length)
    else this.#written(node)
  }

  /** Counts a string, or other JSON as it was written, with duplicate members, because the model may see all of it. */
  #written(node: Node): void {
    const scan = this.#scan
    if (scan.kindOf(node) !== 'string') this.#add(scan.textOf(node).replaceAll(ESCAPE, unescaped))
    else if (!this.#media.has(node)) this.#add(scan.parse(node) as string)
  }

  #elements(list: Node): void {
    for (const element of this.#scan.elements(list)) this.#value(element)
  }

  #object(node: Node, code: number): void {
    const scan = this.#scan
    this.#findMedia(this.#rules.media[tableOfCode(code)], node)
    for (let key = scan.firstKey(node); key !== undefined; key = scan.nextKey(key, node)) this.member(key)
  }

  #number(): void {
    if (this.#rules.hasTokenIds) this.#extraTokens += 1
  }

  #codeOf(node: Node): number {
    return this.#outline[indexOf(node)] as number
  }

  #findMedia(find: FindMedia | undefined, node: Node): void {
    const scan = this.#scan
    const found = find?.(scan, node)
    if (!found) return
    const { tokens, data, type, name } = found
    if (data !== undefined) this.#media.add(data)
    const file = data === undefined ? undefined : textOfFile(scan.parse(data) as string, type, name)
    if (file !== undefined) return this.#add(file)
    const bytes = data === undefined ? 0 : scan.endOf(data) - scan.startOf(data)
    this.#typicalOfMedia += tokens.typical(bytes)
    this.#maxMediaTokens += tokens.max(bytes, this.#model)
  }

  #frames(turns: readonly Node[]): number {
    const scan = this.#scan
    const all = turns.flatMap((node) => (scan.kindOf(node) === 'array' ? scan.elements(node) : [node]))
    const messages = all.filter((node) => scan.kindOf(node) === 'object').length
    return TYPICAL_REQUEST_TOKENS + messages * TYPICAL_MESSAGE_TOKENS
  }

  #add(text: string): void {
    if (text !== '') this.#texts.push(text)
  }
}

function unescaped(escape: string, number: string | undefined): string {
  return number === undefined ? escape : String.fromCharCode(Number.parseInt(number, 16))
}

/** Media types of text files. */
const IS_TEXT =
  /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson|sql|toml|rtf)\b)/i
/** File name extensions of text files. Some protocols use them as names of formats. */
const TEXT_ENDINGS =
  /^(?:.*\.)?(?:txt|md|markdown|csv|tsv|json|jsonl|xml|html?|ya?ml|toml|ini|log|sql|css|[cm]?[jt]sx?|py|rb|go|rs|java|kt|swift|c|h|cc|cpp|cs|php|sh|tex|rtf)$/i
const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),/i
/** Maximum length of a data URL's header in characters. */
const MAX_HEADER = 1_024

/**
 * Decodes a text file, recognized by its media type or, without one, by its name; undefined for any other
 * file. `data` is a `data:` URL or base64. If the type is `text`, it is the text itself.
 */
function textOfFile(data: string, type: string | undefined, name: string | undefined): string | undefined {
  const [header, stated, parameters = ''] = DATA_URL.exec(data.slice(0, MAX_HEADER)) ?? []
  if (header === undefined && /^https?:/i.test(data.slice(0, 6))) return undefined
  const known = (stated ?? type ?? '').trim()
  const isNamed = known === '' || /^application\/octet-stream$/i.test(known)
  const isText = isNamed ? name !== undefined && TEXT_ENDINGS.test(name) : IS_TEXT.test(known)
  if (!isText) return undefined
  const rest = header === undefined ? data : data.slice(header.length)
  if (header !== undefined && !/;\s*base64/i.test(parameters)) return decodePercent(rest).toString()
  return Buffer.from(rest, 'base64').toString()
}

/** The media of a part: how their tokens are estimated, and where the request has their data, if it does. */
export interface FoundMedia {
  readonly tokens: MediaTokens
  readonly data: Node | undefined
  /** Media type and file name, if the request states them. */
  readonly type?: string | undefined
  readonly name?: string | undefined
}

/** Finds the media of a part; undefined for an object without media. */
export type FindMedia = (scan: ScannedObject, part: Node) => FoundMedia | undefined

/** How the prompt of a request is counted. */
export interface PromptRules {
  readonly shape: Shape
  /** Finds the media in the objects of a table, by the number of the table. */
  readonly media: readonly (FindMedia | undefined)[]
  /** The tables of these objects, as bits. */
  readonly mediaTables: number
  /**
   * The member that contains the turns. It is read last: it grows only at its end, so that the count of its
   * beginning can be reused.
   */
  readonly turns: string
  readonly hasTokenIds?: true
  /** Whether the turns are messages. Each message adds tokens of markup. */
  readonly isFramed?: true
  /** Whether the name of a role counts beside the markup. */
  readonly countsRoles?: true
}

/** Makes rules. `media` has the finders by the names of their tables. */
export function promptRules<Table extends string>(
  shape: Shape<Table>,
  {
    media = {},
    ...rules
  }: Omit<PromptRules, 'shape' | 'media' | 'mediaTables'> & { readonly media?: MediaFinders<Table> },
): PromptRules {
  const finders: (FindMedia | undefined)[] = []
  for (const [table, find] of Object.entries(media))
    finders[shape.tableId(table as Table)] = find as FindMedia
  const mediaTables = tableBits(Object.keys(media).map((table) => shape.tableId(table as Table)))
  return { shape, media: finders, mediaTables, ...rules }
}

type MediaFinders<Table extends string> = { readonly [Name in Table]?: FindMedia }

/** Visits the media in a value, each with the object that contains them. */
export function eachMedia(
  scan: ScannedObject,
  { shape, media, mediaTables }: PromptRules,
  node: Node,
  visit: (media: FoundMedia, object: Node) => void,
): void {
  if (!mayHaveTable(scan, shape, mediaTables)) return
  eachObject(scan, outlineOf(scan, shape), node, (object, table) => {
    const found = media[table]?.(scan, object)
    if (found) visit(found, object)
  })
}
