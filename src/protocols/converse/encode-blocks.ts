import { GatewayError } from '../../errors.ts'
import type { Dropped } from '../codec.ts'
import type {
  Cache,
  MediaPart,
  Part,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
} from '../conversation.ts'
import type { ConverseCapabilities } from '../converse-capabilities.ts'
import { arrayOf, membersOf, objectOf } from '../json/json-text.ts'
import { inputObject } from '../tool-input.ts'
import { wireId } from './call-id.ts'
import { drop } from './dropped.ts'
import { MediaBlocks } from './media-block.ts'

/** Stand-in for a text that must not be missing or blank. */
export const PLACEHOLDER = '{"text":"..."}'

/** Opening of a result of a tool that failed, for models that cannot be told otherwise. */
const FAILED = '{"text":"The tool failed:"}'

/** Writes parts as blocks, each as JSON text, and the cache points behind them. Names what is left out. */
export class BlockWriter {
  readonly #capabilities: ConverseCapabilities
  readonly #dropped: Dropped
  readonly #media = new MediaBlocks()

  constructor(capabilities: ConverseCapabilities, dropped: Dropped) {
    this.#capabilities = capabilities
    this.#dropped = dropped
  }

  /**
   * Writes a part of a turn; nothing for what cannot be said. Throws `invalid_request` for a call whose input
   * is no JSON object, and for files that no model takes.
   */
  write(part: Part): string[] {
    switch (part.kind) {
      case 'text':
        return this.writeText(part)
      case 'media':
        return [this.#writeMedia(part), ...this.#cachePoint(part.cache)]
      case 'thinking':
        return this.#writeThought(part)
      case 'tool-call':
        return [this.#writeCall(part), ...this.cachePoint(part.cache)]
      case 'tool-result':
        return [this.#writeResult(part), ...this.cachePoint(cacheOf(part))]
      case 'search':
        drop(this.#dropped, 'content')
        return []
      case 'opaque':
        if (part.protocol === 'converse') return [JSON.stringify(part.value)]
        drop(this.#dropped, 'content')
        return []
    }
  }

  /** Writes a text; nothing for a blank one, which upstreams refuse. */
  writeText({ text, cache }: TextPart): string[] {
    return text.trim() === '' ? [] : [JSON.stringify({ text }), ...this.#cachePoint(cache)]
  }

  /** Writes the mark behind a call, a result or a tool. */
  cachePoint(cache: Cache | undefined): string[] {
    if (!cache || this.#capabilities.cache === 'everywhere') return this.#cachePoint(cache)
    drop(this.#dropped, 'cache_control')
    return []
  }

  #cachePoint(cache: Cache | undefined): string[] {
    if (!cache) return []
    if (this.#capabilities.cache === 'nowhere') {
      drop(this.#dropped, 'cache_control')
      return []
    }
    const isHour = cache.ttl === '1h'
    if (isHour && !this.#capabilities.cachesForAnHour) drop(this.#dropped, 'cache_control.ttl')
    const ttl = isHour && this.#capabilities.cachesForAnHour ? '1h' : undefined
    return [JSON.stringify({ cachePoint: { type: 'default', ttl } })]
  }

  #writeMedia({ source, name, detail }: MediaPart): string {
    if (detail !== undefined) drop(this.#dropped, 'image_url.detail')
    return this.#media.write(source, name)
  }

  // Upstreams accept only their own signatures, and no thoughts without one.
  #writeThought({ text, proof }: ThinkingPart): string[] {
    if (proof?.protocol !== 'converse') {
      drop(this.#dropped, 'reasoning_content')
      return []
    }
    return [JSON.stringify({ reasoningContent: { reasoningText: { text, signature: proof.value } } })]
  }

  #writeCall({ id, name, input }: ToolCallPart): string {
    const object = inputObject(input)
    if (object === undefined)
      throw new GatewayError(
        'invalid_request',
        `Invalid arguments of the tool call ${JSON.stringify(id.slice(0, 64))}: expected the text of a JSON object.`,
      )
    const call = objectOf([
      ...membersOf({ toolUseId: wireId(id, this.#capabilities.hasShortIds), name }),
      ['input', object],
    ])
    return objectOf([['toolUse', call]])
  }

  #writeResult({ callId, parts, isError }: ToolResultPart): string {
    const { statesFailures, hasShortIds } = this.#capabilities
    const content = parts.flatMap((part) => this.#writeInner(part))
    if (isError && !statesFailures) content.unshift(FAILED)
    const result = objectOf([
      ['toolUseId', JSON.stringify(wireId(callId, hasShortIds))],
      ['content', arrayOf(content.length > 0 ? content : [PLACEHOLDER])],
      ['status', isError && statesFailures ? '"error"' : undefined],
    ])
    return objectOf([['toolResult', result]])
  }

  #writeInner(part: ToolResultPart['parts'][number]): string[] {
    switch (part.kind) {
      case 'text':
        return part.text.trim() === '' ? [] : [JSON.stringify({ text: part.text })]
      case 'media':
        return [this.#writeMedia(part)]
      case 'opaque':
        drop(this.#dropped, 'content')
        return []
    }
  }
}

/** The mark of a result: its own, or one inside it, where this wire has no place for any. */
function cacheOf({ cache, parts }: ToolResultPart): Cache | undefined {
  return cache ?? parts.map((part) => (part.kind === 'opaque' ? undefined : part.cache)).findLast(Boolean)
}
