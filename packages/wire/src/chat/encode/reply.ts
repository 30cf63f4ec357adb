import type { ReplyIdentity } from '../../codec.ts'
import {
  type Choice,
  type Citation,
  codePointsIn,
  type Logprobs,
  partsWithWords,
  type Reply,
  type ReplyPart,
  urlCitation,
} from '../../reply.ts'
import type { ReplyContext } from '../../conversation.ts'
import { decodeCustomInput } from '../../openai-tools.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import { logprobsIn } from '../../logprobs.ts'
import {
  callSignature,
  googleSignatureMembers,
  isReplacedByPlaceholder,
  writeReasoningDetail,
} from '../reasoning-details.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import { tierMember, writeUsage } from '../usage.ts'
import type { Fields } from '../../field.ts'
import { asRecord } from '../../json/record.ts'

/**
 * Newline in `reasoning_content` in place of a thought's signature, which is not sent; `docs/api.md: Events`,
 * signature_delta.
 */
export const SIGNATURE_PLACEHOLDER = '\n'

/**
 * Encodes a complete reply; `docs/api.md: Chat completion response`. Texts are joined to one content, and
 * thoughts to one `reasoning_content`. The chunks of a streamed reply add up to the same result.
 */
export function encodeReply(reply: Reply, identity: ReplyIdentity, replyContext?: ReplyContext): Buffer {
  const { usage } = reply
  const custom = customToolNames(replyContext)
  return Buffer.from(
    JSON.stringify({
      id: reply.id || identity.id,
      object: 'chat.completion',
      created: identity.created,
      model: reply.model,
      choices: [reply, ...(reply.others ?? [])].map((choice, index) => writeChoice(choice, index, custom)),
      ...(usage && { usage: writeUsage(usage, identity) }),
      ...tierMember(reply.served ?? usage?.served, identity),
    }),
  )
}

function writeChoice(choice: Choice, index: number, custom: ReadonlySet<string>): object {
  const parts = partsWithWords(choice)
  const calls = callsIn(parts, custom)
  const content = joined(parts, (part) => (part.kind === 'text' && !part.refusal ? part.text : ''))
  const refusal = joined(parts, (part) => (part.kind === 'text' && part.refusal ? part.text : ''))
  const annotations = annotationsIn(parts)
  const thinking = joined(parts, (part) =>
    part.kind === 'thinking'
      ? part.text + (part.proof && isReplacedByPlaceholder(part.proof) ? SIGNATURE_PLACEHOLDER : '')
      : '',
  )
  const details = detailsIn(parts)
  return {
    index,
    message: {
      role: 'assistant',
      content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
      refusal: refusal === '' ? null : refusal,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(annotations.length > 0 && { annotations }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    logprobs: writeLogprobs(logprobsIn(parts)),
    finish_reason: FINISH_REASONS[choice.stop.reason],
  }
}

function joined(parts: readonly ReplyPart[], textOf: (part: ReplyPart) => string): string {
  return parts.map(textOf).join('')
}

/**
 * The encrypted reasoning of a reply, as elements of `reasoning_details` with their positions among thoughts
 * and calls.
 */
function detailsIn(parts: readonly ReplyPart[]): object[] {
  const details: object[] = []
  let [from, calls] = [0, 0]
  for (const part of parts) {
    if (part.kind === 'tool-call') calls++
    const length = part.kind === 'thinking' ? codePointsIn(part.text) : 0
    const signed = part.kind === 'opaque' ? part : part.kind === 'thinking' ? part.proof : undefined
    const detail = signed && writeReasoningDetail(signed, { from, length, calls }, details.length)
    if (detail) details.push(detail)
    from += length
  }
  return details
}

/** The tool calls. A signature before a call becomes a member of the call. */
function callsIn(parts: readonly ReplyPart[], custom: ReadonlySet<string>): unknown[] {
  let signature: string | undefined
  return parts.flatMap((part): object[] => {
    if (part.kind === 'thinking' && part.proof) signature = callSignature(part.proof)
    if (part.kind !== 'tool-call') return []
    const extra = googleSignatureMembers(signature)
    signature = undefined
    const { id, name, input } = part
    if (custom.has(name))
      return [{ id, type: 'custom', custom: { name, input: decodeCustomInput(input) }, ...extra }]
    return [{ id, type: 'function', function: { name, arguments: inputOrEmpty(input) }, ...extra }]
  })
}

/** The names of the client's custom tools. Calls of these tools are sent as custom calls. */
export function customToolNames(replyContext: ReplyContext | undefined): ReadonlySet<string> {
  return new Set(replyContext?.tools.filter(({ form }) => form?.custom).map(({ name }) => name))
}

/**
 * Writes a citation for chat clients. The cited part begins at `base` in the content and has the length
 * `length`, both in code points.
 */
export function writeAnnotation(citation: Citation, length: number, base: number): object {
  return { type: 'url_citation', url_citation: urlCitation(citation, length, base) }
}

/** Writes the citations of all texts, which are joined to one content. */
function annotationsIn(parts: readonly ReplyPart[]): object[] {
  let base = 0
  return parts.flatMap((part) => {
    if (part.kind !== 'text') return []
    const start = base
    const length = codePointsIn(part.text)
    base += length
    return (part.citations ?? []).map((citation) => writeAnnotation(citation, length, start))
  })
}

/** Writes the `logprobs` of a choice. Null if there are none. */
export function writeLogprobs(tokens: Logprobs | undefined): object | null {
  return tokens && tokens.length > 0 ? { content: tokens.map(writeToken), refusal: null } : null
}

/**
 * Adds the members that the log probabilities of a token have in chat but not in the deltas of the responses
 * protocol.
 */
function writeToken(value: unknown): Fields {
  const token = asRecord(value) ?? {}
  const others = token['top_logprobs']
  return {
    ...token,
    bytes: token['bytes'] ?? null,
    top_logprobs: Array.isArray(others)
      ? others.map((other) => ({ ...asRecord(other), bytes: asRecord(other)?.['bytes'] ?? null }))
      : [],
  }
}
