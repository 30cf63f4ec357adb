import { z } from 'zod'
import type { Channel } from '../../domain/channel.ts'
import { GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import type { AdministrationParts } from '../parts.ts'
import { textField } from '../text-fields.ts'
import { askUpstream, isJson } from './ask-upstream.ts'
import { draftChannel, draftField } from './draft-channel.ts'
import { findChannel } from './find-channel.ts'
import { testRequest } from './test-request.ts'

/** Maximum bytes that are read of a response. */
const MAX_BODY_BYTES = 65_536

const modelField = textField('expected the name of a model').max(200, {
  error: 'expected at most 200 characters',
})

/** The result of a test; `time` is in seconds. */
export const testResult = z.object({
  success: z.boolean(),
  message: z.string(),
  time: z.number(),
  model: z.string(),
})

/** The model that a test uses. */
export const testQuery = z.object({ model: modelField.optional() })

/** A channel to test before it is saved. */
export const draftTest = z.object(
  { channel: draftField, model: modelField.nullish() },
  { error: 'expected an object with a channel and a model' },
)

type TestParts = Pick<AdministrationParts, 'store' | 'liveConfig' | 'upstreams' | 'nowMs'>
type Result = z.output<typeof testResult>

/**
 * Requests one token from a channel's upstream with the channel's first key, enabled or not, and charges
 * nobody. Time and duration are stored with a stored channel.
 */
export async function testChannel(
  parts: TestParts,
  { id, model }: { readonly id: number; readonly model: string | undefined },
  by: Actor,
): Promise<Result> {
  const { store, liveConfig, nowMs } = parts
  const found = await findChannel(parts, id)
  const channel = 'stored' in found ? liveConfig.storedChannel(found.stored.name) : found.declared
  if (!channel) {
    throw new GatewayError('invalid_request', 'this channel cannot be in force beside gateway.yaml')
  }
  const preferred = 'stored' in found ? found.stored.family['test_model'] : undefined
  const result = await requestOneToken(parts, channel, model || preferred, by)
  if ('stored' in found) {
    const testTime = Math.floor(nowMs() / 1000)
    await store.write('noteChannelTest', { id, testTime, responseMs: Math.round(result.time * 1000) })
  }
  return result
}

/** The same for a channel that is not saved; stores nothing. */
export async function testDraft(
  parts: TestParts,
  { channel: given, model }: z.output<typeof draftTest>,
  by: Actor,
): Promise<Result> {
  const { channel, preferredModel } = await draftChannel(parts, given, model, by)
  return requestOneToken(parts, channel, model || preferredModel, by)
}

async function requestOneToken(
  parts: TestParts,
  channel: Channel,
  wanted: unknown,
  by: Actor,
): Promise<Result> {
  const model = (typeof wanted === 'string' && wanted) || channel.models[0] || ''
  const question = {
    request: testRequest(channel, model),
    maxBytes: MAX_BODY_BYTES,
    read: (body: Buffer) => isJson(body) || undefined,
    unread: 'the answer is not JSON',
  }
  const { answer, message, tookMs } = await askUpstream(parts, channel, question, by)
  return { success: answer !== undefined, message, time: tookMs / 1000, model }
}
