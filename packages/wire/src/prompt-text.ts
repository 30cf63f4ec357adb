import {
  tokensOfEncryptedText,
  type MediaTokens,
  type PromptText,
  TYPICAL_MESSAGE_TOKENS,
  TYPICAL_REQUEST_TOKENS,
} from './prompt-tokens.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { type Node, ROOT, type ScannedObject } from './json/scanned-object.ts'
import { decodePercent } from './media-source.ts'

/** Matches the escape sequences of JSON. `\u…` is replaced by its character; all others are kept. */
const ESCAPE = /\\(?:u([\da-fA-F]{4})|[^u])/g

/**
 * Collects the texts of a request's prompt from its JSON: everything except members that `levels` excludes,
 * and media, whose tokens are estimated. The text of a longer conversation begins with the text of its
 * earlier turns, whose tokens may have been counted already. `model` is the name of the model, on which the
 * maximum number of tokens of an image depends.
 */
export function promptText(scan: ScannedObject, levels: PromptRules, model: string): PromptText {
  const walk = new PromptWalk(scan, levels, model)
  const { turns } = levels
  const isTurns = (key: string): boolean => walk.spelled(key) === turns
  const entries = scan.entries(ROOT)
  for (const { key, node } of entries) if (!isTurns(key)) walk.member(levels.levels.request, key, node)
  for (const { key, node } of entries) if (isTurns(key)) walk.member(levels.levels.request, key, node)
  return walk.result(entries.flatMap(({ key, node }) => (isTurns(key) ? [node] : [])))
}

/** Collects the texts of the prompt from the bytes of a request that is being sent. */
export function promptTextOf(body: Buffer, levels: PromptRules, model: string): PromptText {
  return promptText(scanObject(body, RESPONSE_LIMITS), levels, model)
}

class PromptWalk {
  readonly #scan: ScannedObject
  readonly #levels: PromptRules
  readonly #model: string
  readonly #texts: string[] = []
  /** The JSON strings that contain media data and are therefore not counted as texts. */
  readonly #media = new Set<Node>()
  #extraTokens = 0
  #typicalOfMedia = 0
  #maxMediaTokens = 0

  constructor(scan: ScannedObject, levels: PromptRules, model: string) {
    this.#scan = scan
    this.#levels = levels
    this.#model = model
  }

  result(turns: readonly Node[]): PromptText {
    const framed = this.#extraTokens + (this.#levels.isFramed ? this.#frames(turns) : 0)
    return {
      text: this.#texts.join('\n'),
      extraTokens: framed + this.#typicalOfMedia,
      chargedExtraTokens: framed + this.#maxMediaTokens,
    }
  }

  spelled(key: string): string {
    return this.#levels.spelled?.(key) ?? key
  }

  member({ notPrompt, read }: PromptObjectRules, key: string, node: Node): void {
    if (this.#scan.kindOf(node) === 'null') return
    const name = this.spelled(key)
    if (Object.hasOwn(notPrompt, name)) return
    const reading = Object.hasOwn(read, name) ? read[name] : undefined
    if (reading !== undefined) return this.#value(reading, node)
    this.#add(key)
    this.#value('json', node)
  }

  #value(reading: Reading, node: Node): void {
    const scan = this.#scan
    switch (scan.kindOf(node)) {
      case 'null':
        return
      case 'string':
        return this.#string(reading, node)
      case 'array':
        if (reading === 'json') break
        for (const element of scan.elements(node)) this.#value(reading, element)
        return
      case 'object': {
        const level = this.#levels.levels[reading]
        if (!level) break
        this.#findMedia(level, node)
        for (const { key, node: value } of scan.entries(node)) this.member(level, key, value)
        return
      }
      case 'number':
      case 'true':
      case 'false':
        if (reading === 'json') break
        if (this.#levels.hasTokenIds) this.#extraTokens += 1
        return
    }
    // Counts the JSON as it was written, including duplicate members, because the model may see all of it.
    this.#add(scan.textOf(node).replaceAll(ESCAPE, unescaped))
  }

  #string(reading: Reading, node: Node): void {
    if (this.#media.has(node)) return
    const text = this.#scan.parse(node) as string
    if (reading === 'encrypted') this.#extraTokens += tokensOfEncryptedText(text.length)
    else this.#add(text)
  }

  #findMedia({ media: find }: PromptObjectRules, node: Node): void {
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

/** Why a member of a request is not counted as part of the prompt, or is counted elsewhere. */
type Reason =
  /** The member controls how the reply is generated and how long it may be. */
  | 'sampling'
  /** The member controls how the request is served: model, streaming, storage, tier. */
  | 'service'
  /** The member refers to something stored elsewhere, which is counted separately. */
  | 'id'
  /** The member is for the records of the client or the provider. */
  | 'metadata'
  /** The member is one word that names the type of an object. */
  | 'kind'
  /** The member proves that a model wrote the text beside it. */
  | 'signature'
  /**
   * The member was copied from an earlier response. By the provider's rules, the model does not read it
   * again.
   */
  | 'of the answer'

/**
 * How the value of a member is counted: as texts, as JSON, as encrypted text, or by the rules of the level in
 * `PromptRules` with this name.
 */
type Reading = string

/**
 * Rules for the members of one kind of object in a request. A member that is in neither list is counted as
 * JSON, including its name.
 */
export interface PromptObjectRules {
  readonly notPrompt: Readonly<Record<string, Reason>>
  /** Members whose values are counted, but not their names, which belong to the protocol. */
  readonly read: Readonly<Record<string, Reading>>
  /** Finds the media in an object of this kind. */
  readonly media?: FindMedia
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

/**
 * Describes which parts of a request are the prompt: all texts, including those of unknown members, except
 * for members listed in `notPrompt`. `request` has the rules for the top level.
 */
export interface PromptRules {
  readonly levels: Readonly<Record<string, PromptObjectRules>> & { readonly request: PromptObjectRules }
  /**
   * The member that contains the turns. It is read last: it grows only at its end, so that the count of its
   * beginning can be reused.
   */
  readonly turns: string
  /** Returns the preferred spelling of a name, in protocols in which names have several spellings. */
  readonly spelled?: (name: string) => string
  readonly hasTokenIds?: true
  /** Whether the turns are messages. Each message adds tokens of markup. */
  readonly isFramed?: true
}

/** Members that tell OpenAI's endpoints how to serve a request. */
export const OPENAI_SERVICE_MEMBERS = {
  model: 'service',
  stream: 'service',
  stream_options: 'service',
  store: 'service',
  service_tier: 'service',
  parallel_tool_calls: 'service',
  prompt_cache_key: 'metadata',
  prompt_cache_retention: 'service',
  prompt_cache_options: 'service',
  metadata: 'metadata',
  user: 'metadata',
  safety_identifier: 'metadata',
} as const
