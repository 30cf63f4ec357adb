import { GatewayError } from '../../../errors.ts'
import type { Codec, Dropped, ReplyIdentity } from '../../codec.ts'
import type { Conversation } from '../../conversation.ts'
import { edit } from '../../json/json-edit.ts'
import { scanObject } from '../../json/json-scan.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import type { Reply } from '../../reply.ts'
import { chatCodec } from '../codec.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import { usageOut } from '../usage-out.ts'
import { CompletionStreamEncoder } from './stream-encoder.ts'

/**
 * Fields without an equivalent in a conversation, each with a test for the values at which it has no effect.
 */
const WITHOUT_EQUIVALENT: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['echo', (value) => value === false],
  ['suffix', (value) => value === ''],
  ['best_of', (value) => value === 1],
  ['n', (value) => value === 1],
  ['logprobs', () => false],
]

/**
 * Completions of one prompt, for upstreams that only have conversations: the prompt is sent as a user
 * message.
 */
export const completionsCodec: Codec = {
  ...chatCodec,
  decodeRequest,
  encodeReply,
  streamEncoder: (identity, options) => new CompletionStreamEncoder(identity, options),
}

/**
 * Refuses what a conversation cannot express: several prompts, token ids, and fields without an equivalent.
 */
export function checkConvertible(scan: ScannedObject): void {
  checkFields(scan)
  onlyPrompt(scan)
}

function checkFields(scan: ScannedObject): void {
  for (const [field, isNeutral] of WITHOUT_EQUIVALENT) {
    const value = scan.value(field)
    if (value !== undefined && value !== null && !isNeutral(value)) throw unconverted(field)
  }
}

function decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation {
  checkFields(scan)
  const messages = JSON.stringify([{ role: 'user', content: onlyPrompt(scan) }])
  const body = edit(scan.bytes, scan, {
    remove: ['prompt', ...WITHOUT_EQUIVALENT.map(([field]) => field)],
    replace: new Map([['messages', messages]]),
  })
  return chatCodec.decodeRequest(scanObject(body), dropped)
}

function onlyPrompt(scan: ScannedObject): string {
  const prompt = scan.value('prompt')
  const one: unknown = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt
  if (typeof one === 'string') return one
  throw unconverted('prompt', ' but as one text')
}

function unconverted(field: string, exception = ''): GatewayError {
  return new GatewayError(
    'invalid_request',
    `'${field}' is not supported${exception}: the channels of this model have no completions, only conversations.`,
  )
}

function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { id, model, parts, stop, usage } = reply
  return Buffer.from(
    JSON.stringify({
      id: id || `cmpl-${identity.id}`,
      object: 'text_completion',
      created: identity.created,
      model,
      choices: [
        {
          text: parts.map((part) => (part.kind === 'text' ? part.text : '')).join(''),
          index: 0,
          logprobs: null,
          finish_reason: FINISH_REASONS[stop.reason],
        },
      ],
      ...(usage && { usage: usageOut(usage, identity) }),
    }),
  )
}
