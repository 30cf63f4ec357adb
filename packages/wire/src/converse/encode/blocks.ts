import { WireError } from '../../wire-error.ts'
import type { EncodablePart } from '../../alternating-turns.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  CacheMark,
  MediaPart,
  MediaSource,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
} from '../../conversation.ts'
import type { ConverseCapabilities } from '../../model-capabilities.ts'
import { jsonArrayOf, jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import { isTextFile } from '../../media-source.ts'
import { historyInput } from '../../tool-input.ts'
import { reportDropped } from './dropped-fields.ts'

/** Placeholder for a text that is missing or blank although upstreams require it. */
export const TEXT_BLOCK_PLACEHOLDER = '{"text":"..."}'

/** First text in the result of a failed tool, for models that do not accept the status of a result. */
const FAILED = '{"text":"The tool failed:"}'

/**
 * Encodes parts as blocks, each as JSON text, followed by cache points. Adds the names of fields that it
 * leaves out to `dropped`.
 */
export class BlockWriter {
  readonly #capabilities: ConverseCapabilities
  readonly #dropped: DroppedFields
  readonly #media = new MediaBlocks()

  constructor(capabilities: ConverseCapabilities, dropped: DroppedFields) {
    this.#capabilities = capabilities
    this.#dropped = dropped
  }

  /**
   * Encodes a part of a turn; an empty list for a blank text. Throws `invalid_request` for a call whose input
   * is not a JSON object, and for files that no model accepts.
   */
  write(part: EncodablePart): string[] {
    switch (part.kind) {
      case 'text':
        return this.writeText(part)
      case 'media':
        return [this.#writeMedia(part), ...this.cachePoint(part.cache)]
      case 'thinking':
        return [this.#writeThought(part)]
      case 'tool-call':
        return [this.#writeCall(part), ...this.cachePoint(part.cache)]
      case 'tool-result':
        return [this.#writeResult(part), ...this.cachePoint(cacheOf(part))]
      case 'opaque':
        return [JSON.stringify(part.value)]
    }
  }

  /** Encodes a text; an empty list if it is blank, because upstreams refuse that. */
  writeText({ text, cache }: TextPart): string[] {
    return text.trim() === '' ? [] : [JSON.stringify({ text }), ...this.cachePoint(cache)]
  }

  /** Encodes a cache mark as the block after a part or a tool. */
  cachePoint(cache: CacheMark | undefined): string[] {
    if (!cache) return []
    const ttl = cache.ttl === '5m' ? undefined : cache.ttl
    return [JSON.stringify({ cachePoint: { type: 'default', ttl } })]
  }

  #writeMedia({ source, name, detail }: MediaPart): string {
    if (detail !== undefined) reportDropped(this.#dropped, 'image_url.detail')
    return this.#media.write(source, name)
  }

  #writeThought({ text, proof }: ThinkingPart): string {
    return JSON.stringify({ reasoningContent: { reasoningText: { text, signature: proof?.value } } })
  }

  #writeCall({ id, name, input }: ToolCallPart): string {
    const call = renderObject([...jsonMembersOf({ toolUseId: id, name }), ['input', historyInput(input)]])
    return renderObject([['toolUse', call]])
  }

  #writeResult({ callId, parts, isError }: ToolResultPart): string {
    const { statesFailures } = this.#capabilities
    const content = parts.flatMap((part) => this.#writeInner(part))
    if (isError && !statesFailures) content.unshift(FAILED)
    const result = renderObject([
      ['toolUseId', JSON.stringify(callId)],
      ['content', jsonArrayOf(content.length > 0 ? content : [TEXT_BLOCK_PLACEHOLDER])],
      ['status', isError && statesFailures ? '"error"' : undefined],
    ])
    return renderObject([['toolResult', result]])
  }

  #writeInner(part: ToolResultPart['parts'][number]): string[] {
    switch (part.kind) {
      case 'text':
        return part.text.trim() === '' ? [] : [JSON.stringify({ text: part.text })]
      case 'media':
        return [this.#writeMedia(part)]
      case 'opaque':
        reportDropped(this.#dropped, 'content')
        return []
    }
  }
}

/**
 * The cache mark of a tool result: its own, or that of the last of its parts that has one, because Converse
 * accepts no mark on a part of a result.
 */
function cacheOf({ cache, parts }: ToolResultPart): CacheMark | undefined {
  return cache ?? parts.map((part) => (part.kind === 'opaque' ? undefined : part.cache)).findLast(Boolean)
}

/** Type of a media block. */
type MediaKind = 'image' | 'document' | 'video' | 'audio'

/** The upstream's block type and format name, by media type. */
const FORMATS: ReadonlyMap<string, readonly [kind: MediaKind, format: string]> = new Map([
  ['image/png', ['image', 'png']],
  ['image/jpeg', ['image', 'jpeg']],
  ['image/gif', ['image', 'gif']],
  ['image/webp', ['image', 'webp']],
  ['application/pdf', ['document', 'pdf']],
  ['text/csv', ['document', 'csv']],
  ['application/msword', ['document', 'doc']],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', ['document', 'docx']],
  ['application/vnd.ms-excel', ['document', 'xls']],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', ['document', 'xlsx']],
  ['text/html', ['document', 'html']],
  ['text/plain', ['document', 'txt']],
  ['text/markdown', ['document', 'md']],
  ['video/mp4', ['video', 'mp4']],
  ['video/quicktime', ['video', 'mov']],
  ['video/webm', ['video', 'webm']],
  ['video/x-matroska', ['video', 'mkv']],
  ['video/x-flv', ['video', 'flv']],
  ['video/mpeg', ['video', 'mpeg']],
  ['video/x-ms-wmv', ['video', 'wmv']],
  ['video/3gpp', ['video', 'three_gp']],
  ['audio/mpeg', ['audio', 'mp3']],
  ['audio/wav', ['audio', 'wav']],
  ['audio/ogg', ['audio', 'ogg']],
  ['audio/opus', ['audio', 'opus']],
  ['audio/flac', ['audio', 'flac']],
  ['audio/aac', ['audio', 'aac']],
  ['audio/mp4', ['audio', 'm4a']],
  ['audio/webm', ['audio', 'webm']],
])

/**
 * Media type of files of unknown type. They are sent as the type of document that clients send most often.
 */
const UNKNOWN: typeof FORMATS = new Map([['application/octet-stream', ['document', 'pdf']]])
/** Files of text that have no format name are sent as plain text. */
const TEXT = ['document', 'txt'] as const
const MAX_NAME = 200

/**
 * Encodes media as blocks. Names of documents must be unique in a request and may contain fewer characters
 * than file names. A missing name is replaced by a number.
 */
class MediaBlocks {
  readonly #names = new Set<string>()
  /** The last number tried for each name. Lower ones are taken and not tried again: there may be thousands. */
  readonly #lastNumbers = new Map<string, number>()

  /** Encodes media as the JSON text of a block. Throws `invalid_request` for a type that no model accepts. */
  write(source: MediaSource, name: string | undefined): string {
    if (source.kind === 'url')
      throw new WireError('invalid_request', 'A file that is given by its URL could not be passed on.')
    const [type = ''] = source.mediaType.toLowerCase().split(';')
    const known = FORMATS.get(type.trim())
    const [kind, format] = known ?? (isTextFile(source, name) ? TEXT : (UNKNOWN.get(type.trim()) ?? []))
    if (kind === undefined)
      throw new WireError('invalid_request', `Files of this type cannot be sent to this model's provider.`)
    const block = {
      format,
      ...(kind === 'document' && { name: this.#unique(documentName(name)) }),
      source: { bytes: source.data },
    }
    return JSON.stringify({ [kind]: block })
  }

  #unique(name: string): string {
    let number = this.#lastNumbers.get(name) ?? 0
    let unique: string
    do unique = ++number === 1 ? name : `${name} ${number}`
    while (this.#names.has(unique))
    this.#lastNumbers.set(name, number)
    this.#names.add(unique)
    return unique
  }
}

/**
 * Keeps only the characters of a file name that the upstream accepts: letters, digits, single spaces and a
 * few others.
 */
function documentName(name = ''): string {
  const plain = name
    .replace(/\.[A-Za-z\d]{1,5}$/, '')
    .replaceAll(/[^A-Za-z\d\s()[\]-]/g, '-')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_NAME)
  return plain === '' || /^-+$/.test(plain) ? 'Document' : plain
}
