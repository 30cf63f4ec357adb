import { WireError } from '../wire-error.ts'
import type { Dropped } from '../codec.ts'
import type {
  MediaPart,
  Part,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../conversation.ts'
import { membersOf, objectOf } from '../json/json-text.ts'
import { parseRecord } from '../json/record.ts'
import type { GeminiCapabilities } from '../model-capabilities.ts'
import { inputObject } from '../tool-input.ts'
import { drop } from './dropped-fields.ts'
import { encodeMedia, encodeText } from './encode-part.ts'
import { UNSIGNED_CALL } from './signature.ts'

/** Placeholder for an empty turn, because upstreams require parts. */
const PLACEHOLDER = '{"text":"..."}'

/** Content that is being collected. Consecutive turns of the same role become one. */
interface OpenContent {
  readonly role: 'user' | 'model'
  readonly parts: string[]
}

/**
 * Encodes turns as `contents`, beginning with the user's. Function responses come first in their turn, with
 * the names of their calls. If the model requires signatures, the first call of each step has one, or the
 * documented placeholder; earlier turns too, so that a longer history begins with the same bytes.
 */
export class ContentsWriter {
  readonly #capabilities: GeminiCapabilities
  readonly #dropped: Dropped
  readonly #names = new Map<string, string>()

  constructor(capabilities: GeminiCapabilities, dropped: Dropped) {
    this.#capabilities = capabilities
    this.#dropped = dropped
  }

  /** Encodes the contents, each as JSON text. */
  write(turns: readonly Turn[]): string[] {
    const contents: OpenContent[] = []
    for (const turn of turns) {
      const role = turn.role === 'user' ? 'user' : 'model'
      const parts = turn.role === 'user' ? this.#writeUser(turn.parts) : this.#writeModel(turn.parts)
      const last = contents.at(-1)
      if (last?.role === role) last.parts.push(...parts)
      else if (role === 'user' || parts.length > 0) contents.push({ role, parts })
    }
    if (contents[0]?.role !== 'user') contents.unshift({ role: 'user', parts: [] })
    return contents.map(({ role, parts }) => {
      const written = parts.length > 0 ? parts.join(',') : PLACEHOLDER
      return `{"role":"${role}","parts":[${written}]}`
    })
  }

  #writeUser(parts: readonly Part[]): string[] {
    const responses: string[] = []
    const others: string[] = []
    for (const part of parts) {
      if (part.kind === 'tool-result') {
        const { response, media } = this.#writeResult(part)
        responses.push(response)
        others.push(...media)
      } else others.push(...this.#writeOther(part))
    }
    return [...responses, ...others]
  }

  #writeResult(part: ToolResultPart): ReturnType<typeof encodeResult> {
    return encodeResult(part, this.#names.get(part.callId), {
      holdsMedia: this.#capabilities.mixesTools,
      dropped: this.#dropped,
    })
  }

  #writeModel(parts: readonly Part[]): string[] {
    const written: string[] = []
    /** Signature of the next call. */
    let signature: string | undefined
    let isFirstCall = true
    for (const part of parts) {
      if (part.kind === 'tool-call') {
        const standIn = isFirstCall && this.#capabilities.requiresSignatures ? UNSIGNED_CALL : undefined
        written.push(this.#writeCall(part, signature ?? standIn))
        signature = undefined
        isFirstCall = false
      } else if (part.kind === 'thinking' && part.proof?.protocol === 'gemini' && part.proof.signs === 'call')
        signature = part.proof.value
      else written.push(...this.#writeOther(part))
    }
    return written
  }

  #writeCall({ id, name, input, cache }: ToolCallPart, signature: string | undefined): string {
    if (cache) drop(this.#dropped, 'cache_control')
    const args = inputObject(input)
    if (args === undefined)
      throw new WireError(
        'invalid_request',
        `Invalid arguments of the tool call ${JSON.stringify(id.slice(0, 64))}: expected the text of a JSON object.`,
      )
    this.#names.set(id, name)
    const call = objectOf([
      ['id', JSON.stringify(id)],
      ['name', JSON.stringify(name)],
      ['args', args],
    ])
    return objectOf([
      ['functionCall', call],
      ['thoughtSignature', signature && JSON.stringify(signature)],
    ])
  }

  #writeOther(part: Exclude<Part, ToolCallPart | ToolResultPart> | Part): string[] {
    switch (part.kind) {
      case 'text':
        if (part.cache) drop(this.#dropped, 'cache_control')
        return part.text === '' ? [] : [encodeText(part, this.#dropped)]
      case 'media':
        return [encodeMedia(part, this.#dropped)]
      case 'thinking':
        return this.#writeThought(part)
      case 'opaque':
        if (part.protocol === 'gemini') return [JSON.stringify(part.value)]
        drop(this.#dropped, 'content')
        return []
      case 'search':
      case 'tool-call':
      case 'tool-result':
        drop(this.#dropped, 'content')
        return []
    }
  }

  /** Thoughts without a signature are left out; sent as text they would confuse the model. */
  #writeThought({ text, proof }: ThinkingPart): string[] {
    if (proof?.protocol !== 'gemini') {
      drop(this.#dropped, 'reasoning_content')
      return []
    }
    if (proof.signs === 'text') return [JSON.stringify({ text: '', thoughtSignature: proof.value })]
    return [JSON.stringify({ text, thought: true, thoughtSignature: proof.value })]
  }
}

/** The result of a tool in Gemini's format: the response, and media that cannot be inside it. */
interface WrittenResult {
  readonly response: string
  readonly media: readonly string[]
}

/**
 * Encodes a tool result. A text that is a JSON object becomes the response itself; any other text becomes its
 * member `output`, or `error` if the tool failed. Media are inside the response if `holdsMedia`. Throws
 * `invalid_request` if the name of the function is unknown, because Gemini requires it.
 */
function encodeResult(
  { callId, parts, isError, cache }: ToolResultPart,
  name: string | undefined,
  { holdsMedia, dropped }: { readonly holdsMedia: boolean; readonly dropped: Dropped },
): WrittenResult {
  if (name === undefined)
    throw new WireError('invalid_request', 'A tool result has no call with its id in an earlier turn.')
  if (cache || parts.some((part) => part.kind === 'text' && part.cache)) drop(dropped, 'cache_control')
  if (parts.some(({ kind }) => kind === 'opaque')) drop(dropped, 'content')
  const text = parts
    .filter((part): part is TextPart => part.kind === 'text')
    .map((part) => part.text)
    .join('\n')
  const media = parts
    .filter((part): part is MediaPart => part.kind === 'media')
    .map((part) => encodeMedia(part, dropped))
  const response = objectOf([
    ...membersOf({ id: callId, name }),
    ['response', responseOf(text, isError)],
    ['parts', holdsMedia && media.length > 0 ? `[${media.join(',')}]` : undefined],
  ])
  return { response: `{"functionResponse":${response}}`, media: holdsMedia ? [] : media }
}

function responseOf(text: string, isError: boolean): string {
  if (isError) return JSON.stringify({ error: text })
  const trimmed = text.trim()
  // The text of an object is kept unchanged, with its digits and the order of keys.
  return trimmed.startsWith('{') && parseRecord(trimmed) ? trimmed : JSON.stringify({ output: text })
}
