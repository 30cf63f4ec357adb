import type { Proof } from '../conversation.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import { type CopiedPart, textOf } from '../copied-text.ts'
import type { Logprobs, ReplyEvent, StartedPart } from '../reply.ts'
import type { TextMatch } from '../sse/frame-template.ts'
import { OWN_PARTS } from './decode/part.ts'
import type { CitationsOf } from './grounding.ts'
import { PartialArgs } from './partial-args.ts'
import { readSignature } from './signature.ts'

/** Finds the text of a call's arguments as they were written, by the index of the part. */
export type ArgumentsText = (part: number) => string | undefined

/**
 * Converts the parts of an answer, whole or in chunks. Consecutive texts become one part, and so do
 * consecutive thoughts. A signature becomes a part before the call that it signs, or after the text. Images
 * become links that contain their data, because most clients support nothing else.
 */
export class ReplyParts {
  calledTools = false
  readonly #emit: (event: ReplyEvent) => void
  #answerId = ''
  #next = 0
  /** Text or thinking that is still growing. */
  #growing: { readonly kind: 'text' | 'thinking'; readonly index: number } | undefined
  /** The whole growing text, which positions of citations refer to. */
  #text = ''
  /** Sources of the text that are not yet emitted. */
  #citationsOf: CitationsOf | undefined
  /** Log probabilities of the next text. */
  #logprobs: Logprobs | undefined
  /** Call whose arguments arrive in pieces. */
  #call: { readonly index: number; readonly args: PartialArgs } | undefined

  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit
  }

  /** Sets the answer's id. Ids for calls without one are derived from it, so that ids of two turns differ. */
  setAnswerId(id: string): void {
    this.#answerId = id.replaceAll(/[^\w-]/g, '_')
  }

  /** Reads the parts of a candidate, with their sources and the log probabilities of their text. */
  read(
    parts: readonly unknown[],
    textOf: ArgumentsText,
    citationsOf: CitationsOf | undefined,
    logprobs: Logprobs | undefined,
  ): void {
    this.#citationsOf = citationsOf
    this.#logprobs = logprobs
    for (const [number, value] of parts.entries()) {
      const part = asRecord(value)
      if (part) this.#readPart(part, () => textOf(number))
    }
    if (this.#logprobs) this.grow('text', '')
    this.#cite()
  }

  /** Adds text or thinking. */
  grow(kind: 'text' | 'thinking', text: string, isMedia = false): void {
    this.#endCall()
    if (this.#growing?.kind !== kind) {
      this.#endGrowing()
      this.#growing = { kind, index: this.#start({ kind }) }
      this.#text = ''
    }
    if (kind === 'text') this.#text += text
    const { index } = this.#growing
    const logprobs = kind === 'text' ? this.#logprobs : undefined
    if (logprobs) this.#logprobs = undefined
    if (kind === 'thinking') this.#emit({ kind, index, text })
    else this.#emit({ kind, index, text, ...(isMedia && { isMedia }), ...(logprobs && { logprobs }) })
  }

  /**
   * Returns the part that is growing, so that the text can be copied as bytes; undefined if its kind differs.
   */
  copy(kind: 'text' | 'thinking', bytes: Buffer, match: TextMatch): CopiedPart | undefined {
    if (this.#call || this.#growing?.kind !== kind) return undefined
    if (kind === 'text') this.#text += textOf(bytes, match)
    return { kind, index: this.#growing.index }
  }

  /** Ends all open parts. */
  end(): void {
    this.#endGrowing()
    this.#endCall()
  }

  #readPart(part: Fields, argumentsText: () => string | undefined): void {
    const signature = typeof part['thoughtSignature'] === 'string' ? part['thoughtSignature'] : ''
    const call = asRecord(part['functionCall'])
    if (call) return this.#readCall(call, signature, argumentsText)
    if (OWN_PARTS.some((name) => asRecord(part[name]))) {
      this.#whole({ kind: 'opaque', protocol: 'gemini', value: part })
      return undefined
    }
    const text = typeof part['text'] === 'string' ? part['text'] : ''
    const isThought = part['thought'] === true
    if (text !== '') this.grow(isThought ? 'thinking' : 'text', text)
    const media = asRecord(part['inlineData'])
    if (media && !isThought) this.grow('text', linkTo(media), true)
    if (signature !== '') this.#sign(signature, isThought ? undefined : 'text')
    return undefined
  }

  /** Adds the proof to the growing thought, if it signs this thought or the call after it. */
  #sign(signature: string, signs: Proof['signs']): void {
    const read = readSignature(signature, '', signs)
    this.#endCall()
    if (read.kind === 'opaque') {
      this.#whole(read)
      return
    }
    if (signs === 'text' || this.#growing?.kind !== 'thinking') {
      this.#endGrowing()
      this.#growing = { kind: 'thinking', index: this.#start({ kind: 'thinking' }) }
    }
    if (read.proof) this.#emit({ kind: 'proof', index: this.#growing.index, proof: read.proof })
    this.#endGrowing()
  }

  #readCall(call: Fields, signature: string, argumentsText: () => string | undefined): void {
    const name = typeof call['name'] === 'string' ? call['name'] : ''
    const pieces = Array.isArray(call['partialArgs']) ? (call['partialArgs'] as readonly unknown[]) : []
    if (name === '') {
      this.#call?.args.add(pieces)
      if (call['willContinue'] !== true) this.#endCall()
      return
    }
    if (signature !== '') this.#sign(signature, 'call')
    this.end()
    const given = call['id']
    const id = typeof given === 'string' && given !== '' ? given : `call_${this.#answerId}_${this.#next}`
    const index = this.#start({ kind: 'tool-call', id, name })
    this.calledTools = true
    if (call['willContinue'] === true || pieces.length > 0) {
      this.#call = { index, args: new PartialArgs() }
      this.#call.args.add(pieces)
      if (call['willContinue'] !== true) this.#endCall()
      return
    }
    this.#emit({ kind: 'tool-input', index, text: argumentsText() ?? '{}' })
    this.#emit({ kind: 'part-end', index })
  }

  #whole(part: StartedPart): void {
    this.end()
    this.#emit({ kind: 'part-end', index: this.#start(part) })
  }

  #start(part: StartedPart): number {
    const index = this.#next++
    this.#emit({ kind: 'part-start', index, part })
    return index
  }

  /** Emits the sources of the growing text. */
  #cite(): void {
    const { index, kind } = this.#growing ?? {}
    if (!this.#citationsOf || index === undefined || kind !== 'text') return
    for (const citation of this.#citationsOf(this.#text)) this.#emit({ kind: 'citation', index, citation })
    this.#citationsOf = undefined
  }

  #endGrowing(): void {
    this.#cite()
    if (this.#growing) this.#emit({ kind: 'part-end', index: this.#growing.index })
    this.#growing = undefined
  }

  #endCall(): void {
    if (!this.#call) return
    const { index, args } = this.#call
    this.#call = undefined
    this.#emit({ kind: 'tool-input', index, text: args.toString() })
    this.#emit({ kind: 'part-end', index })
  }
}

/** Renders media as a Markdown link that contains the data. */
function linkTo(media: Fields): string {
  const type = typeof media['mimeType'] === 'string' ? media['mimeType'] : 'application/octet-stream'
  const data = typeof media['data'] === 'string' ? media['data'] : ''
  const isImage = type.startsWith('image/')
  return `${isImage ? '![image]' : '[file]'}(data:${type};base64,${data})`
}
