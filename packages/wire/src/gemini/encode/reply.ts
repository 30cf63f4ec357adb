import type { ReplyIdentity } from '../../codec.ts'
import { logprobsIn } from '../../logprobs.ts'
import type { Choice, Reply, ReplyPart } from '../../reply.ts'
import { writeLogprobs } from '../logprobs.ts'
import { writeGeminiStop } from '../stop-reasons.ts'
import { writeUsage } from '../usage.ts'
import { GroundingCollector } from '../grounding.ts'
import { jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import type { ProviderSignature } from '../../conversation.ts'
import { inputObject } from '../../tool-input.ts'
import { isSealable } from '../../signature-envelope.ts'
import { encodeOpaquePart, writeSignature } from '../signature.ts'

/** Encodes a complete response. An empty reply becomes an empty text. */
export function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { id, model, usage } = reply
  const rest = JSON.stringify({
    ...(usage && { usageMetadata: writeUsage(usage) }),
    modelVersion: model,
    responseId: id || identity.id,
  })
  const candidates = [reply, ...(reply.others ?? [])].map(writeCandidate)
  return Buffer.from(`{"candidates":[${candidates.join(',')}],${rest.slice(1)}`)
}

function writeCandidate({ parts, stop }: Choice, index: number): string {
  const writer = new PartWriter()
  const written = parts.map((part) => writer.write(part)).filter((part) => part !== undefined)
  const grounding = new GroundingCollector()
  for (const [number, part] of parts.entries()) grounding.add(part, number)
  const content = `{"role":"model","parts":[${written.length > 0 ? written.join(',') : EMPTY_PART}]}`
  const facts = grounding.write() + writeLogprobs(logprobsIn(parts))
  return `{"content":${content},${writeGeminiStop(stop)}${facts}"index":${index}}`
}

/** A part without text. Clients discard a response, or its last chunk, if it contains no part. */
export const EMPTY_PART = '{"text":""}'

/**
 * Writes the parts of a response. The signature of a function call arrives before the call, and is written in
 * the same part as the call.
 */
export class PartWriter {
  #callSignature: string | undefined

  /** Writes a complete part as JSON text; undefined if it is empty. */
  write(part: ReplyPart): string | undefined {
    switch (part.kind) {
      case 'text':
        return part.text === '' ? undefined : JSON.stringify({ text: part.text })
      case 'thinking':
        return this.#writeThought(part.text, part.proof)
      case 'tool-call':
        return this.#writeCall(part)
      case 'search':
        return undefined
      case 'opaque':
        if (part.protocol === 'gemini') return JSON.stringify(part.value)
        if (!isSealable(part)) return undefined
        return JSON.stringify({ text: '', thought: true, thoughtSignature: encodeOpaquePart(part) })
    }
  }

  /**
   * Writes the signature of a thought or a text as a separate part. Undefined for the signature of a
   * function call, which is written with the call.
   */
  writeProof(proof: ProviderSignature): string | undefined {
    const thoughtSignature = writeSignature(proof)
    if (proof.signs === 'call' && proof.protocol === 'gemini') {
      this.#callSignature = thoughtSignature
      return undefined
    }
    const isOfText = proof.signs === 'text' && proof.protocol === 'gemini'
    return JSON.stringify({ text: '', ...(!isOfText && { thought: true }), thoughtSignature })
  }

  #writeThought(text: string, proof: ProviderSignature | undefined): string | undefined {
    const signature = proof && this.writeProof(proof)
    if (text === '') return signature
    const isOwn = proof !== undefined && signature !== undefined
    return JSON.stringify({ text, thought: true, ...(isOwn && { thoughtSignature: writeSignature(proof) }) })
  }

  /**
   * Writes a function call. If the input is not a JSON object, it was cut off, and the call is written
   * without arguments.
   */
  #writeCall({ id, name, input }: Extract<ReplyPart, { kind: 'tool-call' }>): string | undefined {
    const signature = this.#callSignature
    this.#callSignature = undefined
    const args = inputObject(input) ?? '{}'
    const call = renderObject([...jsonMembersOf({ id, name }), ['args', inOneLine(args)]])
    return renderObject([['functionCall', call], ...jsonMembersOf({ thoughtSignature: signature })])
  }
}

/** Writes JSON without line ends, as an event requires. In JSON, line ends can only be between values. */
function inOneLine(json: string): string {
  return json.replaceAll(/[\r\n]/g, ' ')
}
