import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { chatCodec } from '@sluice/wire/chat'
import { geminiCodec } from '@sluice/wire/gemini'
import { messagesCodec } from '@sluice/wire/messages'
import { type ProtocolCodec, repairWhole } from '@sluice/wire/repair'
import { responsesCodec } from '@sluice/wire/responses'
import type { Channel } from '../../domain/records/channel.ts'
import { asGatewayError, GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import { textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { requestUpstream, isJsonBody, type ChannelRequest } from './upstream-requests.ts'
import { validateDraftChannel, draftChannelSchema } from './change-channels.ts'
import { allChannels, CHANNEL_ID_SCHEMAS, findChannel, type FoundChannel } from './channel-object.ts'
import {
  chooseCheapTest,
  isCostlyEndpoint,
  TESTED_ENDPOINTS,
  type TestedEndpoint,
  testedModel,
  testRequest,
} from './test-request.ts'

const modelField = textField('expected the name of a model').max(200, {
  error: 'expected at most 200 characters',
})

/**
 * The result of a channel test. `time` is in seconds. `costs` is true if the provider charges for an image or
 * speech, not just for a few tokens. `needs_repair` is true if the answer had faults that the channel's `repair`
 * mends.
 */
export const testResult = z.object({
  success: z.boolean(),
  message: z.string(),
  time: z.number(),
  model: z.string(),
  endpoint: z.enum(TESTED_ENDPOINTS),
  costs: z.boolean(),
  needs_repair: z.boolean(),
})

/** Query parameters with the model that a test should use. */
export const testQuery = z.object({ model: modelField.optional() })

/** Input with an unsaved channel to be tested. */
export const draftTest = z.object(
  { channel: draftChannelSchema, model: modelField.nullish() },
  { error: 'expected an object with a channel and a model' },
)

/**
 * What a test of a channel needs. Commands that run without the gateway have no `channels`, which record
 * results.
 */
type TestServices = Pick<
  AdministrationServices,
  'store' | 'liveConfig' | 'upstreams' | 'nowMs' | 'settings' | 'endReads'
> &
  Partial<Pick<AdministrationServices, 'channels'>>

export type TestResult = z.output<typeof testResult>

/** A function that chooses the model of a test, and its endpoint. */
type ChooseTestedModel = typeof testedModel

/**
 * Tests a channel: sends a minimal request for one of its models with its first key; nobody is charged. The
 * channel may be disabled. For a stored channel, the time and the duration of the test are stored.
 */
export async function testChannel(
  services: TestServices,
  { id, model }: { readonly id: number; readonly model: string | undefined },
  by: Actor,
): Promise<TestResult> {
  return testFound(services, { found: await findChannel(services, id), model, choose: testedModel }, by)
}

/**
 * A channel to be tested. `model` is the wanted model, otherwise the channel's own test model; `choose` makes
 * the final choice.
 */
interface FoundTest {
  readonly found: FoundChannel
  readonly model?: string | undefined
  readonly choose: ChooseTestedModel
}

/**
 * Tests a channel that was already found, and stores the time and the duration of the test for a stored
 * channel.
 */
async function testFound(
  services: TestServices,
  { found, model, choose }: FoundTest,
  by: Actor,
): Promise<TestResult> {
  const { store, liveConfig, nowMs } = services
  const channel = 'stored' in found ? liveConfig.storedChannel(found.stored.name) : found.declared
  if (!channel) {
    throw new GatewayError('invalid_request', 'this channel cannot be in force beside gateway.yaml')
  }
  const preferred = 'stored' in found ? found.stored.family['test_model'] : undefined
  const result = await sendCheapestTest(services, channel, { wanted: model || preferred, choose }, by)
  if ('stored' in found) {
    const test_time = Math.floor(nowMs() / 1000)
    const response_ms = Math.round(result.time * 1000)
    await store.write('recordChannelTest', { id: found.id, test_time, response_ms })
  }
  // The test was made with the first key, which works now.
  if (result.success) services.channels?.keyRings.rests.endOfKey(channel.name, channel.keys[0] ?? '')
  services.channels?.minutes.noteTest(channel.name, result.success ? undefined : causeOf(result.message))
  return result
}

/** The cause of a failed test in the gateway's own words, without text from the upstream. */
function causeOf(message: string): string {
  const status = /\banswered (\d{3})\b/.exec(message)?.[1]
  return status === undefined ? 'test failed' : `test failed: status ${status}`
}

/** Tests a channel that is not saved: sends a minimal request for one of its models; nothing is stored. */
export async function testDraftChannel(
  services: TestServices,
  { channel: given, model }: z.output<typeof draftTest>,
  by: Actor,
): Promise<TestResult> {
  const { channel, preferredModel } = await validateDraftChannel(services, given, model, by)
  return sendCheapestTest(services, channel, { wanted: model || preferredModel, choose: testedModel }, by)
}

async function sendCheapestTest(
  services: TestServices,
  channel: Channel,
  { wanted, choose }: { readonly wanted: unknown; readonly choose: ChooseTestedModel },
  by: Actor,
): Promise<TestResult> {
  const tested = choose(channel, typeof wanted === 'string' ? wanted : '', services.settings().models)
  const { model, endpoint } = tested
  const question = { request: testRequest(channel, tested), ...readingOf(endpoint) }
  const { answer, message, tookMs } = await requestUpstream(services, channel, question, by)
  return {
    success: answer !== undefined,
    message,
    time: tookMs / 1000,
    model,
    endpoint,
    costs: isCostlyEndpoint(endpoint),
    needs_repair: answer !== undefined && isFaulty(endpoint, answer),
  }
}

const CODECS: Partial<Record<TestedEndpoint, ProtocolCodec>> = {
  chat: { codec: chatCodec, name: 'chat' },
  messages: { codec: messagesCodec, name: 'messages' },
  responses: { codec: responsesCodec, name: 'responses' },
  gemini: { codec: geminiCodec, name: 'gemini' },
}

/** Whether an answer has faults that `repair` mends. */
function isFaulty(endpoint: TestedEndpoint, answer: Buffer): boolean {
  const protocol = CODECS[endpoint]
  return protocol !== undefined && repairWhole(protocol, answer, { id: '', created: 0 }).isRepaired
}

/** Maximum size of a response in bytes, by endpoint. An image is one long base64 text. */
const MAX_BODY_BYTES: Partial<Record<TestedEndpoint, number>> = { images: 16_777_216, models: 4_194_304 }
const USUAL_BODY_BYTES = 65_536

function readingOf(endpoint: TestedEndpoint): Omit<ChannelRequest<Buffer>, 'request'> {
  const maxBytes = MAX_BODY_BYTES[endpoint] ?? USUAL_BODY_BYTES
  return endpoint === 'speech'
    ? {
        maxBytes,
        read: (body, type) => (isSound(body, type) ? body : undefined),
        unread: 'the answer is not audio',
      }
    : { maxBytes, read: (body) => (isJsonBody(body) ? body : undefined), unread: 'the answer is not JSON' }
}

function isSound(body: Buffer, contentType: string): boolean {
  return body.length > 0 && !/json|text\//.test(contentType)
}

/** Maximum number of tests that run at the same time. */
const MAX_PARALLEL = 8

/**
 * Milliseconds after which a test of several channels ends: no further channels are tested, and running tests
 * have no result.
 */
const LIMIT_MS = 60_000

/** Input with the ids of the channels to be tested; without `ids`, all of them. */
export const testAllBody = z.object(
  { ids: z.array(CHANNEL_ID_SCHEMAS.id, { error: 'expected a list of ids' }).nullish() },
  { error: 'expected an object' },
)

/**
 * The results of the tests, in the order of channel lists. `success` is null for channels that were not
 * tested in time.
 */
export const testAllResult = z.array(
  testResult.omit({ costs: true }).extend({
    id: CHANNEL_ID_SCHEMAS.id,
    name: z.string(),
    success: z.boolean().nullable(),
    endpoint: z.string(),
  }),
)

type Outcome = Omit<z.output<typeof testAllResult>[number], 'id' | 'name'>

const UNREACHED: Outcome = {
  success: null,
  message: '',
  time: 0,
  model: '',
  endpoint: '',
  needs_repair: false,
}

/**
 * Tests several channels, eight at a time, for at most a minute. If the test of a channel would have to
 * generate an image or speech, its upstream's model list is read instead. Throws `not_found` for an unknown
 * id.
 */
export async function testAllChannels(
  services: TestServices,
  { ids }: z.output<typeof testAllBody>,
  by: Actor,
): Promise<z.output<typeof testAllResult>> {
  const listed = await channelsOf(services, ids ?? undefined)
  const outcomes = listed.map(() => UNREACHED)
  const waiting = listed.entries()
  let isOver = false
  const work = async (): Promise<void> => {
    for (const [at, channel] of waiting) {
      if (isOver) return
      outcomes[at] = await outcomeOf(services, channel, by)
    }
  }
  const late = sleep(LIMIT_MS, undefined, { ref: false })
  await Promise.race([late, Promise.all(Array.from({ length: MAX_PARALLEL }, work))])
  isOver = true
  return listed.map(({ id, name }, at) => ({ id, name, ...(outcomes[at] ?? UNREACHED) }))
}

async function channelsOf(
  services: TestServices,
  ids: readonly number[] | undefined,
): Promise<FoundChannel[]> {
  const all = await allChannels(services)
  const unknown = ids?.find((id) => !all.some((channel) => channel.id === id))
  if (unknown !== undefined) throw new GatewayError('not_found', `there is no channel with the id ${unknown}`)
  return ids ? all.filter(({ id }) => ids.includes(id)) : all
}

/** Tests one channel; one that cannot be tested counts as failed. */
async function outcomeOf(services: TestServices, found: FoundChannel, by: Actor): Promise<Outcome> {
  try {
    const { costs: _, ...outcome } = await testFound(services, { found, choose: chooseCheapTest }, by)
    return outcome
  } catch (error) {
    const known = asGatewayError(error)
    if (!known) throw error
    return { ...UNREACHED, success: false, message: known.message }
  }
}
